// Returns what a pointer or a key would meet at this element, without moving focus:
// {connected, rendered, disabled, x, y, hit, key, file, picker, opens, checkable, checked}
// x and y are viewport coordinates in CSS pixels of the element's own frame; hit is "self", "covered" or "offscreen"; key is the key that
// activates the element ("Enter", " " or "" when no key does); opens says that activation opens a window or tab.
// With scroll the page is scrolled when nothing of the element is in view, or when something lies over it that scrolling may clear.
// With watch the trusted clicks of this document are counted from now on, for clicks.js; the listener lives in this world, where the page
// cannot see it. It is set here and not later because input and script reach a page by different ways, in no order.
function (scroll, watch) {
  const P = Element.prototype, proto = (k) => P[k];
  const doc = Node.prototype.getRootNode.call(this, {composed: true});
  const out = {connected: doc === document, rendered: false, disabled: false, x: 0, y: 0, hit: "offscreen", key: "", file: false, picker: false,
    opens: false, checkable: false, checked: false};
  if (!out.connected || !(this instanceof Element)) { out.connected = out.connected && this instanceof Element; return out; }
  if (watch && globalThis.acceptanceClicks) {
    globalThis.acceptanceClicks.n = 0;
  } else if (watch) {
    const count = {n: 0};
    count.listener = (e) => { if (e.isTrusted) count.n++; };
    EventTarget.prototype.addEventListener.call(window, "click", count.listener, {capture: true, passive: true});
    globalThis.acceptanceClicks = count;
  }
  const matches = (e, s) => proto("matches").call(e, s);
  const get = (e, n) => proto("getAttribute").call(e, n);
  const control = this instanceof HTMLLabelElement && this.control ? this.control : this;
  out.disabled = matches(control, ":disabled") || proto("closest").call(control, '[aria-disabled="true"]') !== null;
  const style = getComputedStyle(this);
  const box = () => {
    let best = null;
    for (const r of proto("getClientRects").call(this)) {
      const l = Math.max(r.left, 0), t = Math.max(r.top, 0), R = Math.min(r.right, innerWidth), B = Math.min(r.bottom, innerHeight);
      const inView = R - l >= 1 && B - t >= 1;
      if (r.width > 0 && r.height > 0 && (!best || (inView && !best.inView))) best = {inView, x: (l + R) / 2, y: (t + B) / 2};
    }
    return best;
  };
  let b = box();
  out.rendered = b !== null && style.visibility === "visible" && style.display !== "none";
  if (control instanceof HTMLInputElement) {
    const t = control.type;
    out.file = t === "file";
    out.picker = t === "color";
    out.checkable = t === "checkbox" || t === "radio";
    out.checked = control.checked;
    if (out.checkable || ["button", "submit", "reset", "image"].includes(t)) out.key = " ";
  } else if (control instanceof HTMLButtonElement) {
    out.key = " ";
  } else if (control.localName === "summary") {
    out.key = " ";
  } else if ((control instanceof HTMLAnchorElement || control instanceof HTMLAreaElement) && control.href) {
    out.key = "Enter";
  }
  const names = ["", "_self", "_parent", "_top"];
  const link = proto("closest").call(control, "a[href], area[href]");
  if (link && !names.includes((get(link, "target") || "").toLowerCase())) out.opens = true;
  const form = control instanceof HTMLButtonElement || control instanceof HTMLInputElement ? control.form : null;
  if (form && (control.type === "submit" || control.type === "image")) {
    const target = get(control, "formtarget") ?? get(form, "target") ?? "";
    if (!names.includes(target.toLowerCase())) out.opens = true;
  }
  if (!out.rendered || out.disabled) return out;
  if (!b.inView && scroll) {
    proto("scrollIntoViewIfNeeded").call(this, true);
    b = box();
  }
  if (!b || !b.inView) return out;
  // A scrolling ancestor can clip what the viewport shows; the hit test sees that as well. Asked of our own root, so that a closed
  // shadow root is seen from inside.
  const root = Node.prototype.getRootNode.call(this);
  const at = (x, y) => (root instanceof ShadowRoot ? ShadowRoot : Document).prototype.elementFromPoint.call(root, x, y);
  const reaches = (e) => {
    for (let n = e; n; n = n.parentNode || n.host) {
      if (n === this) return true;
      if (n instanceof HTMLLabelElement && n.control === this && e === n) return true;
    }
    return false;
  };
  let e = at(b.x, b.y);
  if (!reaches(e) && scroll) {
    proto("scrollIntoViewIfNeeded").call(this, true);
    const again = box();
    if (again && again.inView) { b = again; e = at(b.x, b.y); }
  }
  out.x = b.x; out.y = b.y;
  out.hit = reaches(e) ? "self" : "covered";
  return out;
}
