/** The view of charts, as encoded in the address. Pure. */

const AXES = ["step", "time", "tokens", "nodes"];
const DEFAULTS = { x: "step", smooth: 0, logX: false, logY: false, band: "none", from: null, to: null, q: "" };
const BANDS = ["none", "std", "ci"];

/** Parses the view of an address; unknown values get their defaults. */
export function readView(search) {
  const fields = new URLSearchParams(search);
  const edge = (name) => (fields.get(name) && Number.isFinite(+fields.get(name)) ? +fields.get(name) : null);
  const smooth = Math.min(0.99, Math.max(0, +fields.get("smooth") || 0));
  const logs = (fields.get("log") ?? "").split("");
  const [from, to] = [edge("from"), edge("to")];
  return {
    x: AXES.includes(fields.get("x")) ? fields.get("x") : DEFAULTS.x,
    smooth,
    logX: logs.includes("x"),
    logY: logs.includes("y"),
    band: BANDS.includes(fields.get("band")) ? fields.get("band") : DEFAULTS.band,
    ...(from !== null && to !== null && from < to ? { from, to } : { from: null, to: null }),
    q: fields.get("q") ?? "",
  };
}

/** Returns the query string of a view: values that differ from the defaults, others removed. */
export function writeView(search, view) {
  const fields = new URLSearchParams(search);
  const { logX, logY, ...plain } = view;
  const values = { ...plain, log: (logX ? "x" : "") + (logY ? "y" : "") };
  for (const [name, value] of Object.entries(values)) {
    if (value === (DEFAULTS[name] ?? "") || value === null) fields.delete(name);
    else fields.set(name, value);
  }
  return `?${fields}`;
}

/** Returns the range of steps in an address: {from, to}, both null for all of them. */
export function readZoom(search) {
  const { from, to } = readView(search);
  return { from, to };
}

/** Returns the address with this range of steps, or without one. */
export function withZoom({ pathname, search, hash }, from, to) {
  const fields = new URLSearchParams(search);
  for (const [name, value] of Object.entries({ from, to })) {
    if (value === null) fields.delete(name);
    else fields.set(name, value);
  }
  return `${pathname}${fields.size ? `?${fields}` : ""}${hash}`;
}
