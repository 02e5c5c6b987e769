import { lineOf, namesIn, withLine, withLines, withName, withoutAgent } from "/static/js/lib/toml-lines.js";
import { equal, test } from "./check.js";

test("a field's text is a line of TOML", () => {
  equal(lineOf("a.b", "number", " 3 "), "a.b = 3");
  equal(lineOf("a.b", "text", 'say "x"'), 'a.b = "say \\"x\\""');
  equal(lineOf("a.b", "choice", "gspo"), 'a.b = "gspo"');
  equal(lineOf("a.b", "number", "", "1"), "a.b = unset");
  equal(lineOf("a.b", "number", ""), null);
});

test("a line replaces the one of the same path", () => {
  equal(withLine("a = 1\n# why\nb = 2", "a", "a = 3"), "a = 3\n# why\nb = 2");
  equal(withLine("a = 1\nab = 2", "a", null), "ab = 2");
  equal(withLine("", "a", "a = 1"), "a = 1");
  equal(withLine("b = 2\n\n", "a", "a = 1"), "b = 2\na = 1");
  equal(withLine("b = 2", "a", null), "b = 2");
});

test("a list of names gains and loses one", () => {
  equal(withName("[]", "support", true), '["support"]');
  equal(withName('["support"]', "diversity", true), '["support", "diversity"]');
  equal(withName('["support", "diversity"]', "support", false), '["diversity"]');
  equal(namesIn('["a"]'), ["a"]);
  equal([namesIn("[1]"), namesIn("a"), namesIn('{"a": 1}')], [null, null, null]);
});

test("a preset's lines are merged into the text", () => {
  equal(withLines("a = 1\nc = 4", "a = 2\nb = 3"), "a = 2\nc = 4\nb = 3");
});

test("removing an agent removes all of its lines and no others", () => {
  const text = "agents.elm.name = \"elm\"\nagents.elm-2.model = 1\nagents.elm = unset\nseed = 1";
  equal(withoutAgent(text, "elm"), "agents.elm-2.model = 1\nseed = 1");
});
