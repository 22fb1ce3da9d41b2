// Activates this element by script: its click event is not trusted. Returns nothing.
function () {
  HTMLElement.prototype.click.call(this);
}
