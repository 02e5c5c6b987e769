/**
 * The list of runs, kept up to date while it is visible: the page fetches itself again and takes
 * over the rows that changed. A row without changes is left alone, and focus with it.
 */

import { ErrorNote, fetchOk } from "../lib/error-note.js";
import { updateAges } from "./frame.js";
import { loadError } from "../lib/load-error.js";

const EVERY_MS = 5_000;
const LIST = '[data-part="list"]';
const list = () => document.querySelector(LIST);
const errorNote = new ErrorNote(list, "This list may be out of date.");

async function refresh() {
  if (document.hidden) return;
  list().setAttribute("aria-busy", "true");
  try {
    const response = await fetchOk(location.href);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    update(list(), page.querySelector(LIST));
    errorNote.hide();
  } catch (error) {
    errorNote.show(loadError(error).text, refresh); // the rows stay
  } finally {
    list().removeAttribute("aria-busy");
  }
}

function update(shown, fresh) {
  const [rows, news] = [shown, fresh].map((list) => list.querySelector("tbody"));
  if (!rows || !news) {
    if (Boolean(rows) !== Boolean(news)) shown.replaceWith(fresh);
    return;
  }
  const focused = document.activeElement.closest("tr")?.id;
  const byId = new Map([...rows.rows].map((row) => [row.id, row]));
  for (const row of news.rows) if (checkboxOf(byId.get(row.id))?.checked) checkboxOf(row).checked = true;
  const merged = [...news.rows].map((row) => sameAs(byId.get(row.id), row) ?? row);
  // Rows that stay are never moved: an element that leaves the page loses the focus.
  for (const row of byId.values()) if (!merged.includes(row)) row.remove();
  merged.forEach((row, index) => {
    if (rows.rows[index] !== row) rows.insertBefore(row, rows.rows[index] ?? null);
  });
  if (focused && document.activeElement === document.body) {
    document.getElementById(focused)?.querySelector("a").focus();
  }
  updatePager(shown, fresh);
  updateAges();
}

/** Replaces the pager, which changes with the rows: an old cursor would skip a run. */
function updatePager(shown, fresh) {
  const [pager, next] = [shown, fresh].map((list) => list.querySelector(".pager"));
  if (pager?.outerHTML === next?.outerHTML) return;
  pager?.remove();
  if (next) shown.querySelector("#chosen").before(next);
}

/** Returns the checkbox of a row; a checked one stays checked when its row is replaced. */
function checkboxOf(row) {
  return row?.querySelector('input[name="run"]');
}

/** Returns the displayed row if the new one has the same content; frame.js updates its age. */
function sameAs(row, fresh) {
  const contentOf = (one) => [...one.cells].map((cell) => (cell.querySelector("[data-age]") ? "" : cell.innerHTML)).join();
  return row && contentOf(row) === contentOf(fresh) ? row : null;
}

setInterval(refresh, EVERY_MS);
document.addEventListener("visibilitychange", refresh);
