import { ago, count, duration, number, percent, points, seconds } from "/static/js/lib/format.js";
import { equal, test } from "./check.js";

test("shares and points", () => {
  equal([percent(0.4312), percent(null), percent(1, 0)], ["43.1 %", "–", "100 %"]);
  equal([points(0.213), points(-0.05), points(0)], ["+21.3", "−5.0", "+0.0"]);
});

test("numbers keep three digits", () => {
  equal([0, 1, 0.12345, 12345.6, -0.5, 1e-7, null].map(number), [
    "0", "1", "0.123", "12,346", "−0.5", "1.0e-7", "–",
  ]);
});

test("numbers too long to be read have an exponent", () => {
  equal([1e6, -999999999999, 1e12, -1.9569e196].map(number), ["1,000,000", "−999,999,999,999", "1.00e+12", "−1.96e+196"]);
});

test("times read as people say them", () => {
  equal([172800, 190000, 172799].map(duration), ["2 d", "2 d 4 h", "47 h 59 min"]);
  equal([0, 59.6, 75, 120, 3600, 8100, NaN].map(duration), [
    "0 s", "1 min", "1 min 15 s", "2 min", "1 h", "2 h 15 min", "–",
  ]);
  equal([0.1834, 12.34, 75].map(seconds), ["183 ms", "12.3 s", "1 min 15 s"]);
  equal([1e4, 19e4, 72e5, 864e5, 3 * 864e5].map(ago), [
    "just now", "3 min ago", "2 h ago", "1 day ago", "3 days ago",
  ]);
});

test("counts agree with their noun", () => {
  equal([count(1, "node"), count(1536, "node"), count(2, "try", "tries")], [
    "1 node", "1,536 nodes", "2 tries",
  ]);
});

test("what is not known is no number", () => {
  equal([percent(undefined), number(NaN), points(NaN), points(undefined), count(null, "node")], ["–", "–", "–", "–", "– nodes"]);
});
