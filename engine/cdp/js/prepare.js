// Makes this element ready to take text: checks it, and when act is true focuses it and puts the caret at the end or, to replace, selects
// all. Returns {problem, empty}: problem is "" or a word of refusals.yaml; empty says that nothing is there to be replaced.
// The text before and the selection are kept in this world for readback.js.
function (act, replace) {
  const out = {problem: "", empty: false};
  const field = this instanceof HTMLInputElement || this instanceof HTMLTextAreaElement;
  const texts = ["text", "search", "url", "tel", "email", "password", "number"];
  if (Node.prototype.getRootNode.call(this, {composed: true}) !== document) { out.problem = "gone"; return out; }
  if (field ? this instanceof HTMLInputElement && !texts.includes(this.type) : !this.isContentEditable) { out.problem = "not_editable"; return out; }
  if (Element.prototype.matches.call(this, ":disabled")) { out.problem = "disabled"; return out; }
  if (field && this.readOnly) { out.problem = "read_only"; return out; }
  if (Element.prototype.getClientRects.call(this).length === 0 || getComputedStyle(this).visibility !== "visible") { out.problem = "hidden"; return out; }
  const text = () => field ? this.value : this.innerText;
  out.empty = text() === "";
  if (!act) return out;
  HTMLElement.prototype.focus.call(this);
  if (Node.prototype.getRootNode.call(this).activeElement !== this) { out.problem = "not_editable"; return out; }
  const before = text();
  const sel = getSelection();
  let start = replace ? 0 : before.length;
  if (field) {
    if (replace) {
      this.select();
    } else {
      try {
        this.setSelectionRange(before.length, before.length);
      } catch {
        // number and email have no selection that script may set; the selection of the page reaches inside them.
        sel.modify("move", "forward", "documentboundary");
      }
    }
  } else {
    const range = document.createRange();
    range.selectNodeContents(this);
    if (!replace) range.collapse(false);
    sel.removeAllRanges();
    sel.addRange(range);
  }
  globalThis.acceptanceText = {element: this, before, start};
  return out;
}
