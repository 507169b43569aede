// SPDX-License-Identifier: Apache-2.0
// Curves of the metrics of a run's ranks, over the time since the run was accepted.
import { clean, draw, duration, make, number } from "./elements.js";

const WIDTH = 340, HEIGHT = 150, LEFT = 58, RIGHT = 10, TOP = 8, BOTTOM = 22;
const NOTHING =
  'No numbers were reported. Scripts append lines such as {"step": 10, "loss": 0.2} to $TRAINYARD_PROGRESS.';
const COLOURS = 8; // further ranks repeat the colours
const DOTTED = 25; // a line with at most this many points shows each point

export function curves({ names, left, ranks }) {
  const made = make("div", undefined, "curves");
  const isCounted = ranks.some(({ steps }) => steps.some((step) => step !== null));
  if (isCounted) made.append(figure("progress (steps)", ranks, (one) => one.steps));
  for (const name of names) made.append(figure(name, ranks, (one) => one.metrics[name]));
  if (!made.childNodes.length) return make("p", NOTHING, "quiet");
  if (left.length) made.append(make("p", `also reported: ${left.join(", ")}`, "quiet"));
  return made;
}

function figure(name, ranks, valuesOf) {
  const lines = ranks
    .map((one) => ({ rank: one.rank, times: one.times, values: valuesOf(one) }))
    .filter(({ values }) => values.some((value) => value !== null));
  const made = make("figure");
  made.dataset.key = name;
  const caption = make("figcaption");
  caption.append(make("strong", name), legend(lines));
  made.append(caption, plot(name, lines));
  return made;
}

function legend(lines) {
  if (lines.length > COLOURS) {
    const ends = lines.map(lastOf);
    const low = Math.min(...ends), high = Math.max(...ends);
    return make("span", `${lines.length} ranks, now ${number(low)} to ${number(high)}`, "quiet");
  }
  const made = make("ul", undefined, "legend");
  for (const line of lines) {
    const swatch = draw("svg", { viewBox: "0 0 14 7", "aria-hidden": "true", class: colour(line, lines) });
    swatch.append(draw("path", { d: "M0 4H14", class: "line" }));
    const entry = make("li");
    entry.append(swatch, make("span", `rank ${line.rank}: ${number(lastOf(line))}`));
    made.append(entry);
  }
  return made;
}

function colour({ rank }, lines) {
  return lines.length > COLOURS ? "rank-0 many" : `rank-${rank % COLOURS}`;
}

function lastOf({ values }) {
  return values.findLast((value) => value !== null);
}

function describe(name, lines) {
  const parts = lines.slice(0, COLOURS).map((line) => {
    const first = line.values.find((value) => value !== null);
    return `rank ${line.rank} from ${number(first)} to ${number(lastOf(line))}`;
  });
  const rest = lines.length - parts.length;
  return `${name} over time: ${parts.join(", ")}${rest > 0 ? `, and ${rest} more ranks` : ""}`;
}

// Compares halves, because the distance between two large numbers may overflow.
function scale(values, from, to) {
  const low = Math.min(...values), high = Math.max(...values);
  const distance = high / 2 - low / 2;
  const place = (value) => (distance ? from + ((value / 2 - low / 2) / distance) * (to - from) : (from + to) / 2);
  return { low, high, middle: low / 2 + high / 2, place };
}

function plot(name, lines) {
  const points = lines
    .flatMap(({ times, values }) => times.map((time, at) => [time, values[at]]))
    .filter(([, value]) => value !== null);
  const x = scale([0, ...points.map(([time]) => time)], LEFT, WIDTH - RIGHT);
  const y = scale(points.map(([, value]) => value), HEIGHT - BOTTOM, TOP);
  const label = clean(describe(name, lines));
  const made = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "plot", role: "img", "aria-label": label });
  for (const value of y.high === y.low ? [y.low] : [y.low, y.middle, y.high]) {
    const at = y.place(value);
    made.append(draw("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: at, y2: at, class: "grid" }));
    made.append(draw("text", { x: LEFT - 6, y: at + 4, class: "axis", "text-anchor": "end" }, number(value, 3)));
  }
  made.append(draw("text", { x: LEFT, y: HEIGHT - 6, class: "axis" }, "0 s"));
  made.append(draw("text", { x: WIDTH - RIGHT, y: HEIGHT - 6, class: "axis", "text-anchor": "end" }, duration(x.high)));
  for (const line of lines) made.append(curve(line, lines, x, y));
  return made;
}

function curve(line, lines, x, y) {
  const title = draw("title", {}, `rank ${line.rank}: ${number(lastOf(line))}`);
  const made = draw("g", { class: colour(line, lines) }, title);
  const places = line.values.map((value, at) => (value === null ? null : [x.place(line.times[at]), y.place(value)]));
  let path = "", pen = "M";
  for (const place of places) {
    path += place ? `${pen}${place[0].toFixed(1)} ${place[1].toFixed(1)}` : "";
    pen = place ? "L" : "M";
  }
  made.append(draw("path", { d: path, class: "line" }));
  const placed = places.filter(Boolean);
  for (const [cx, cy] of placed.length <= DOTTED && lines.length <= COLOURS ? placed : placed.slice(-1)) {
    made.append(draw("circle", { cx: cx.toFixed(1), cy: cy.toFixed(1), r: 2.5, class: "dot" }));
  }
  return made;
}
