/** How charts are looked at, as the address says it. Pure. */

const AXES = ["step", "time", "tokens", "nodes"];
const DEFAULTS = { x: "step", smooth: 0, logX: false, logY: false, band: "none", from: null, to: null, q: "" };
const BANDS = ["none", "std", "ci"];

/** What the address asks for; what it does not know is as if it were not there. */
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

/** The address of a view: what is not as it is by itself, beside what else is in the address. */
export function writeView(search, view) {
  const fields = new URLSearchParams(search);
  const { logX, logY, ...plain } = view;
  const told = { ...plain, log: (logX ? "x" : "") + (logY ? "y" : "") };
  for (const [name, value] of Object.entries(told)) {
    if (value === (DEFAULTS[name] ?? "") || value === null) fields.delete(name);
    else fields.set(name, value);
  }
  return `?${fields}`;
}

/** The part of the steps that an address asks for: {from, to}, both null for all of them. */
export function readZoom(search) {
  const { from, to } = readView(search);
  return { from, to };
}

/** The address with this part of the steps in it, or with none. */
export function withZoom({ pathname, search, hash }, from, to) {
  const fields = new URLSearchParams(search);
  for (const [name, value] of Object.entries({ from, to })) {
    if (value === null) fields.delete(name);
    else fields.set(name, value);
  }
  return `${pathname}${fields.size ? `?${fields}` : ""}${hash}`;
}
