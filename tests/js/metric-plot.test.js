import { MetricPlot } from "/static/js/metrics/metric-plot.js";
import { equal, ok, test } from "./check.js";

const VIEW = { x: "step", from: null, logX: false, logY: false };

function line(label, mean, gap) {
  return { label, token: "--none", dash: 0, mean, least: mean, most: mean, count: mean.map(() => 1), gap };
}

/** Returns the plot of some lines over 1..n on a page that has a colour for them. */
function drawn(lines, changes = {}) {
  document.documentElement.style.setProperty("--none", "#d00000");
  const host = document.createElement("div");
  host.style.width = "600px";
  document.body.append(host);
  const plot = new MetricPlot(host, { cursor() {}, zoom() {}, text: String });
  const x = lines[0].mean.map((_, slot) => slot + 1);
  const range = { from: 1, to: x.length, log: false };
  plot.show({ id: "reward", share: true, x, lines, stacked: false, view: VIEW, range, ...changes });
  return plot.plot;
}

/** Returns whether the column of pixels at a value of x has one of the lines' colour. */
async function isDrawn(plot, x) {
  await new Promise(requestAnimationFrame);
  const at = Math.round(plot.valToPos(x, "x", true));
  const { data } = plot.ctx.getImageData(at, 0, 1, plot.ctx.canvas.height);
  for (let index = 0; index < data.length; index += 4) {
    if (data[index + 3] > 200 && data[index] > 180 && data[index + 1] < 80) return true;
  }
  return false;
}

const many = (value) => Array.from({ length: 50 }, () => value);

test("no line leads across a gap", async () => {
  const mean = many(0.5);
  mean.fill(null, 20, 30);
  const whole = drawn([line("a", mean)]);
  const broken = drawn([line("a", mean, mean.map((value) => value === null))]);
  equal([await isDrawn(whole, 10), await isDrawn(whole, 25.5)], [true, true]);
  equal([await isDrawn(broken, 10), await isDrawn(broken, 25.5), await isDrawn(broken, 40)], [true, false, true]);
});

test("a line passes over slots in which only another line has a point", async () => {
  const every = many(0.5);
  const some = every.map((value, slot) => (slot % 10 ? null : value));
  const gap = some.map((_, slot) => slot === 25);
  const plot = drawn([line("a", every.map(() => null)), line("b", some, gap)]);
  equal([await isDrawn(plot, 5), await isDrawn(plot, 25.5), await isDrawn(plot, 35)], [true, false, true]);
});

test("a point between two gaps is drawn", async () => {
  const mean = many(0.5);
  mean.fill(null, 20, 25);
  mean.fill(null, 26, 30);
  const plot = drawn([line("a", mean, mean.map((value) => value === null))]);
  equal([await isDrawn(plot, 23), await isDrawn(plot, 26), await isDrawn(plot, 28)], [false, true, false]);
  ok(await isDrawn(plot, 40));
});
