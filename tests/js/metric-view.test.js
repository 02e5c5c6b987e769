import { readView, readZoom, withZoom, writeView } from "/static/js/metrics/metric-view.js";
import { equal, test } from "./check.js";

test("the view of an address is read and written", () => {
  const address = "?run=a&run=b&x=time&smooth=0.5&log=y&band=ci&from=3&to=9&q=loss";
  const view = readView(address);
  equal(view, { x: "time", smooth: 0.5, logX: false, logY: true, band: "ci", from: 3, to: 9, q: "loss" });
  equal(readView(writeView(address, view)), view);
  equal(writeView("?run=a&x=bad&smooth=9x&from=5&to=1", readView("?run=a&x=bad&from=5&to=1")), "?run=a");
  equal(writeView("?run=a&split=test&from=1&to=3&log=x", readView("?")), "?run=a&split=test");
});

test("a range of steps is part of the address, next to its other parts", () => {
  const address = withZoom({ pathname: "/runs/a/", search: "?x=1", hash: "#tree=3" }, 2.5, 7);
  equal(address, "/runs/a/?x=1&from=2.5&to=7#tree=3");
  equal(readZoom("?x=1&from=2.5&to=7"), { from: 2.5, to: 7 });
  equal(withZoom({ pathname: "/", search: "?from=1&to=2", hash: "" }, null, null), "/");
});
