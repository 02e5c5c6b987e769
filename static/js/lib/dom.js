/**
 * Construction of elements without markup strings: text stays text, whatever a program holds. Except in code, it
 * is shown with escapes for control characters and marks of direction.
 */

import { shown } from "./shown.js";

const VERBATIM = new Set(["pre", "code", "textarea", "script", "style"]);
const READ = new Set(["title", "aria-label", "placeholder", "alt"]);

/** element("a", {class: "name", href}, "text", child, ...); omits null and undefined. */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : READ.has(name) ? shown(String(value)) : value);
  }
  const isVerbatim = VERBATIM.has(tag);
  const given = children.flat().filter((child) => child !== null && child !== undefined);
  node.append(...given.map((child) => (isVerbatim || child instanceof Node ? child : shown(String(child)))));
  return node;
}

/** Replaces the children of a node only if the text would change. */
export function setText(node, text) {
  const given = String(text ?? "");
  const next = node.closest("pre, code, textarea") ? given : shown(given);
  if (node.textContent !== next) node.textContent = next;
}

/** Returns an SVG element; colours come from classes, since the page's policy forbids inline style. */
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.map((child) => (child instanceof Node ? child : shown(String(child)))));
  return node;
}
