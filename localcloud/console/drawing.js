// SPDX-License-Identifier: Apache-2.0
// The network of a run, as a drawing and as a table with the same content.
import { clean, cut, draw, make, plural, table } from "./elements.js";
import { layoutOf } from "./layout.js";

const NARROW = matchMedia("(max-width: 40rem)");
const LETTER = 7; // the width of a character
const TITLED = 8; // rows shown in the title of a line
const WORDS = { used: "used", allowed: "allowed, never used", dropped: "dropped" };

export function network(content, ranks) {
  const made = make("div");
  const { used, unused } = content.rules;
  if (content.reason) made.append(make("p", `No rule was enforced: ${content.reason}`, "warn"));
  if (content.note) made.append(make("p", content.note, "quiet"));
  if (!content.rows.length) return made;
  const counted = `${plural(content.connections, "connection")} through ${plural(used, "rule")}`;
  const dropped = content.dropped ? `${plural(content.dropped, "packet")} dropped` : "nothing dropped";
  const sum = make("p", `${counted}; ${plural(unused, "rule")} never used; `);
  sum.append(make("span", dropped, content.dropped ? "bad" : ""));
  const layout = layoutOf(content.roles, content.rows, NARROW.matches);
  const figure = make("figure");
  figure.append(legend(), picture(layout, content, sum.textContent, ranks));
  made.append(sum, figure, connections(content, layout));
  return made;
}

function legend() {
  const made = make("ul", undefined, "legend");
  for (const kind of Object.keys(WORDS)) {
    const entry = make("li");
    const attributes = { viewBox: "0 0 14 7", "aria-hidden": "true", class: `edge ${kind}` };
    const swatch = draw("svg", attributes, draw("path", { d: "M0 4H14" }));
    entry.append(swatch, make("span", WORDS[kind]));
    made.append(entry);
  }
  return made;
}

function picture({ width, height, boxes, lines }, content, summary, ranks) {
  const states = new Map(ranks.map((one) => [one.rank, one.state]));
  const roles = content.roles.map(({ name, nodes }) => `${name} (${plural(nodes.length, "node")})`).join(", ");
  const label = clean(`Network of ${roles}: ${summary}. The table below has every connection.`);
  const size = { viewBox: `0 0 ${width} ${height}`, width, height };
  const made = draw("svg", { ...size, class: "drawing", role: "img", "aria-label": label });
  for (const line of lines) made.append(edge(line));
  for (const [name, box] of boxes) made.append(box.role ? roleBox(name, box, states) : outsideBox(name, box));
  for (const line of lines) made.append(badge(line));
  return made;
}

function roleBox(name, box, states) {
  const nodes = plural(box.role.nodes.length, "node");
  const made = draw("g", {}, draw("title", {}, `${name}: ${nodes}`));
  made.append(draw("rect", { x: box.x, y: box.y, width: box.width, height: box.height, rx: 4, class: "box" }));
  const count = box.role.nodes.length;
  const title = cut(name, (box.width - (count > 1 ? 46 : 12)) / LETTER) + (count > 1 ? ` × ${count}` : "");
  made.append(draw("text", { x: box.x + 8, y: box.y + 16, class: "box-name" }, title));
  box.role.nodes.forEach((node, at) => {
    const x = box.x + 8 + (at % box.columns) * (box.side + 3);
    const y = box.y + 24 + Math.floor(at / box.columns) * (box.side + 3);
    made.append(nodeMark(node, x, y, box, states.get(node.rank) ?? ""));
  });
  return made;
}

function nodeMark(node, x, y, { side, numbered }, state) {
  const drops = node.dropped ? `, ${plural(node.dropped, "packet")} dropped` : "";
  const made = draw("g", { class: node.dropped ? "bad" : toneOf(state) });
  made.append(draw("title", {}, `rank ${node.rank}, ${node.name}, ${node.address || "no address"}, ${state}${drops}`));
  made.append(draw("rect", { x, y, width: side, height: side, rx: 3, class: "node" }));
  const middle = { x: x + side / 2, y: y + side / 2 + 4, class: "node-rank" };
  if (numbered) made.append(draw("text", middle, String(node.rank)));
  return made;
}

export function toneOf(state) {
  const word = state.toLowerCase();
  if (word === "succeeded") return "good";
  if (["failed", "needs_attention", "stopped"].includes(word)) return "bad";
  if (["canceled", "canceling", "retrying"].includes(word)) return "warn";
  return "alive";
}

function outsideBox(name, box) {
  const made = draw("g", { class: "outside" }, draw("title", {}, name));
  made.append(draw("rect", { x: box.x, y: box.y, width: box.width, height: box.height, rx: 4, class: "box" }));
  made.append(draw("text", { x: box.x + 6, y: box.y + box.height / 2 + 4 }, cut(name, (box.width - 8) / LETTER)));
  return made;
}

function titleOf({ kind, from, to, rows, both }) {
  const counted = ({ what, count }) => (count ? `${what} (${count})` : what);
  const reasons = rows.slice(0, TITLED).map((row) => (row.why ? `${counted(row)}: ${row.why}` : counted(row)));
  return [`${from} ${both ? "and" : "to"} ${to}: ${WORDS[kind]}`, ...reasons].join("\n");
}

function arrow([x, y, way]) {
  return draw("polygon", { points: `${x},${y} ${x - 7 * way},${y - 4} ${x - 7 * way},${y + 4}` });
}

function edge({ pair, path, head, tail }) {
  const title = draw("title", {}, titleOf(pair));
  const made = draw("g", { class: `edge ${pair.kind}` }, title, draw("path", { d: path }), arrow(head));
  if (pair.both) made.append(arrow(tail));
  return made;
}

// Dropped packets have a mark of another shape, for readers who cannot distinguish colours.
function badge({ pair, number, badge: [x, y] }) {
  const made = draw("g", { class: `edge ${pair.kind}` }, draw("title", {}, titleOf(pair)));
  if (pair.kind === "dropped") made.append(draw("rect", { x: x - 8, y: y - 8, width: 16, height: 16, class: "badge" }));
  else made.append(draw("circle", { cx: x, cy: y, r: 8, class: "badge" }));
  made.append(draw("text", { x, y: y + 3.5, class: "badge-text" }, String(number)));
  return made;
}

function placesOf(names, roles) {
  return roles.length > 1 && roles.every(({ name }) => names.includes(name)) ? "every node" : names.join(", ");
}

function connections({ rows, left, roles }, { lines }) {
  const numbers = new Map();
  for (const { pair, number } of lines) {
    for (const row of pair.rows) numbers.set(row, [...(numbers.get(row) ?? []), number]);
  }
  const cells = rows.map((row) => {
    const state = { used: `${row.count} ×`, allowed: "never used", dropped: plural(row.count, "packet") }[row.kind];
    return [
      (numbers.get(row) ?? []).join(" "), placesOf(row.from, roles), placesOf(row.to, roles), row.what,
      make("span", row.kind === "dropped" ? `dropped: ${state}` : state, row.kind), row.why,
    ];
  });
  const title = `Connections and rules${left ? ` (${left} more are not shown)` : ""}`;
  const columns = ["#", "from", "to", "ports", "used", "why"];
  return table({ title, columns, rows: cells, className: "wide tall", isNamed: !left });
}
