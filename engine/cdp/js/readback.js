// Compares the text of this element with what it must be after text was entered where prepare.js put the caret. Returns {state, points}:
// text comes in an array, for an empty string alone is left out on the wire.
// state is "whole", "prefix" (points code points of the text arrived), "unchanged" or "other".
function ([text]) {
  const kept = globalThis.acceptanceText;
  delete globalThis.acceptanceText;
  if (!kept || kept.element !== this) return {state: "other", points: 0};
  const field = this instanceof HTMLInputElement || this instanceof HTMLTextAreaElement;
  let now = field ? this.value : this.innerText;
  let before = kept.before.slice(0, kept.start);
  text = text.replace(/\r\n?/g, "\n");
  if (this instanceof HTMLInputElement) text = text.replace(/\n/g, "");
  if (!field) {
    // An editing host renders spaces and line ends in its own way.
    const plain = (s) => s.replace(/\u00a0/g, " ").replace(/\n$/, "");
    now = plain(now); before = plain(before);
    if (now === plain(before + text)) return {state: "whole", points: [...text].length};
  }
  if (now === before + text) return {state: "whole", points: [...text].length};
  if (now === kept.before) return {state: "unchanged", points: 0};
  if (now.startsWith(before) && text.startsWith(now.slice(before.length))) return {state: "prefix", points: [...now.slice(before.length)].length};
  return {state: "other", points: 0};
}
