// SPDX-License-Identifier: Apache-2.0
// All sections but the runs: networks, access, buckets, jobs, calls.
import { facts, make, scrolling, table } from "./elements.js";

const opened = new Map(); // whether the reader opened or closed an item, by key

export function idOf(title) {
  return title.toLowerCase().replaceAll(" ", "-");
}

export function remember(key, open) {
  opened.set(key, open);
}

export function isOpen(key, otherwise = false) {
  return opened.has(key) ? opened.get(key) : otherwise;
}

export function openable(key, summary, className = "", open = false) {
  const made = make("details", undefined, className);
  made.dataset.key = key;
  made.open = isOpen(key, open);
  made.append(summary);
  return made;
}

function item(title, one) {
  const summary = make("summary");
  summary.append(make("span", one.name, "name"));
  if (one.state) summary.append(" ", make("span", one.state, "state"));
  const made = openable(JSON.stringify([title, one.name, one.facts?.[0] ?? one.state]), summary);
  if (one.facts) made.append(facts(one.facts));
  for (const each of one.tables ?? []) {
    made.append(table({ ...each, title: each.title ?? one.name, isNamed: !each.title }));
  }
  if (one.text?.length) made.append(scrolling(one.name, make("pre", one.text.join("\n"))));
  return made;
}

export function section({ title, empty }, items) {
  const made = make("section", undefined, "", { "aria-labelledby": `${idOf(title)}-title` });
  made.id = idOf(title);
  made.dataset.key = title;
  const heading = make("h2", title);
  heading.id = `${idOf(title)}-title`;
  made.append(heading, ...items);
  if (!items.length) made.append(make("p", empty, "empty"));
  return made;
}

// Leaves out a section that has neither items nor a text for that case.
export function plainSection(content) {
  if (!content.items.length && !content.empty) return null;
  return section(content, content.items.map((one) => item(content.title, one)));
}
