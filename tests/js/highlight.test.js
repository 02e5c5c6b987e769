import { highlight, highlightLines } from "/static/js/node/highlight.js";
import { equal, test } from "./check.js";

const kinds = (source) =>
  highlight(source).filter(({ kind }) => kind !== "space").map(({ kind, text }) => `${kind}:${text}`);

test("a small function", () => {
  equal(kinds("def f(x): return len(x) + 1 # sum"), [
    "keyword:def", "definition:f", "operator:(", "name:x", "operator:)", "operator::",
    "keyword:return", "builtin:len", "operator:(", "name:x", "operator:)", "operator:+",
    "number:1", "comment:# sum",
  ]);
});

test("strings of every sort, also unfinished ones", () => {
  equal(kinds("f'a{b}'"), ["string:f'a{b}'"]);
  equal(kinds('"a\\"b"'), ['string:"a\\"b"']);
  equal(kinds('"""a\nb"""'), ['string:"""a\nb"""']);
  equal(kinds("'open\nx"), ["string:'open", "name:x"]);
  equal(kinds('"""open'), ['string:"""open']);
  equal(kinds("# 'no string'"), ["comment:# 'no string'"]);
});

test("numbers, constants and decorators", () => {
  equal(kinds("0x1F 1_000 1.5e-3 2j None @a.b"), [
    "number:0x1F", "number:1_000", "number:1.5e-3", "number:2j", "constant:None", "decorator:@a.b",
  ]);
});

test("the tokens join to the source, whatever the text", () => {
  const texts = ["", "a\n\n  b", "¿π = 3 §", "def (", "x = 'é\\", "🌲 = 1\r\n\tpass", "1.2.3 a@b"];
  for (const text of texts) {
    equal(highlight(text).map((token) => token.text).join(""), text);
    equal(highlightLines(text).map((line) => line.map((t) => t.text).join("")).join("\n"), text);
  }
});
