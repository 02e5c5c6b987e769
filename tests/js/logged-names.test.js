import { isLogged, leaves, loggedName, textOf } from "/static/js/run/logged-names.js";
import { equal, test } from "./check.js";

test("a logged metric is distinguished from Grove's own", () => {
  equal(["logged.loss", "logger.loss", "validation.logged.x"].map(isLogged), [true, false, false]);
});

test("a name reads as the program wrote it", () => {
  equal(["logged.loss", "logged.train~1loss", "logged.a~0b", "logged.~01"].map(loggedName), [
    "loss", "train/loss", "a~b", "~1",
  ]);
});

test("nested settings become paths, and lists stay whole", () => {
  equal(leaves({ lr: 1e-4, model: { name: "oak", layers: [2, 4], extra: {} }, off: null }), [
    ["lr", "0.0001"], ["model.name", "oak"], ["model.layers", "[2,4]"], ["model.extra", "{}"],
    ["off", "null"],
  ]);
  equal([leaves({}), leaves(undefined), leaves("alone")], [[], [], []]);
});

test("a value reads without quotes, and nothing reads as nothing", () => {
  equal(["a text", true, 3, ["x"], undefined].map(textOf), ["a text", "true", "3", '["x"]', ""]);
});
