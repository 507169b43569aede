// SPDX-License-Identifier: Apache-2.0
// The positions of boxes and lines in the drawing of a network. Roles are in a column, other places right of it.
// Lines between roles run left of the column, lines to other places right of it.

const SIZES = {
  narrow: { gutter: 84, role: 116, gap: 46, outside: 86 },
  wide: { gutter: 150, role: 210, gap: 130, outside: 150 },
};
const HEAD = 24, BETWEEN = 26, OUTSIDE_HEIGHT = 34, SLOT = 20, MARGIN = 6;
const NUMBERED = 16; // a role with at most this many nodes shows their ranks
const FIRST_DEPTH = 34, DEPTH = 24; // how far lines between roles run to the left

// The connected pairs of boxes, each once per kind of row. `rows`: the rows of the table.
export function pairsOf(rows, roles) {
  const pairs = new Map();
  const add = (kind, from, to, row, at) => {
    const key = JSON.stringify([kind, from, to]);
    if (!pairs.has(key)) pairs.set(key, { kind, from, to, rows: [], first: at, both: false });
    pairs.get(key).rows.push(row);
  };
  rows.forEach((row, at) => {
    for (const from of row.from) for (const to of row.to) add(row.kind, from, to, row, at);
  });
  const single = new Set(roles.filter(({ nodes }) => nodes.length === 1).map(({ name }) => name));
  return [...pairs.values()].filter((pair) => {
    if (pair.kind !== "allowed") return true;
    if (pair.from === pair.to && single.has(pair.from)) return false;
    if (["used", "dropped"].some((kind) => pairs.has(JSON.stringify([kind, pair.from, pair.to])))) return false;
    const back = pairs.get(JSON.stringify(["allowed", pair.to, pair.from]));
    if (!back || back === pair || back.first < pair.first) return !back || back === pair;
    if (back.first === pair.first && pair.from > pair.to) return false;
    pair.both = true;
    return true;
  });
}

export function layoutOf(roles, rows, isNarrow) {
  const size = isNarrow ? SIZES.narrow : SIZES.wide;
  const inside = new Set(roles.map(({ name }) => name));
  const outside = [...new Set(rows.flatMap(({ from, to }) => [...from, ...to]))].filter((name) => !inside.has(name));
  const order = new Map([...roles.map(({ name }) => name), ...outside].map((name, at) => [name, at]));
  const lines = pairsOf(rows, roles).map((pair, at) => ({
    pair,
    number: at + 1,
    isLeft: inside.has(pair.from) && inside.has(pair.to),
    span: Math.abs(order.get(pair.from) - order.get(pair.to)),
  }));
  setDepths(lines.filter(({ isLeft }) => isLeft), size);
  const ends = endsOf(lines, order);
  const boxes = new Map();
  const height = outsideColumn(outside, size, ends, boxes, roleColumn(roles, size, ends, boxes));
  placeEnds(ends, boxes);
  for (const line of lines) Object.assign(line, line.isLeft ? leftLine(line, size) : rightLine(line, inside, size));
  return { width: size.gutter + size.role + size.gap + size.outside, height, boxes, lines };
}

// The farther apart two boxes are, the farther out their line runs, so that lines rarely cross.
function setDepths(lines, size) {
  const most = (size.gutter - 12) / 0.75;
  const step = Math.min(DEPTH, (most - FIRST_DEPTH) / Math.max(1, lines.length - 1));
  lines.sort((one, other) => one.span - other.span);
  lines.forEach((line, at) => Object.assign(line, { at, depth: FIRST_DEPTH + at * step }));
}

// The ends of lines at each side of each box, from top to bottom.
function endsOf(lines, order) {
  const ends = new Map();
  const add = (line, which, name, other) => {
    const key = `${name} ${line.isLeft ? "left" : "right"}`;
    const way = Math.sign(order.get(other) - order.get(name));
    const place = line.isLeft ? line.depth * (way || (which === "start" ? 1 : -1)) * -1 : order.get(other);
    ends.set(key, [...(ends.get(key) ?? []), { line, which, group: line.isLeft ? way : 0, place }]);
  };
  for (const line of lines) {
    add(line, "start", line.pair.from, line.pair.to);
    add(line, "end", line.pair.to, line.pair.from);
  }
  for (const own of ends.values()) own.sort((one, other) => one.group - other.group || one.place - other.place);
  return ends;
}

function placeEnds(ends, boxes) {
  for (const [key, own] of ends) {
    const box = boxes.get(key.slice(0, key.lastIndexOf(" ")));
    own.forEach(({ line, which }, at) => (line[which] = box.y + ((at + 1) * box.height) / (own.length + 1)));
  }
}

function roleColumn(roles, size, ends, boxes) {
  let y = MARGIN;
  for (const role of roles) {
    const numbered = role.nodes.length <= NUMBERED;
    const side = numbered ? 22 : 13;
    const columns = Math.max(1, Math.floor((size.role - 12) / (side + 3)));
    const lines = Math.ceil(role.nodes.length / columns);
    const most = Math.max(...["left", "right"].map((one) => ends.get(`${role.name} ${one}`)?.length ?? 0));
    const height = Math.max(HEAD + lines * (side + 3) + 6, (most + 1) * SLOT);
    boxes.set(role.name, { role, x: size.gutter, y, width: size.role, height, side, columns, numbered });
    y += height + BETWEEN;
  }
  return y - BETWEEN + MARGIN;
}

function outsideColumn(names, size, ends, boxes, height) {
  const heights = names.map((name) => Math.max(OUTSIDE_HEIGHT, ((ends.get(`${name} right`)?.length ?? 0) + 1) * SLOT));
  const total = heights.reduce((sum, one) => sum + one + BETWEEN / 2, 0);
  let y = Math.max(MARGIN, (height - total) / 2);
  names.forEach((name, at) => {
    boxes.set(name, { x: size.gutter + size.role + size.gap, y, width: size.outside - 1, height: heights[at] });
    y += heights[at] + BETWEEN / 2;
  });
  return Math.max(height, y + MARGIN);
}

// A point near the middle of a curve. It is shifted a little for each line, so that marks do not overlap.
function pointOf(x1, x2, x3, x4, start, end, at) {
  const t = 0.5 + ((at % 3) - 1) * 0.13, rest = 1 - t;
  const [a, b, c, d] = [rest ** 3, 3 * rest * rest * t, 3 * rest * t * t, t ** 3];
  return [a * x1 + b * x2 + c * x3 + d * x4, (a + b) * start + (c + d) * end];
}

function leftLine({ start, end, depth, at }, size) {
  const x = size.gutter;
  return {
    path: `M${x} ${start} C${x - depth} ${start} ${x - depth} ${end} ${x - 5} ${end}`,
    head: [x, end, 1], tail: [x, start, 1], badge: pointOf(x, x - depth, x - depth, x, start, end, at),
  };
}

function rightLine({ pair: { from }, start, end, number }, inside, size) {
  const outwards = inside.has(from);
  const near = size.gutter + size.role, far = near + size.gap;
  const [x1, x2] = outwards ? [near, far] : [far, near];
  const middle = (x1 + x2) / 2, way = outwards ? 1 : -1;
  return {
    path: `M${x1} ${start} C${middle} ${start} ${middle} ${end} ${x2 - 5 * way} ${end}`,
    head: [x2, end, way], tail: [x1, start, -way], badge: pointOf(x1, middle, middle, x2, start, end, number),
  };
}
