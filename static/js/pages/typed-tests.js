/** Tests of a pasted problem: one that is typed in a small form, added to a field of JSON. Pure. */

/** A call's test from two texts of JSON: arguments separated by commas, and the expected value. */
export function callTest(args, expected) {
  return { arguments: json(`[${args}]`, "Arguments"), expected: json(expected, "Expected value") };
}

/** The test of a program that reads `stdin`; both are texts as they are. */
export function programTest(stdin, expected) {
  return { stdin, expected };
}

/** The field's text with one more test, one per line; throws an Error with the remedy. */
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
    // Said below.
  }
  throw new Error("The tests in the field are not a JSON list: clear it, or add this test by hand");
}
