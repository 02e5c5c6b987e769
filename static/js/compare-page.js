/** Curves of several runs, each run in the look that an agent has on its own page. */

import { Charts } from "./charts.js";
import { Comments } from "./comments.js";

const { labels, curves } = JSON.parse(document.getElementById("page").textContent);
const host = document.querySelector('[data-part="charts"]');

if (host) {
  const runs = labels.map((name, position) => ({ name, position }));
  const charts = new Charts(host);
  charts.show(curves, runs);
  addEventListener("themechange", () => charts.themeChanged());
}
const comments = document.querySelector("[data-comments]");
if (comments) new Comments(comments);

// The address keeps only what was chosen.
document.querySelector(".compare-choice")?.addEventListener("formdata", ({ formData }) => {
  const chosen = formData.getAll("run").filter(Boolean);
  formData.delete("run");
  for (const run of chosen) formData.append("run", run);
});
