import { policyVersions } from "/static/js/node/policy-versions.js";
import { equal, test } from "./check.js";

test("an answer names its policy version, one in pieces each from its first token on", () => {
  equal(policyVersions({ policyVersion: 3, pieces: [] }), 3);
  const pieces = [[3, 17], [4, 22], [6, 1]];
  equal(policyVersions({ policyVersion: 3, pieces }), "3, 4 from token 18, 6 from token 40");
});
