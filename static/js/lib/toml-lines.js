/** Settings as lines of text: `path = value` as in TOML. Pure. */

/** Returns the line of a field's value, or null if an empty field sets nothing. */
export function lineOf(path, kind, value, optional) {
  if (value === "" && optional) return `${path} = unset`;
  if (kind === "text" || kind === "long" || kind === "choice") return `${path} = ${JSON.stringify(value)}`;
  return value.trim() === "" ? null : `${path} = ${value.trim()}`;
}

/** Returns the text with this line in place of that of `path`; removes it if `line` is null. */
export function withLine(text, path, line) {
  const lines = text.split("\n");
  const index = lines.findIndex((one) => pathOf(one) === path);
  if (index >= 0) lines.splice(index, 1, ...(line === null ? [] : [line]));
  else if (line !== null) {
    while (lines.length && lines.at(-1).trim() === "") lines.pop();
    lines.push(line);
  }
  return lines.join("\n");
}

/** Returns the text with all of these lines set. */
export function withLines(text, more) {
  return more.split("\n").reduce((whole, line) => withLine(whole, pathOf(line), line), text);
}

/** Returns the text without the lines of the agent whose key in paths is `key`. */
export function withoutAgent(text, key) {
  const path = `agents.${key}`;
  const isOther = (line) => pathOf(line) !== path && !pathOf(line).startsWith(`${path}.`);
  return text.split("\n").filter(isOther).join("\n");
}

/** Returns the names in a list of names; null if the text is none. */
export function namesIn(text) {
  try {
    const names = JSON.parse(text);
    return Array.isArray(names) && names.every((name) => typeof name === "string") ? names : null;
  } catch {
    return null;
  }
}

/** Returns a list of names with or without one of them; the others keep their order. */
export function withName(text, name, isIn) {
  const others = (namesIn(text) ?? []).filter((one) => one !== name);
  return `[${[...others, ...(isIn ? [name] : [])].map((one) => JSON.stringify(one)).join(", ")}]`;
}

function pathOf(line) {
  return line.split("=", 1)[0].trim();
}
