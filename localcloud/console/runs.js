// SPDX-License-Identifier: Apache-2.0
// The training runs: one line each. An open run also shows its curves, ranks, network and output.
import { curves } from "./curves.js";
import { network, toneOf } from "./drawing.js";
import { cut, duration, facts, make, number, plural, scrolling, table } from "./elements.js";
import { openable, section } from "./sections.js";

export const MOST_OPEN = 3; // up to this many active runs are opened automatically; without one, the newest run
const LISTED = 12; // runs listed; older ones are in a fold
const METRICS = 4, LONGEST = 24;

export function keyOf(run) {
  return `run ${run.key}`;
}

export function openAtFirst(runs) {
  const living = runs.filter(({ over }) => !over).slice(0, MOST_OPEN);
  return new Set((living.length ? living : runs.slice(0, 1)).map(keyOf));
}

export function runsSection(content, details, open, now) {
  const items = content.runs.map((run) => runItem(run, details.get(run.key), open.has(keyOf(run)), now));
  const older = items.splice(LISTED);
  if (older.length) {
    items.push(openable("older runs", make("summary", plural(older.length, "older run"))));
    items.at(-1).append(...older);
  }
  return section(content, items);
}

function runItem(run, details, open, now) {
  const summary = make("summary");
  const states = Object.entries(run.states).map(([state, count]) => `${count} ${state.toLowerCase()}`);
  const about = [
    run.stack, run.attempt ? `attempt ${run.attempt}` : "", plural(run.nodes, "node"),
    states.length > 1 ? states.join(", ") : "", `accepted ${run.accepted.slice(0, 19).replace("T", " ")}`,
  ];
  summary.append(make("span", run.title, "name"), make("span", run.state, `mark ${toneOf(run.state)}`), " ");
  summary.append(make("span", about.filter(Boolean).join(" · "), "state"));
  const made = openable(keyOf(run), summary, "run", open);
  if (details) made.append(...body(run, details, now));
  else made.append(make("p", "reading …", "quiet"));
  return made;
}

function body(run, details, now) {
  const parts = [
    ...(details.cause ? [make("p", details.cause, "bad")] : []),
    make("h3", "Progress"), curves(details.curves), make("h3", "Ranks"), ranks(details.ranks, now),
    make("h3", "Network"), network(details.network, details.ranks),
    make("h3", "Output"), output(details.lines, run.title),
  ];
  const more = openable(`facts ${run.key}`, make("summary", "Names and times"));
  more.append(facts(details.facts));
  return [...parts, more];
}

function output(lines, title) {
  if (!lines.length) return make("p", "Nothing was printed to a log.", "quiet");
  return scrolling(`output of ${title}`, make("pre", lines.join("\n")), "");
}

function ranks(rows, now) {
  const names = [...new Set(rows.flatMap(({ metrics }) => metrics.map(([name]) => name)))].slice(0, METRICS);
  const columns = ["rank", "node", "state", "for", "step", ...names.map((name) => cut(name, LONGEST)), "note"];
  const cells = rows.map((row) => {
    const values = new Map(row.metrics);
    const metrics = names.map((name) => (values.has(name) ? number(values.get(name)) : ""));
    return [
      String(row.rank), row.node, make("span", row.state, toneOf(row.state)), lasted(row, now), step(row), ...metrics,
      row.note,
    ];
  });
  const numbers = [0, ...names.map((_, at) => 5 + at)];
  const title = plural(rows.length, "rank");
  return table({ columns, rows: cells, numbers, title, className: "wide tall", isNamed: true });
}

function lasted({ started, finished }, now) {
  if (!started) return "–";
  return duration(((finished ? Date.parse(finished) : now) - Date.parse(started)) / 1000);
}

function step({ step: done, total }) {
  if (done === null) return "–";
  if (total === null) return number(done);
  const made = make("span", `${number(done)} of ${number(total)} `);
  const share = Math.min(1, Math.max(0, done / total));
  const label = `${Math.round(100 * share)} percent`;
  made.append(make("progress", undefined, "", { value: String(share), max: "1", "aria-label": label }));
  return made;
}
