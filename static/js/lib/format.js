/** Formats of numbers, times and counts for display. Pure. */

const MINUS = "\u2212";

/** 0.4312 -> "43.1 %"; nothing -> "–". */
export function percent(value, digits = 1) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return `${(value * 100).toFixed(digits)} %`;
}

/** A difference in points with its sign: 0.21 -> "+21.0". */
export function points(value) {
  if (!Number.isFinite(value)) return "–";
  const text = Math.abs(value * 100).toFixed(1);
  return `${value < 0 ? MINUS : "+"}${text}`;
}

const MOST_WRITTEN = 1e12; // beyond it nobody counts the digits, and no tile has room for them

/** Formats with three significant digits; only values below 0.001, and from 1e12 on, get an exponent. */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  let text;
  if (size >= MOST_WRITTEN) text = size.toExponential(2);
  else if (size >= 1000) text = Math.round(size).toLocaleString("en-US");
  else if (size >= 0.001) text = String(Number(size.toPrecision(3)));
  else text = size.toExponential(1);
  return value < 0 ? MINUS + text : text;
}

/** 75 -> "1 min 15 s"; 8100 -> "2 h 15 min"; 190000 -> "2 d 4 h". */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return s % 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${s / 60} min`;
  const hours = Math.floor(s / 3600);
  if (hours >= 48) return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${hours / 24} d`;
  const minutes = Math.floor((s % 3600) / 60);
  return minutes ? `${hours} h ${minutes} min` : `${hours} h`;
}

/** Short seconds of work: 0.183 -> "183 ms", 12.3 -> "12.3 s". */
export function seconds(value) {
  if (!Number.isFinite(value)) return "–";
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  return value < 60 ? `${Number(value.toPrecision(3))} s` : duration(value);
}

/** Formats as local wall clock, hh:mm. */
export function clock(milliseconds) {
  const date = new Date(milliseconds);
  return [date.getHours(), date.getMinutes()].map((n) => String(n).padStart(2, "0")).join(":");
}

export function count(n, one, many = `${one}s`) {
  if (!Number.isFinite(n)) return `– ${many}`;
  return `${n.toLocaleString("en-US")} ${n === 1 ? one : many}`;
}

/** An enum's value as words: "wrong_answer" -> "wrong answer". */
export function words(value) {
  return String(value ?? "").replaceAll("_", " ");
}

/** Formats how long ago, in one unit: 190000 -> "3 min ago". */
export function ago(milliseconds) {
  const s = Math.max(0, milliseconds / 1000);
  if (s < 45) return "just now";
  if (s < 3600) return `${Math.max(1, Math.round(s / 60))} min ago`;
  if (s < 86_400) return `${Math.round(s / 3600)} h ago`;
  return count(Math.round(s / 86_400), "day") + " ago";
}
