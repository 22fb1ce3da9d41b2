// Makes this element ready to take text: checks it, and when act is true focuses it and puts the caret at the end or, to replace, selects
// all. expected is a list with the text that is to be replaced, or with null for any. Returns {problem, empty, before}: problem is "" or a
// word of refusals.yaml; empty says that nothing is there to be replaced; before is the text there, null where the control hides it.
// The text before and the selection are kept in this world for readback.js.
function (act, replace, expected) {
  const out = {problem: "", empty: false, before: null};
  const field = this instanceof HTMLInputElement || this instanceof HTMLTextAreaElement;
  const texts = ["text", "search", "url", "tel", "email", "password", "number"];
  if (Node.prototype.getRootNode.call(this, {composed: true}) !== document) { out.problem = "gone"; return out; }
  if (field ? this instanceof HTMLInputElement && !texts.includes(this.type) : !this.isContentEditable) { out.problem = "not_editable"; return out; }
  if (Element.prototype.matches.call(this, ":disabled")) { out.problem = "disabled"; return out; }
  if (field && this.readOnly) { out.problem = "read_only"; return out; }
  if (Element.prototype.getClientRects.call(this).length === 0 || getComputedStyle(this).visibility !== "visible") { out.problem = "hidden"; return out; }
  const text = () => field ? this.value : this.innerText;
  const changed = () => expected[0] !== null && text() !== expected[0];
  out.empty = text() === "";
  if (changed()) { out.problem = "value_changed"; return out; }
  if (!act) return out;
  HTMLElement.prototype.focus.call(this);
  if (Node.prototype.getRootNode.call(this).activeElement !== this) { out.problem = "not_editable"; return out; }
  if (changed()) { out.problem = "value_changed"; return out; } // the page's own handler of the focus
  const before = text();
  if (replace && this.type !== "password") out.before = before;
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
