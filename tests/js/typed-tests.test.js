import { callTest, programTest, withTest } from "/static/js/pages/typed-tests.js";
import { equal, test } from "./check.js";

function refusal(run) {
  try {
    run();
  } catch (error) {
    return error.message;
  }
  return "";
}

test("a test is added to the list, one per line", () => {
  const one = withTest("", callTest("[3, 1], true", "[1, 3]"));
  equal(JSON.parse(one), [{ arguments: [[3, 1], true], expected: [1, 3] }]);
  const two = withTest(one, programTest("1 2\n", "3"));
  equal(JSON.parse(two)[1], { stdin: "1 2\n", expected: "3" });
  equal(two.split("\n").length, 2);
});

test("a function without arguments takes none, and null is a value", () => {
  equal(refusal(() => callTest("", "")).startsWith("Expected value: enter JSON"), true);
  equal(JSON.parse(callTest("", "null")), { arguments: [], expected: null });
});

test("invalid JSON is refused with the field and the remedy", () => {
  equal(refusal(() => callTest("three", "1")).startsWith("Arguments: enter JSON"), true);
  equal(refusal(() => withTest("assert solve(1) == 2", "{}")).includes("not a JSON list"), true);
});

test("every number is kept as it was typed, also in tests that were there", () => {
  const large = "90071992547409931";
  const one = withTest("", callTest(`2.0, 0.10, ${large}`, "-0.0"));
  equal(one, `[{"arguments":[2.0, 0.10, ${large}],"expected":-0.0}]`);
  const before = `[\n  {"arguments": [4.0, "a,]\\"}"],\n   "expected": {"k": [${large}, 1E2]}} , {"arguments":[],"expected":1}]`;
  const kept = withTest(before, callTest("1", "1"));
  equal(kept.includes(`{"arguments": [4.0, "a,]\\"}"],\n   "expected": {"k": [${large}, 1E2]}}`), true);
  equal(JSON.parse(kept).length, 3);
  equal(withTest("[ ]", callTest("1", "1")), '[{"arguments":[1],"expected":1}]');
  equal(withTest(one, programTest("1e999\n", "1e999")).includes('"stdin":"1e999\\n"'), true);
});

test("a number beyond floats is refused", () => {
  for (const number of ["1e999", "-2e400", "[1, 1.5E+309]"]) {
    equal(refusal(() => callTest("1", number)).includes("larger than any number"), true);
    equal(refusal(() => callTest(number, "1")).startsWith("Arguments: "), true);
    const there = `[{"arguments":[],"expected":${number}}]`;
    equal(refusal(() => withTest(there, callTest("1", "1"))).startsWith("The tests in the field have"), true);
  }
  equal(refusal(() => callTest("1e308, 1e-999, \"1e999\"", "1")), "");
});
