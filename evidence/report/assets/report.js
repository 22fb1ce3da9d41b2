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
    var film = s.querySelector("video"), desk = s.querySelector("[data-desk]");
    var seek = function (seconds) {
      film.pause();
      film.currentTime = seconds;
      var box = film.getBoundingClientRect();
      if (box.bottom < 40 || box.top > window.innerHeight - 40) { film.scrollIntoView({ block: "center" }); }
    };
    if (film) {
      s.addEventListener("click", function (e) {
        var a = e.target.closest ? e.target.closest("[data-s]") : null;
        if (!a || a.closest("svg")) { return; }
        e.preventDefault();
        seek(parseFloat(a.getAttribute("data-s")));
      });
    }
    if (desk) { timeline(desk, film, seek); }
  });

  // The desk on one line of time. Marks are thin: the pointer means the nearest one of its lane. Of all marks one is in the order of the tab key,
  // and arrow keys walk along a lane and between lanes.
  function timeline(desk, film, seek) {
    var svg = desk.querySelector("svg"), tell = desk.querySelector("[data-tell]"), head = desk.querySelector(".now"), quiet = tell.textContent;
    var lanes = [], hot = null, kept = null;
    svg.querySelectorAll("g[data-y]").forEach(function (g) {
      var marks = [];
      g.querySelectorAll("a").forEach(function (a) {
        var title = a.querySelector("title"), x = parseFloat(a.getAttribute("data-x"));
        a.setAttribute("aria-label", title.textContent);
        title.remove();
        a.setAttribute("tabindex", "-1");
        marks.push({ a: a, x: x, w: parseFloat(a.getAttribute("data-w") || "0"), lane: lanes.length });
      });
      marks.sort(function (m, n) { return m.x - n.x; });
      lanes.push({ y: parseFloat(g.getAttribute("data-y")), h: parseFloat(g.getAttribute("data-h")), marks: marks });
    });
    var first = lanes.reduce(function (found, l) { return found || l.marks[0]; }, null);
    if (first) { first.a.setAttribute("tabindex", "0"); }
    var show = function (m) {
      if (hot) { hot.a.classList.remove("hot"); }
      hot = m || kept;
      if (hot) { hot.a.classList.add("hot"); }
      tell.textContent = hot ? hot.a.getAttribute("aria-label") : quiet;
      tell.classList.toggle("bad", !!hot && !!hot.a.querySelector(".charged,.bad"));
    };
    var place = function (e) {
      var box = svg.getBoundingClientRect();
      return { x: (e.clientX - box.left) / box.width * 100, y: e.clientY - box.top, px: 100 / box.width };
    };
    var near = function (p) {
      var best = null, least = 12 * p.px;
      lanes.forEach(function (l) {
        if (p.y < l.y || p.y >= l.y + l.h) { return; }
        l.marks.forEach(function (m) {
          var d = Math.max(m.x - p.x, p.x - m.x - m.w, 0);
          if (d < least || d === least && best && m.w < best.w) { best = m; least = d; }
        });
      });
      return best;
    };
    var of = function (a) {
      var found = null;
      lanes.forEach(function (l) { l.marks.forEach(function (m) { if (m.a === a) { found = m; } }); });
      return found;
    };
    var choose = function (m) {
      kept = m;
      show(m);
      if (m && film && m.a.hasAttribute("data-s")) { seek(parseFloat(m.a.getAttribute("data-s"))); }
    };
    svg.addEventListener("pointermove", function (e) { show(near(place(e))); });
    svg.addEventListener("pointerleave", function () { show(null); });
    svg.addEventListener("click", function (e) {
      e.preventDefault();
      var p = place(e), m = e.detail === 0 ? of(e.target.closest("a")) : near(p);
      choose(m);
      if (!m && film && head && e.detail > 0) {
        var x0 = parseFloat(head.getAttribute("data-x0")), x1 = parseFloat(head.getAttribute("data-x1"));
        seek(Math.min(1, Math.max(0, (p.x - x0) / (x1 - x0))) * parseFloat(head.getAttribute("data-len")));
      }
    });
    svg.addEventListener("focusin", function (e) {
      var m = of(e.target.closest("a"));
      if (m) { kept = m; show(m); }
    });
    svg.addEventListener("keydown", function (e) {
      var m = of(document.activeElement), to = null;
      if (!m) { return; }
      var l = lanes[m.lane].marks, i = l.indexOf(m), step = { ArrowUp: -1, ArrowDown: 1 }[e.key];
      if (e.key === "ArrowRight") { to = l[i + 1]; }
      if (e.key === "ArrowLeft") { to = l[i - 1]; }
      if (e.key === "Home") { to = l[0]; }
      if (e.key === "End") { to = l[l.length - 1]; }
      for (var n = m.lane + (step || lanes.length); !to && lanes[n]; n += step) {
        to = lanes[n].marks.reduce(function (best, o) { return best && Math.abs(best.x - m.x) <= Math.abs(o.x - m.x) ? best : o; }, null);
      }
      if ((e.key === "Enter" || e.key === " ") && !m.a.hasAttribute("href")) { choose(m); }
      if (!to && !step && ["Home", "End", "ArrowLeft", "ArrowRight", " "].indexOf(e.key) < 0) { return; }
      e.preventDefault();
      if (to) {
        m.a.setAttribute("tabindex", "-1");
        to.a.setAttribute("tabindex", "0");
        to.a.focus();
        kept = to;
        show(to);
      } else if (e.key === " ") { choose(m); }
    });
    if (!film || !head) { return; }
    var x0 = parseFloat(head.getAttribute("data-x0")), x1 = parseFloat(head.getAttribute("data-x1")), len = parseFloat(head.getAttribute("data-len"));
    var line = head.querySelector("line"), knob = head.querySelector("circle"), box = svg.parentElement;
    var move = function () {
      var x = x0 + (x1 - x0) * Math.min(1, film.currentTime / len), at = x.toFixed(3) + "%";
      line.setAttribute("x1", at); line.setAttribute("x2", at); knob.setAttribute("cx", at);
      lanes.forEach(function (l) { l.marks.forEach(function (m) { if (m.w) { m.a.classList.toggle("at", m.x <= x && x <= m.x + m.w); } }); });
      var place = x / 100 * svg.clientWidth - box.scrollLeft;
      if (place < 0 || place > box.clientWidth) { box.scrollLeft += place - box.clientWidth / 2; }
      if (!film.paused) { window.requestAnimationFrame(move); }
    };
    ["timeupdate", "seeking", "seeked", "play", "loadedmetadata"].forEach(function (n) { film.addEventListener(n, move); });
    move();
  }
  var open = function () {
    var at = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    for (var d = at; d; d = d.parentElement) { if (d.tagName === "DETAILS") { d.open = true; } }
    if (at) { at.scrollIntoView({ block: "center" }); }
  };
  window.addEventListener("hashchange", open);
  open();
})();
