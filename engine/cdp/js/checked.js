// Returns the checked state of this checkbox or radio, or of the one that this label stands for.
function () {
  const control = this instanceof HTMLLabelElement && this.control ? this.control : this;
  return control.checked === true;
}
