// SPDX-License-Identifier: Apache-2.0
// Requests changes and shows them. It does nothing while the page is hidden.
import { facts, make, patchChildren } from "./elements.js";
import { MOST_OPEN, keyOf, openAtFirst, runsSection } from "./runs.js";
import { idOf, isOpen, plainSection, remember } from "./sections.js";

const EVERY_MILLISECONDS = 3000;
const TIMES = 20; // the pause between requests is at least this multiple of the answer's time
const sections = new Map(); // by title, with the tag of the shown content
const shown = new Map(); // the elements of all other sections, by title
const details = new Map(); // of runs that were opened, by key
let place = [];
let atFirst = null;
let timer = 0;
let working = false;
let again = false;

async function get(path) {
  const answer = await fetch(path, { cache: "no-store" });
  if (!answer.ok) throw new Error(`answered ${answer.status}`);
  return answer.json();
}

async function readSections() {
  const have = [...sections.values()].map(({ tag }) => tag).join(".");
  const data = await get(`/console/data?have=${have}`);
  place = data.facts;
  for (const section of data.sections) {
    if (sections.get(section.title)?.tag === section.tag) continue;
    sections.set(section.title, section);
    if (!section.runs) shown.set(section.title, plainSection(section));
  }
}

function openRuns() {
  const { runs } = sections.get("Runs");
  atFirst ??= runs.length ? openAtFirst(runs) : null;
  return runs.filter((run) => isOpen(keyOf(run), isOpenAtFirst(run)));
}

// A run that begins while the page is open is shown at once, unless there are many.
function isOpenAtFirst(run) {
  if (!atFirst) return false;
  if (!run.over && atFirst.size < MOST_OPEN) atFirst.add(keyOf(run));
  return atFirst.has(keyOf(run));
}

async function readRun(run) {
  const before = details.get(run.key);
  if (before?.final) return;
  try {
    const answer = await get(`/console/run?id=${encodeURIComponent(run.key)}&have=${before?.tag ?? ""}`);
    details.set(run.key, answer.ranks ? answer : before);
    details.get(run.key).final = run.over;
  } catch (error) {
    if (!before) throw error;
  }
}

function show() {
  const open = new Set(openRuns().map(keyOf));
  const made = [...sections.values()].map((section) => {
    return section.runs ? runsSection(section, details, open, Date.now()) : shown.get(section.title)?.cloneNode(true);
  });
  const about = make("section", undefined, "", { "aria-label": "This cloud" });
  about.dataset.key = "about";
  about.append(facts(place));
  patchChildren(document.getElementById("sections"), [...made.filter(Boolean), about]);
  const links = [...sections.values()]
    .filter(({ items, empty }) => empty || items?.length)
    .map(({ title }) => make("a", title, "", { href: `#${idOf(title)}` }));
  patchChildren(document.getElementById("contents"), links);
}

async function refresh() {
  if (working) {
    again = true;
    return;
  }
  working = true;
  clearTimeout(timer);
  const began = performance.now();
  const status = document.getElementById("status");
  try {
    await readSections();
    show();
    for (const run of openRuns()) await readRun(run);
    show();
    document.getElementById("clock").textContent = `as of ${new Date().toLocaleTimeString()}, read-only`;
    status.textContent = "";
  } catch (error) {
    status.textContent = `not answering (${error.message}); shown is what was there before`;
  }
  working = false;
  if (document.hidden) return;
  const pause = Math.max(EVERY_MILLISECONDS, TIMES * (performance.now() - began));
  timer = setTimeout(refresh, again ? 0 : pause);
  again = false;
}

document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()));
matchMedia("(max-width: 40rem)").addEventListener("change", () => sections.size && show());
// `toggle` does not bubble, so it is handled in the capture phase.
document.addEventListener("toggle", ({ target }) => {
  const key = target.dataset?.key;
  if (!key || isOpen(key, !target.open) === target.open) return;
  remember(key, target.open);
  if (target.open && target.classList.contains("run")) refresh();
}, true);
refresh();
