/** Construction of elements without markup strings: text stays text, whatever a program holds. */

/** element("a", {class: "name", href}, "text", child, ...); omits null and undefined. */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Replaces the children of a node only if the text would change. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Returns an SVG element; colours come from classes, since the page's policy forbids inline style. */
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}
