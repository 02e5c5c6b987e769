import { element, setText, svg } from "/static/js/lib/dom.js";
import { shown } from "/static/js/lib/shown.js";
import { equal, test } from "./check.js";

const HIDDEN = "o\u202eak\x1b[31m";
const ESCAPED = "o\\u202eak\\x1b[31m";

test("what is not visible has an escape, and blanks, line ends and other letters stay", () => {
  equal(shown(HIDDEN), ESCAPED);
  equal(shown("a\tb\r\nc"), "a\tb\r\nc");
  equal(shown("\u0634\u062c\u0631\u0629 \u{1f469}\u200d\u{1f33e}"), "\u0634\u062c\u0631\u0629 \u{1f469}\u200d\u{1f33e}");
  equal(shown("\u2066x\u2069\x85\0"), "\\u2066x\\u2069\\x85\\x00");
});

test("elements show names so, and code as it is", () => {
  const row = element("div", { title: HIDDEN, "data-name": HIDDEN }, HIDDEN, null, 7, element("b", {}, [HIDDEN]));
  equal([row.textContent, row.title, row.dataset.name], [`${ESCAPED}7${ESCAPED}`, ESCAPED, HIDDEN]);
  equal(element("pre", {}, HIDDEN).textContent, HIDDEN);
  equal(svg("text", {}, HIDDEN).textContent, ESCAPED);
  setText(row, HIDDEN);
  equal(row.textContent, ESCAPED);
  setText(row, null);
  equal(row.textContent, "");
  const code = element("code");
  setText(code, HIDDEN);
  equal(code.textContent, HIDDEN);
});
