import { alerts } from "/static/js/run/health.js";
import { equal, test } from "./check.js";

const line = (label, ...values) => ({ label, values });

test("a step that learns from few of its trees is an alert, by its newest value", () => {
  const active = alerts("step.filtered_share", [line("a", 0.9, 0.5), line("b", 0.1, 0.9, null)]);
  equal(active.map(({ label, value }) => [label, value]), [["b", 0.9]]);
  equal(alerts("step.filtered_trees", [line("a", 99)]), []);
});

test("a newest value outside its band is an alert", () => {
  equal(alerts("entropy", [{ label: "oak", values: [0.5, 0.01, null] }]).map(({ label }) => label), ["oak"]);
  equal(alerts("entropy", [{ label: "oak", values: [0.01, 0.5] }]), []);
  equal(alerts("reward", [{ label: "oak", values: [0] }]), []);
});
