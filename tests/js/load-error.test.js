import { equal, test } from "./check.js";
import { loadError } from "/static/js/lib/load-error.js";

test("an error that a retry cannot help is final and names the remedy", () => {
  for (const [status, word] of [[401, "Sign in"], [403, "Ask an owner"], [404, "no longer exists"]]) {
    const { text, final } = loadError({ status });
    equal([text.includes(word), final], [true, true]);
  }
});

test("a transient error is retried", () => {
  equal(loadError({ status: 500 }), { text: "The server answered 500. Retrying automatically.", final: false });
  equal(loadError(new TypeError("failed")), { text: "The server is not reachable. Retrying automatically.", final: false });
});
