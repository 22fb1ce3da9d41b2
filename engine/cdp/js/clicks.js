// Ends the count that probe.js began. Returns {clicks, checked}: the trusted clicks since then, 0 when nothing was counted, and whether this
// checkbox or radio, or the one that this label stands for, is checked.
function () {
  const count = globalThis.acceptanceClicks;
  delete globalThis.acceptanceClicks;
  if (count) EventTarget.prototype.removeEventListener.call(window, "click", count.listener, {capture: true});
  const control = this instanceof HTMLLabelElement && this.control ? this.control : this;
  return {clicks: count ? count.n : 0, checked: control.checked === true};
}
