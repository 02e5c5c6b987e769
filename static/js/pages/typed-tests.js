/**
 * Tests of a pasted problem: a test typed in a small form is added to a JSON field. Pure.
 *
 * A test is its JSON text here, because a browser's numbers would change it: 2.0 becomes 2, an integer
 * above 2^53 another one, and 1e999 null.
 */

/** Returns the test of a call from two JSON texts: comma-separated arguments, the expected value. */
export function callTest(args, expected) {
  const list = checked(`[${args}]`, args.trim() || "none", "Arguments");
  const value = checked(expected, expected, "Expected value");
  return `{"arguments":${list},"expected":${value}}`;
}

/** Returns the test of a program that reads `stdin`; both are plain text. */
export function programTest(stdin, expected) {
  return JSON.stringify({ stdin, expected });
}

/** Returns the field's text with one more test, one per line; throws an Error with the remedy. */
export function withTest(text, test) {
  const tests = text.trim() ? listed(text) : [];
  return `[${[...tests, test].join(",\n ")}]`;
}

function checked(text, typed, name) {
  const remedy = `${name}: enter JSON, for example [3, 1] or "text" or true`;
  if (!typed.trim()) throw new Error(remedy);
  try {
    JSON.parse(text);
  } catch {
    throw new Error(remedy);
  }
  const endless = tooLarge(text);
  if (endless) throw new Error(`${name}: ${endless} is larger than any number of a program; write a smaller one`);
  return text.trim();
}

/** Returns the texts of the tests in the field. */
function listed(text) {
  let tests = null;
  try {
    tests = JSON.parse(text);
  } catch {
    // Reported below.
  }
  if (!Array.isArray(tests)) {
    throw new Error("The tests in the field are not a JSON list: clear it, or add this test by hand");
  }
  const endless = tooLarge(text);
  if (endless) throw new Error(`The tests in the field have ${endless}, larger than any number of a program`);
  return elements(text);
}

/** A string, a bracket or comma, or anything between them; of a text that is valid JSON. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{},]|[^"[\]{},]+/gs;

/** Returns the texts of a JSON list's elements. */
function elements(text) {
  const found = [""];
  let depth = 0;
  for (const [token] of text.trim().slice(1, -1).matchAll(TOKEN)) {
    if (token === "," && depth === 0) {
      found.push("");
      continue;
    }
    if (token === "[" || token === "{") depth += 1;
    if (token === "]" || token === "}") depth -= 1;
    found[found.length - 1] += token;
  }
  return found.map((one) => one.trim()).filter((one) => one);
}

/** Returns the first number that a JSON text writes and that is infinite as a float; "" if none. */
function tooLarge(text) {
  for (const [token] of text.matchAll(TOKEN)) {
    for (const [number] of token.startsWith('"') ? [] : token.matchAll(/-?\d[\d.]*[eE][+-]?\d+/g)) {
      if (!Number.isFinite(Number(number))) return number;
    }
  }
  return "";
}
