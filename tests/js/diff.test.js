import { diffCounts, diffLines } from "/static/js/node/diff.js";
import { equal, ok, test } from "./check.js";

const text = (lines, side) =>
  lines.filter((line) => line.kind === "same" || line.kind === side).map((line) => line.text).join("\n");

test("a changed line is removed and added between unchanged lines", () => {
  const lines = diffLines("def f(x):\n    return x\nend", "def f(x):\n    return x + 1\nend");
  equal(lines.map((line) => line.kind), ["same", "removed", "added", "same"]);
  equal(lines.map((line) => line.before), [1, 2, null, 3]);
  equal(lines.map((line) => line.after), [1, null, 2, 3]);
});

test("equal texts have no change, and an empty text is one empty line", () => {
  equal(diffCounts(diffLines("a\nb", "a\nb")), { added: 0, removed: 0 });
  equal(diffCounts(diffLines("", "a\nb")), { added: 2, removed: 1 });
});

test("both sides can be read back from any diff, and it is the shortest", () => {
  let seed = 7;
  const next = (n) => (seed = (seed * 48271) % 2147483647) % n;
  for (let round = 0; round < 200; round += 1) {
    const make = () => Array.from({ length: next(12) }, () => "abcd"[next(4)]).join("\n");
    const [a, b] = [make(), make()];
    const lines = diffLines(a, b);
    equal(text(lines, "removed"), a);
    equal(text(lines, "added"), b);
    equal(lines.filter((line) => line.kind === "same").length, common(a.split("\n"), b.split("\n")));
  }
});

function common(a, b) {
  if (!a.length || !b.length) return 0;
  const memo = new Map();
  const best = (i, j) => {
    if (i === a.length || j === b.length) return 0;
    const key = i * 100 + j;
    if (!memo.has(key)) {
      memo.set(key, a[i] === b[j] ? 1 + best(i + 1, j + 1) : Math.max(best(i + 1, j), best(i, j + 1)));
    }
    return memo.get(key);
  };
  return best(0, 0);
}

test("two long and different texts do not block the page", () => {
  const long = (word) => Array.from({ length: 5000 }, (_, index) => `${word}${index}`).join("\n");
  const began = performance.now();
  equal(diffCounts(diffLines(long("a"), long("b"))), { added: 5000, removed: 5000 });
  ok(performance.now() - began < 1000);
});
