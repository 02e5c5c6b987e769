/** The page of a comparison, for members and for guests: the curves that it names, and comments. */

import { Comments } from "../run/comments.js";
import { setText } from "../lib/dom.js";
import { chartsFrom } from "../metrics/metric-names.js";
import { MetricPage } from "./metric-page.js";

const RENEW_MS = 15_000;
const part = (name) => document.querySelector(`[data-part="${name}"]`);
const { curves, runs, frozen } = JSON.parse(document.getElementById("page").textContent);

/** Arranges the charts in the order in which the page names their series. */
function arrange(board, all) {
  const charts = chartsFrom(all).filter(({ id }) => orderOf(id) >= 0);
  charts.sort((a, b) => orderOf(a.id) - orderOf(b.id));
  const host = part("charts");
  board.arrange(charts, (root) => host.append(root));
  part("none").hidden = charts.length > 0;
  setText(part("none"), "No data yet. Charts appear here as soon as the runs report metrics.");
}

function orderOf(name) {
  return curves.findIndex((one) => name === one || name.startsWith(`${one}.`));
}

if (part("charts")) new MetricPage(runs, { arrange, freshText: frozen ? "frozen" : "live" });
const comments = document.querySelector("[data-comments]");
if (comments) pollComments(new Comments(comments));

/** Polls comments: a comparison has no stream that would announce them. */
function pollComments(thread) {
  setInterval(() => document.hidden || thread.renew(), RENEW_MS);
}

// The address keeps only the chosen runs.
document.querySelector(".compare-choice")?.addEventListener("formdata", ({ formData }) => {
  const chosen = formData.getAll("run").filter(Boolean);
  formData.delete("run");
  for (const run of chosen) formData.append("run", run);
});
