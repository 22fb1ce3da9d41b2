"use strict";
(function () {
  document.documentElement.classList.add("js");
  var buttons = document.querySelectorAll(".filter button");
  buttons.forEach(function (b) {
    b.addEventListener("click", function () {
      buttons.forEach(function (o) { o.setAttribute("aria-pressed", String(o === b)); });
      var want = b.getAttribute("data-f");
      document.querySelectorAll("[data-outcome]").forEach(function (r) {
        r.classList.toggle("hide", want !== "" && r.getAttribute("data-outcome") !== want);
      });
      document.querySelectorAll("tbody[data-claim]").forEach(function (g) {
        g.classList.toggle("hide", !g.querySelector("[data-outcome]:not(.hide)"));
      });
    });
  });
  document.querySelectorAll("section[data-attempt]").forEach(function (s) {
    var film = s.querySelector("video"), now = s.querySelector(".now");
    if (!film) { return; }
    s.addEventListener("click", function (e) {
      var a = e.target.closest ? e.target.closest("[data-s]") : null;
      if (!a) { return; }
      e.preventDefault();
      film.pause();
      film.currentTime = parseFloat(a.getAttribute("data-s"));
      var box = film.getBoundingClientRect();
      if (box.bottom < 40 || box.top > window.innerHeight - 40) { film.scrollIntoView({ block: "center" }); }
    });
    if (!now) { return; }
    var x0 = parseFloat(now.getAttribute("data-x0")), x1 = parseFloat(now.getAttribute("data-x1")), len = parseFloat(now.getAttribute("data-len"));
    var move = function () {
      var x = x0 + (x1 - x0) * Math.min(1, film.currentTime / len);
      now.setAttribute("x1", x); now.setAttribute("x2", x);
      now.classList.add("on");
      if (!film.paused) { window.requestAnimationFrame(move); }
    };
    ["timeupdate", "seeked", "play"].forEach(function (n) { film.addEventListener(n, move); });
  });
  var open = function () {
    var at = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    for (var d = at; d; d = d.parentElement) { if (d.tagName === "DETAILS") { d.open = true; } }
    if (at) { at.scrollIntoView({ block: "center" }); }
  };
  window.addEventListener("hashchange", open);
  open();
})();
