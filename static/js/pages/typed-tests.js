/** Tests of a pasted problem: a test typed in a small form is added to a JSON field. Pure. */

/** Returns the test of a call from two JSON texts: comma-separated arguments, the expected value. */
export function callTest(args, expected) {
  return { arguments: json(`[${args}]`, "Arguments"), expected: json(expected, "Expected value") };
}

/** Returns the test of a program that reads `stdin`; both are plain text. */
export function programTest(stdin, expected) {
  return { stdin, expected };
}

/** Returns the field's text with one more test, one per line; throws an Error with the remedy. */
export function withTest(text, test) {
  const tests = text.trim() ? listed(text) : [];
  return `[${[...tests, test].map((one) => JSON.stringify(one)).join(",\n ")}]`;
}

function json(text, name) {
  const remedy = `${name}: enter JSON, for example [3, 1] or "text" or true`;
  if (!text.trim()) throw new Error(remedy);
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(remedy);
  }
}

function listed(text) {
  try {
    const tests = JSON.parse(text);
    if (Array.isArray(tests)) return tests;
  } catch {
    // Reported below.
  }
  throw new Error("The tests in the field are not a JSON list: clear it, or add this test by hand");
}
