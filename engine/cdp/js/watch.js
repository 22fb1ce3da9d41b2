// Counts the trusted clicks of this document from now on, for clicks.js. The listener lives in this world; the page cannot see it.
function () {
  const count = {n: 0};
  count.listener = (e) => { if (e.isTrusted) count.n++; };
  Window.prototype.addEventListener.call(window, "click", count.listener, {capture: true, passive: true});
  globalThis.acceptanceClicks = count;
}
