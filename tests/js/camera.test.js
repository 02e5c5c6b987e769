import { HOME, panned, revealing, through, zoomed } from "/static/js/forest/camera.js";
import { pixelMapping } from "/static/js/forest/layout.js";
import { mixed } from "/static/js/forest/marks.js";
import { equal, ok, test } from "./check.js";

const box = { x: 0, y: 0, width: 400, height: 300 };
const toPixels = pixelMapping([0, 10, 0, 10], 10);

test("the point under the pointer stays there while zooming", () => {
  const before = through(toPixels, HOME)({ x: 12, y: 7 });
  const camera = zoomed(HOME, 3, before.x, before.y);
  equal(through(toPixels, camera)({ x: 12, y: 7 }), before);
  equal(through(toPixels, camera).scale, 30);
  equal(zoomed(camera, 1 / 9, 0, 0), HOME, "never smaller than the whole tree:");
  ok(zoomed(camera, 1e9, 0, 0).k <= 60);
});

test("a tree cannot be moved out of its box", () => {
  const camera = { k: 2, x: 0, y: 0 };
  for (const way of [1e6, -1e6]) {
    const moved = panned(camera, way, way, box);
    const [left, right] = [moved.x, moved.x + 400 * moved.k];
    ok(left <= 200.01 && right >= 199.99, `${left} ${right}`);
  }
  equal(panned(camera, -20, 10, box), { k: 2, x: -20, y: 10 });
});

test("a hidden point is revealed by the shortest pan, a visible one by none", () => {
  const camera = { k: 2, x: 0, y: 0 };
  equal(revealing(camera, { x: 200, y: 150 }, box), camera);
  equal(revealing(camera, { x: 500, y: 150 }, box, 40), { k: 2, x: -140, y: 0 });
  equal(revealing(camera, { x: 200, y: -60 }, box, 40), { k: 2, x: 0, y: 100 });
});

test("colours mix by share", () => {
  equal([mixed("#000000", "#ffffff", 0), mixed("#000000", "#ff8000", 0.5), mixed("#102030", "#ffffff", 1)], [
    "#000000", "#804000", "#ffffff",
  ]);
});
