/**
 * Line diff by longest common subsequence. Pure.
 *
 * Common head and tail are removed first; the rest costs O(n m), so above `LIMIT` cells it is
 * reported as one replacement instead of blocking the page.
 */

const LIMIT = 4_000_000;

/** Returns [{kind: "same" | "removed" | "added", text, before, after}] with 1-based line numbers. */
export function diffLines(before, after) {
  const a = before.split("\n");
  const b = after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (
    tail < a.length - head &&
    tail < b.length - head &&
    a[a.length - 1 - tail] === b[b.length - 1 - tail]
  ) {
    tail += 1;
  }
  const kinds = [
    ...Array(head).fill("same"),
    ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...Array(tail).fill("same"),
  ];
  return numbered(kinds, a, b);
}

function middle(a, b) {
  if (a.length * b.length > LIMIT) {
    return [...Array(a.length).fill("removed"), ...Array(b.length).fill("added")];
  }
  const wide = b.length + 1;
  const length = new Uint32Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      length[i * wide + j] =
        a[i] === b[j]
          ? length[(i + 1) * wide + j + 1] + 1
          : Math.max(length[(i + 1) * wide + j], length[i * wide + j + 1]);
    }
  }
  return walked(a, b, length, wide);
}

function walked(a, b, length, wide) {
  const kinds = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      kinds.push("same");
      i += 1;
      j += 1;
    } else if (
      j >= b.length ||
      (i < a.length && length[(i + 1) * wide + j] >= length[i * wide + j + 1])
    ) {
      kinds.push("removed");
      i += 1;
    } else {
      kinds.push("added");
      j += 1;
    }
  }
  return kinds;
}

function numbered(kinds, a, b) {
  let i = 0;
  let j = 0;
  return kinds.map((kind) => {
    const text = kind === "added" ? b[j] : a[i];
    const line = { kind, text, before: null, after: null };
    if (kind !== "added") line.before = ++i;
    if (kind !== "removed") line.after = ++j;
    return line;
  });
}

/** Returns {added, removed}: how many lines changed. */
export function diffCounts(lines) {
  const of = (kind) => lines.filter((line) => line.kind === kind).length;
  return { added: of("added"), removed: of("removed") };
}
