/** The minimal test harness of the module tests: named tests, and equality by value. */

export const tests = [];

export function test(name, body) {
  tests.push({ name, body });
}

export function equal(actual, expected, about = "") {
  const [a, b] = [plain(actual), plain(expected)];
  if (a !== b) throw new Error(`${about} expected ${b}, got ${a}`);
}

export function ok(value, about = "expected something true") {
  if (!value) throw new Error(about);
}

/** Runs all tests in order and returns [{name, error}]; `error` is empty if the test passed. */
export async function run() {
  const results = [];
  for (const { name, body } of tests) {
    let error = "";
    try {
      await body();
    } catch (thrown) {
      error = thrown.stack ?? String(thrown);
    }
    results.push({ name, error });
  }
  return results;
}

function plain(value) {
  return JSON.stringify(value, (_, item) =>
    item instanceof Map || item instanceof Set ? [...item] : item === undefined ? null : item,
  );
}
