// Focuses this element and returns whether it holds the focus of its document now.
function () {
  HTMLElement.prototype.focus.call(this);
  const root = Node.prototype.getRootNode.call(this);
  return root.activeElement === this;
}
