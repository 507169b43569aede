// SPDX-License-Identifier: Apache-2.0
// Shows /console/data. Users chose the names in it, so all of it reaches the page as text only.
"use strict";

const EVERY_MILLISECONDS = 3000;
const SHORT = 24; // so many characters are not broken into lines
const closedOrOpened = new Map(); // what the reader did to each item outlives a refresh
let shown = "";

function make(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function facts(pairs) {
  const list = make("dl");
  for (const [name, value] of pairs) list.append(make("dt", name), make("dd", value));
  return list;
}

function table({ title, columns, rows }) {
  const made = make("table");
  if (title) made.append(make("caption", title));
  const head = make("tr");
  for (const column of columns) head.append(make("th", column));
  made.append(head);
  for (const row of rows) {
    const line = make("tr");
    row.forEach((cell, index) => line.append(make("td", cell, style(columns[index], cell))));
    made.append(line);
  }
  const frame = make("div", undefined, "wide");
  frame.append(made);
  return frame;
}

function style(column, cell) {
  const verdict = column === "answer" ? (cell >= "400" ? "refused" : "allowed") : "";
  return cell.length <= SHORT ? `short ${verdict}` : verdict;
}

function item(section, found) {
  const made = make("details");
  const key = JSON.stringify([section, found.name, found.facts ? found.facts[0] : ""]);
  made.open = closedOrOpened.has(key) ? closedOrOpened.get(key) : Boolean(found.open);
  made.addEventListener("toggle", () => closedOrOpened.set(key, made.open));
  const summary = make("summary", found.name);
  if (found.state) summary.append(" ", make("span", found.state, "state"));
  made.append(summary);
  if (found.facts) made.append(facts(found.facts));
  for (const one of found.tables || []) made.append(table(one));
  if (found.text && found.text.length) made.append(make("pre", found.text.join("\n")));
  return made;
}

function section({ title, empty, items }) {
  const made = make("section");
  made.id = title.toLowerCase().replaceAll(" ", "-");
  made.append(make("h2", title));
  for (const one of items) made.append(item(title, one));
  if (!items.length) made.append(make("p", empty, "empty"));
  return made;
}

function show(data) {
  const first = make("section");
  first.append(facts(data.facts));
  document.getElementById("sections").replaceChildren(first, ...data.sections.map(section));
  const links = data.sections.map(({ title }) => {
    const link = make("a", title);
    link.href = `#${title.toLowerCase().replaceAll(" ", "-")}`;
    return link;
  });
  document.getElementById("contents").replaceChildren(...links);
}

async function refresh() {
  const status = document.getElementById("status");
  try {
    const answer = await fetch("/console/data", { cache: "no-store" });
    if (!answer.ok) throw new Error(`answered ${answer.status}`);
    const text = await answer.text();
    if (text !== shown) show(JSON.parse(text));
    shown = text;
    status.textContent = `as of ${new Date().toLocaleTimeString()}, read-only`;
  } catch (error) {
    status.textContent = `not answering (${error.message}); shown is what was there before`;
  }
  setTimeout(refresh, EVERY_MILLISECONDS);
}

refresh();
