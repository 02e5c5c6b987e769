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
  equal(callTest("", "null"), { arguments: [], expected: null });
});

test("invalid JSON is refused with the field and the remedy", () => {
  equal(refusal(() => callTest("three", "1")).startsWith("Arguments: enter JSON"), true);
  equal(refusal(() => withTest("assert solve(1) == 2", {})).includes("not a JSON list"), true);
});
