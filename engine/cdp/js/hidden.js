// Returns how many controls of this document, open shadow roots included, are hidden from everybody.
(() => {
  const controls = 'button, input, select, textarea, a[href], summary, [contenteditable=""], [contenteditable="true"], [role="button"], [role="link"], [role="checkbox"]';
  const count = (root) => {
    let n = 0;
    for (const e of root.querySelectorAll("*")) {
      if (e.matches(controls) && (!e.checkVisibility({visibilityProperty: true}) || e.closest('[aria-hidden="true"], [inert]'))) n++;
      if (e.shadowRoot) n += count(e.shadowRoot);
    }
    return n;
  };
  return count(document);
})()
