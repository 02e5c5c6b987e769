import { equal, test } from "./check.js";
import { loadFault } from "/static/js/lib/load-fault.js";

test("what asking again would not help is final, and says the remedy", () => {
  for (const [status, word] of [[401, "Sign in"], [403, "Ask an owner"], [404, "no longer exists"]]) {
    const { text, final } = loadFault({ status });
    equal([text.includes(word), final], [true, true]);
  }
});

test("what may pass is tried again", () => {
  equal(loadFault({ status: 500 }), { text: "The server answered 500. Retrying automatically.", final: false });
  equal(loadFault(new TypeError("failed")), { text: "The server is not reachable. Retrying automatically.", final: false });
});
