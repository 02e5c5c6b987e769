/** A histogram as bars, with its ends below: of a value that a program logged, or of rewards. */

import { element, svg } from "../lib/dom.js";
import { number } from "../lib/format.js";

/** Returns the elements of a histogram: `counts` between `edges`, one more than these. */
export function histogramOf({ edges, counts }, name) {
  const [width, height] = [400, 120];
  const most = Math.max(...counts, 1e-300);
  const [low, high] = [edges[0], edges.at(-1)];
  const span = high - low || 1;
  const bars = counts.map((value, index) => {
    const [from, to] = [edges[index], edges[index + 1]].map((edge) => ((edge - low) / span) * width);
    const tall = (value / most) * height;
    const title = `${number(edges[index])} to ${number(edges[index + 1])}: ${number(value)}`;
    return svg("rect", { class: "bin", x: from, y: height - tall, width: Math.max(0.5, to - from - 0.5), height: tall }, svg("title", {}, title));
  });
  const total = counts.reduce((sum, value) => sum + value, 0);
  const about = `Histogram of ${name}: ${number(total)} values from ${number(low)} to ${number(high)}`;
  const picture = svg("svg", { class: "histogram", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": about }, ...bars);
  const ends = element("div", { class: "histogram-ends small muted" }, element("span", {}, number(low)), element("span", {}, `${number(total)} values`), element("span", {}, number(high)));
  return [picture, ends];
}
