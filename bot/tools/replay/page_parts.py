"""The style and the script of a run's page. Both are part of it; its policy allows only these two, by their digests.

Without the script all steps are one below the other, below a list of them that can be folded. With it one is shown at a
time; in a narrow window the buttons and the list are at the bottom, within reach of a thumb.
"""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --line: #d5dbe3; --dim: #5b6775; --soft: #f2f5f8; --ink: #16202c; --paper: #fff;
  --mark: #ff2d55; --good: #1a7f4b; --bad: #c3261b; --turn: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --line: #35404d; --dim: #9aa7b5; --soft: #1b242e; --ink: #e6ebf1;
  --paper: #11181f; --good: #57c48b; --bad: #ff8278; --turn: #e3b341; } }
* { box-sizing: border-box; }
html { overscroll-behavior-x: none; -webkit-text-size-adjust: 100%; }
body { margin: 0; font: 15px/1.5 system-ui, "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif;
  color: var(--ink); background: var(--paper); }
header { padding: 14px 20px; border-bottom: 1px solid var(--line); }
h1 { margin: 0 0 2px; font-size: 19px; overflow-wrap: anywhere; }
h2 { margin: 0; font-size: 17px; overflow-wrap: anywhere; grid-area: head; }
h3 { margin: 14px 0 4px; font-size: 13px; color: var(--dim); font-weight: 600; }
.dim { color: var(--dim); font-size: 13px; }
.outcome { font-weight: 600; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; line-clamp: 3;
  overflow: hidden; }
main { display: grid; grid-template-columns: 250px minmax(0, 1fr); } main.alone { display: block; }
#bar { align-self: start; position: sticky; top: 0; padding: 10px; display: grid; gap: 8px;
  grid-template: "before after" auto "list list" auto / 1fr 1fr; }
#before { grid-area: before; } #bar details { grid-area: list; } #after { grid-area: after; }
#bar summary { display: none; }
button { font: inherit; color: inherit; background: var(--soft); border: 1px solid var(--line); border-radius: 10px;
  min-height: 36px; padding: 0 14px; cursor: pointer; white-space: nowrap; touch-action: manipulation; }
button:disabled { opacity: 0.4; cursor: default; } html:not(.paged) button { display: none; }
nav { overflow: auto; max-height: calc(100vh - 70px); overscroll-behavior: contain; }
nav a { display: block; padding: 4px 10px; color: inherit; text-decoration: none; overflow: hidden;
  text-overflow: ellipsis; white-space: nowrap; border-left: 4px solid transparent; }
nav a:hover { background: var(--soft); }
nav a[aria-current] { background: var(--soft); border-left-color: var(--mark); font-weight: 700; }
nav a.bad { color: var(--bad); } nav a.turn { color: var(--turn); }
#shown { border-left: 1px solid var(--line); min-width: 0; } .alone #shown { border: 0; }
section { padding: 16px 20px; display: grid; gap: 10px 24px; align-items: start;
  grid-template: "picture head" auto "picture words" 1fr / min(380px, 40%) minmax(0, 1fr); }
#end, section.end { grid-template: "head" auto "words" auto / minmax(0, 1fr); }
section > div { grid-area: words; min-width: 0; } section > div > h3:first-child { margin-top: 0; }
.paged section { display: none; } .paged section.now { display: grid; }
figure { margin: 0; grid-area: picture; }
figure svg, figure img { max-width: 100%; width: auto; height: auto; display: block; border: 1px solid var(--line);
  border-radius: 10px; }
figcaption { color: var(--dim); font-size: 12px; margin-top: 4px; }
.paged figure svg, .paged figure img { max-height: 82vh; }
.none { border: 1px dashed var(--line); border-radius: 10px; padding: 60px 12px; text-align: center;
  color: var(--dim); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; padding: 8px 10px; background: var(--soft);
  border-radius: 8px; font: 12.5px/1.5 ui-monospace, "Noto Sans Mono CJK SC", monospace; max-height: 420px;
  overflow: auto; }
p { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.bad { color: var(--bad); } .turn { color: var(--turn); } .good { color: var(--good); }
ul { margin: 0; padding: 0; list-style: none; }
li { padding: 8px 0; border-bottom: 1px solid var(--line); } ul + p { margin-top: 10px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: 1px 14px 1px 0; text-align: right; font-weight: normal; }
td:first-child, th:first-child { text-align: left; } th { color: var(--dim); font-size: 12px; }
summary { cursor: pointer; color: var(--dim); } section summary { margin-top: 14px; } details h3 { margin-top: 8px; }
#how { float: right; color: var(--dim); font-size: 13px; } #how .hand { display: none; }
html:not(.paged) #how { display: none; }
@media (hover: none) and (pointer: coarse), (max-width: 800px) { #how .keys { display: none; }
  #how .hand { display: inline; } }
@media (max-width: 800px) {
  header { padding: 10px 14px; } main { display: block; } #shown { border: 0; }
  #how { float: none; margin-top: 4px; }
  section { padding: 12px 14px 18px; grid-template: "head" auto "picture" auto "words" auto / minmax(0, 1fr); }
  .paged figure svg, .paged figure img { max-height: 56vh; margin: 0 auto; }
  #bar { display: block; position: static; } #bar summary { display: block; padding: 6px 0; }
  nav { max-height: none; } nav a { padding: 10px 12px; }
  .paged header { display: flex; flex-direction: column; } .paged #how { order: 1; }
  .paged #shown { padding-bottom: 76px; }
  .paged #bar { position: fixed; inset: auto 0 0 0; z-index: 1; display: grid; align-items: center; padding: 8px 12px;
    grid-template: "before list after" auto / auto minmax(0, 1fr) auto;
    background: var(--paper); border-top: 1px solid var(--line); }
  .paged #bar summary { min-height: 48px; display: flex; flex-direction: column; align-items: center;
    justify-content: center; line-height: 1.3; font-size: 13px; padding: 0; }
  .paged #bar summary::before { content: "▴"; line-height: 9px; }
  .paged #bar details[open] summary::before { content: "▾"; }
  .paged button { min-height: 48px; } table { font-size: 13px; } td, th { padding-right: 8px; }
  .paged nav { position: absolute; inset: auto 0 100% 0; max-height: 60vh; background: var(--paper);
    border-top: 1px solid var(--line); box-shadow: 0 -6px 18px rgb(0 0 0 / 25%); }
}
@media print { #bar, #how { display: none; } main { display: block; } #shown { border: 0; padding: 0; }
  .paged section { display: grid; break-inside: avoid; } }
"""

# It is in the head: a fragment in the address is removed before the page has any target to jump to.
SCRIPT = """
(function () {
  var root = document.documentElement, narrow = window.matchMedia("(max-width: 800px)");
  var asked = location.hash, now = 0, steps, names, links, main, list, nav, before, after;
  function address(hash) {
    try { history.replaceState(null, "", location.href.split("#")[0] + hash); } catch (refused) { return; }
  }
  if (asked) { address(""); }
  root.classList.add("paged");

  function keepInSight(link) {
    var box = nav.getBoundingClientRect(), its = link.getBoundingClientRect();
    var lowest = Math.min(box.bottom, window.innerHeight);  // the list may reach below the window
    if (its.top < box.top) { nav.scrollTop -= box.top - its.top; }
    if (its.bottom > lowest) { nav.scrollTop += its.bottom - lowest; }
  }
  function show(place) {
    now = Math.max(0, Math.min(steps.length - 1, place));
    steps.forEach(function (step, at) { step.classList.toggle("now", at === now); });
    links.forEach(function (link) { link.removeAttribute("aria-current"); });
    if (!list) { return; }
    links[now].setAttribute("aria-current", "step");
    document.getElementById("place").textContent = links[now].dataset.place;
    before.disabled = now === 0;
    after.disabled = now === steps.length - 1;
    list.open = !narrow.matches;
    keepInSight(links[now]);
  }
  function go(place) {
    show(place);
    address(names[now]);
    if (main.getBoundingClientRect().top < 0) { main.scrollIntoView(); }
  }
  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) { return; }
    var by = { ArrowRight: now + 1, ArrowDown: now + 1, j: now + 1, " ": now + 1, ArrowLeft: now - 1, ArrowUp: now - 1,
      k: now - 1, Home: 0, End: steps.length - 1 };
    if (event.key === " " && /^(SUMMARY|BUTTON)$/.test(event.target.tagName)) { return; }
    if (event.key in by) { event.preventDefault(); go(by[event.key]); }
  }
  // A quick stroke across; not one of two fingers, of a page that is magnified, or from the edge, which means Back.
  function strokes() {
    var from = null;
    main.addEventListener("touchstart", function (event) {
      var touch = event.touches[0], zoomed = window.visualViewport && window.visualViewport.scale > 1.05;
      var edge = touch.clientX < 24 || touch.clientX > window.innerWidth - 24;
      var alone = event.touches.length === 1 && !zoomed && !edge && !event.target.closest("#bar");
      from = alone ? { x: touch.clientX, y: touch.clientY, at: event.timeStamp } : null;
    }, { passive: true });
    main.addEventListener("touchend", function (event) {
      var touch = event.changedTouches[0], begun = from;
      from = null;
      if (!begun || event.timeStamp - begun.at > 700 || String(window.getSelection())) { return; }
      var across = touch.clientX - begun.x, down = touch.clientY - begun.y;
      if (Math.abs(across) > 60 && Math.abs(across) > 2 * Math.abs(down)) { go(across < 0 ? now + 1 : now - 1); }
    }, { passive: true });
  }
  document.addEventListener("DOMContentLoaded", function () {
    function all(which) { return Array.prototype.slice.call(document.querySelectorAll(which)); }
    steps = all("section");
    links = all("nav a");
    main = document.querySelector("main");
    list = document.querySelector("#bar details");
    names = steps.map(function (step) {
      var name = "#" + step.id;
      step.className = step.id === "end" ? "end" : "";
      step.removeAttribute("id");  // what is shown is chosen here; the browser is to find nothing to scroll to
      return name;
    });
    if (list) {
      nav = document.querySelector("nav");
      before = document.getElementById("before");
      after = document.getElementById("after");
      before.addEventListener("click", function () { go(now - 1); });
      after.addEventListener("click", function () { go(now + 1); });
      links.forEach(function (link, at) {
        link.addEventListener("click", function (event) { event.preventDefault(); go(at); });
      });
      list.addEventListener("toggle", function () { keepInSight(links[now]); });
      narrow.addEventListener("change", function () { list.open = !narrow.matches; });
      document.addEventListener("click", function (event) {
        if (narrow.matches && !event.target.closest("#bar details")) { list.open = false; }
      });
      document.addEventListener("keydown", key);
      window.addEventListener("hashchange", function () {
        if (names.indexOf(location.hash) >= 0) { go(names.indexOf(location.hash)); }
      });
      strokes();
    }
    show(Math.max(0, names.indexOf(asked)));
    if (names.indexOf(asked) >= 0) { address(asked); }
  });
})();
"""
