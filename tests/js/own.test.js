import { own } from "/static/js/lib/own.js";
import { equal, test } from "./check.js";

test("only an object's own keys have a value", () => {
  const given = JSON.parse('{"a": 0, "__proto__": "x"}');
  equal(["a", "__proto__", "constructor", "toString", "b"].map((key) => own(given, key) ?? null), [0, "x", null, null, null]);
  equal([own(undefined, "a"), own(null, "constructor")].map((value) => value ?? null), [null, null]);
});
