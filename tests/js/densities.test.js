import { alternatives, curve, density, logGamma, meanOf, rangeOf, observedRewards, upperBounds } from "/static/js/node/densities.js";
import { readDraws } from "/static/js/node/thompson.js";
import { equal, ok, test } from "./check.js";

const near = (value, expected, about = "") =>
  ok(Math.abs(value - expected) < 1e-9 * Math.max(1, Math.abs(expected)), `${about} ${value} is not ${expected}`);

const area = (posterior, range) => {
  const points = curve(posterior, range, 4000);
  return points.reduce((sum, [, y]) => sum + y, 0) * ((range[1] - range[0]) / points.length);
};

test("the gamma function matches known values", () => {
  near(logGamma(1), 0);
  near(logGamma(5), Math.log(24));
  near(logGamma(0.5), Math.log(Math.sqrt(Math.PI)));
  near(logGamma(0.25), 1.2880225246980774);
});

test("densities integrate to one and match worked values", () => {
  near(density({ a: 2, b: 3 }, 0.5), 1.5);
  near(density({ a: 1, b: 1 }, 0.2), 1);
  ok(Math.abs(area({ a: 2.5, b: 4.5 }, [0, 1]) - 1) < 1e-4);
  // nu = 1 is a Cauchy distribution: 1 / (pi scale) at its middle.
  near(density({ m: 0.3, kappa: 4, nu: 1, tau_square: 0.16 }, 0.3), 1 / (Math.PI * 0.2));
  ok(Math.abs(area({ m: 0.5, kappa: 9, nu: 9, tau_square: 0.1 }, [-3, 4]) - 1) < 1e-4);
  equal(curve(null), []);
  equal(curve({ mean: 0.5, nodes: 2 }), []);
});

test("observed rewards exclude the prior", () => {
  equal(observedRewards({ a: 2.5, b: 3.5 }), { nodes: 5, mean: 0.4 });
  equal(observedRewards({ m: 0.4, kappa: 5, nu: 5, tau_square: 0.1 }), { nodes: 4, mean: 0.5 });
  equal(observedRewards({ mean: 0.5, nodes: 2 }), { nodes: 2, mean: 0.5 });
  near(meanOf({ a: 1, b: 3 }), 0.25);
});

test("UCB prefers rarely tried arms, the mean the best one", () => {
  const arms = [
    { name: "oak", draw: 0.1, posterior: { a: 6.5, b: 4.5 } },
    { name: "fern", draw: 0.9, posterior: { a: 1.5, b: 1.5 } },
  ];
  const [oak, fern] = upperBounds(arms);
  near(oak, 0.6 + Math.sqrt((2 * Math.log(12)) / 10));
  near(fern, 0.5 + Math.sqrt((2 * Math.log(12)) / 2));
  equal(alternatives(arms), { mean: "oak", ucb: "fern" });
  equal(alternatives([arms[0], { name: "new", posterior: { a: 0.5, b: 0.5 } }]).ucb, "new");
  equal(alternatives([arms[0]]), null);
  equal(alternatives([arms[0], { name: "old log", posterior: null }]), null);
});

test("the range holds every draw", () => {
  equal(rangeOf([{ draw: -0.4, posterior: null }, { draw: 1.3, posterior: null }]), [-0.4, 1.3]);
  equal(rangeOf([{ draw: null, posterior: { mean: 0.5, nodes: 1 } }]), [0, 1]);
});

test("draws are read with their posteriors, and without them from an old log", () => {
  const level = {
    node: 0, agent: "oak", agents: { oak: 0.7, fern: 0.2 }, gen: 0.1, cont: 0.6, choice: 3,
    children: { 3: 0.5 }, weight: 0.98,
    known: {
      agents: { oak: { a: 1.5, b: 0.5 }, fern: { a: 0.5, b: 0.5 } },
      gen: { a: 0.5, b: 0.5 }, cont: { a: 1.5, b: 0.5 }, children: { 3: { a: 1.5, b: 0.5 } },
    },
  };
  const [{ at, groups }] = readDraws({ levels: [level] });
  equal(at, "At the problem");
  equal(groups.map((one) => one.title), ["Which agent", "Widen or deepen", "Which child"]);
  equal(groups.map((one) => one.arms.find((arm) => arm.won).name), ["oak", "go deeper", "node 3"]);
  equal(groups[1].weight, 0.98);
  equal(groups[0].other.mean, "oak");
  delete level.known;
  const old = readDraws({ levels: [level] })[0].groups;
  equal(old.map((one) => one.other), [null, null, null]);
  equal(readDraws({}), []);
});
