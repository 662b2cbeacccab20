"""The style and the script of the page of a run. Both stand in it; its policy allows these two, by their digests."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --line: #d5dbe3; --dim: #5b6775; --soft: #f2f5f8; --ink: #16202c; --paper: #fff;
  --mark: #ff2d55; --good: #1a7f4b; --bad: #c3261b; --turn: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --line: #35404d; --dim: #9aa7b5; --soft: #1b242e; --ink: #e6ebf1;
  --paper: #11181f; --good: #57c48b; --bad: #ff8278; --turn: #e3b341; } }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.5 system-ui, "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif;
  color: var(--ink); background: var(--paper); }
header { padding: 14px 20px; border-bottom: 1px solid var(--line); }
h1 { margin: 0 0 4px; font-size: 19px; } h2 { margin: 0 0 8px; font-size: 17px; }
h3 { margin: 14px 0 4px; font-size: 13px; color: var(--dim); font-weight: 600; }
header p { margin: 0; color: var(--dim); }
main { display: grid; grid-template-columns: 250px minmax(0, 1fr); }
nav { border-right: 1px solid var(--line); padding: 10px 0; }
.paged nav { height: calc(100vh - 76px); overflow: auto; position: sticky; top: 0; }
nav a { display: block; padding: 4px 16px; color: inherit; text-decoration: none; overflow: hidden;
  text-overflow: ellipsis; white-space: nowrap; border-left: 3px solid transparent; }
nav a:hover { background: var(--soft); } nav a.now { background: var(--soft); border-left-color: var(--mark); }
nav a.bad { color: var(--bad); } nav a.turn { color: var(--turn); }
section { padding: 16px 20px; display: grid; grid-template-columns: minmax(220px, 380px) minmax(0, 1fr); gap: 24px;
  align-items: start; }
.paged section { display: none; } .paged section.now { display: grid; }
figure { margin: 0; }
figure svg, figure img { width: 100%; height: auto; display: block; border: 1px solid var(--line);
  border-radius: 10px; }
figcaption { color: var(--dim); font-size: 12px; margin-top: 4px; }
.none { border: 1px dashed var(--line); border-radius: 10px; padding: 60px 12px; text-align: center;
  color: var(--dim); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; padding: 8px 10px; background: var(--soft);
  border-radius: 8px; font: 12.5px/1.5 ui-monospace, "Noto Sans Mono CJK SC", monospace; max-height: 420px;
  overflow: auto; }
p { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.bad { color: var(--bad); } .turn { color: var(--turn); } .good { color: var(--good); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: 1px 14px 1px 0; text-align: right; font-weight: normal; }
td:first-child, th:first-child { text-align: left; } th { color: var(--dim); font-size: 12px; }
summary { cursor: pointer; color: var(--dim); margin-top: 14px; } details h3 { margin-top: 8px; }
#keys { float: right; color: var(--dim); font-size: 13px; } html:not(.paged) #keys { display: none; }
@media (max-width: 800px) { main, section { grid-template-columns: 1fr; } nav { display: none; } }
@media print { nav, #keys { display: none; } .paged section { display: grid; break-inside: avoid; } }
"""

SCRIPT = """
(function () {
  var steps = Array.prototype.slice.call(document.querySelectorAll("section"));
  var links = Array.prototype.slice.call(document.querySelectorAll("nav a"));
  var now = 0;
  function show(place) {
    now = Math.max(0, Math.min(steps.length - 1, place));
    steps.forEach(function (step, at) { step.classList.toggle("now", at === now); });
    links.forEach(function (link, at) { link.classList.toggle("now", at === now); });
    if (links[now]) { links[now].scrollIntoView({ block: "nearest" }); }
    if (steps[now] && location.hash !== "#" + steps[now].id) { history.replaceState(null, "", "#" + steps[now].id); }
  }
  function asked() {
    var at = steps.findIndex(function (step) { return "#" + step.id === location.hash; });
    show(at < 0 ? 0 : at);
  }
  document.documentElement.classList.add("paged");
  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey) { return; }
    var by = { ArrowRight: now + 1, ArrowDown: now + 1, j: now + 1, " ": now + 1, ArrowLeft: now - 1, ArrowUp: now - 1,
      k: now - 1, Home: 0, End: steps.length - 1 };
    if (event.target.tagName === "SUMMARY" && event.key === " ") { return; }
    if (event.key in by) { event.preventDefault(); show(by[event.key]); }
  });
  window.addEventListener("hashchange", asked);
  asked();
})();
"""
