/** Names of what a program logged, as it wrote them. Pure. */

const PREFIX = "logged.";

/** Returns whether a metric is a number that a program logged. */
export function isLogged(metric) {
  return metric.startsWith(PREFIX);
}

/** Returns the name as logged: "logged.train~1loss" -> "train/loss" (JSON Pointer, RFC 6901). */
export function loggedName(metric) {
  return metric.slice(PREFIX.length).replaceAll("~1", "/").replaceAll("~0", "~");
}

/** Returns the leaves of nested settings as [path, text] pairs; lists are leaves. */
export function leaves(values, path = "") {
  if (!values || typeof values !== "object" || Array.isArray(values) || !Object.keys(values).length) {
    return path ? [[path, textOf(values)]] : [];
  }
  return Object.entries(values).flatMap(([key, value]) => leaves(value, path ? `${path}.${key}` : key));
}

/** Returns a value as a text for people. */
export function textOf(value) {
  if (typeof value === "string") return value;
  return value === undefined ? "" : JSON.stringify(value);
}
