// Resolves with true when this document has been painted, or with false when frames are drawn and nothing is painted (an empty page).
// Chromium drops input that comes before the first paint of a document.
new Promise((done) => {
  let frames = 0;
  const step = () => {
    const painted = performance.getEntriesByType("paint").length > 0;
    if (painted && frames > 0) return done(true);
    if (++frames > 20) return done(false);
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})
