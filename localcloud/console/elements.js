// SPDX-License-Identifier: Apache-2.0
// Makes elements, and updates the shown ones. Texts may come from strangers, so they reach the page as text only.

const SVG = "http://www.w3.org/2000/svg";
const SHORT = 24, LONG = 40; // texts up to SHORT characters stay on one line; texts beyond LONG get a wide cell
// Control characters, and characters that change the direction of the text around them.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

export function clean(text) {
  return String(text).replace(UNSEEN, (letter) => (letter === "\n" || letter === "\t" ? letter : "\ufffd"));
}

export function make(tag, text, className, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = clean(text);
  if (className) made.className = className;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

export function draw(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.map((child) => (child instanceof Node ? child : clean(child))));
  return made;
}

export function facts(pairs) {
  const list = make("dl");
  for (const [name, value] of pairs) list.append(make("dt", name), make("dd", value));
  return list;
}

// A frame with its own scroll bars, which also works with the keyboard.
export function scrolling(label, made, className = "wide") {
  const frame = make("div", undefined, className, { tabindex: "0", role: "region", "aria-label": clean(label) });
  frame.append(made);
  return frame;
}

// A cell is a text, or an element.
// `isNamed`: a heading stands above, so the caption is for screen readers only.
export function table({ title, columns, rows, numbers = [], className, isNamed }) {
  const made = make("table");
  if (title) made.append(make("caption", title, isNamed ? "unseen" : ""));
  const head = make("tr");
  columns.forEach((column, index) => {
    head.append(make("th", column, numbers.includes(index) ? "number" : "", { scope: "col" }));
  });
  made.append(make("thead"), make("tbody"));
  made.tHead.append(head);
  for (const row of rows) {
    const line = make("tr");
    row.forEach((cell, index) => line.append(cellOf(cell, numbers.includes(index) ? "number" : "")));
    made.tBodies[0].append(line);
  }
  return scrolling(title || "table", made, className);
}

function lengthOf(text) {
  return String(text).length <= SHORT ? "short" : String(text).length > LONG ? "long" : "";
}

function cellOf(cell, className) {
  if (!(cell instanceof Node)) return make("td", cell, className || lengthOf(cell));
  const made = make("td", undefined, className || "short");
  made.append(cell);
  return made;
}

// Changes `old` into `next`. Equal parts are not touched, so they stay open, scrolled, focused or selected.
export function patch(old, next) {
  if (old.isEqualNode(next)) return;
  if (old.nodeName !== next.nodeName) {
    old.replaceWith(next);
  } else if (old.nodeType === Node.TEXT_NODE) {
    if (!isSelected(old)) old.data = next.data;
  } else {
    patchAttributes(old, next);
    patchChildren(old, [...next.childNodes]);
  }
}

function isSelected(node) {
  const selection = getSelection();
  return Boolean(selection) && !selection.isCollapsed && selection.containsNode(node, true);
}

function patchAttributes(old, next) {
  const readers = old.nodeName === "DETAILS" ? "open" : ""; // the reader opens and closes it
  for (const { name } of [...old.attributes]) {
    if (name !== readers && !next.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (name !== readers && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

export function patchChildren(parent, wanted) {
  const keyed = new Map();
  const others = [];
  for (const child of parent.childNodes) {
    if (child.dataset?.key) keyed.set(child.dataset.key, child);
    else others.push(child);
  }
  let place = parent.firstChild;
  for (const next of wanted) {
    const key = next.dataset?.key;
    const old = key ? keyed.get(key) : others.shift();
    keyed.delete(key);
    if (!old) {
      parent.insertBefore(next, place);
      continue;
    }
    if (old === place) place = place.nextSibling;
    else parent.insertBefore(old, place);
    patch(old, next);
  }
  for (const left of [...keyed.values(), ...others]) left.remove();
}

export function number(value, digits = 5) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(1).replace("+", "");
  return String(Number(value.toPrecision(digits)));
}

export function cut(text, most) {
  const shown = clean(text);
  return shown.length > most ? `${shown.slice(0, most - 1)}…` : shown;
}

export function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

export function plural(count, what) {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
