/**
 * The list of runs, kept up to date while it is visible: the page fetches itself again and takes
 * over the rows that changed. A row without changes is left alone, and focus with it.
 */

import { element } from "../lib/dom.js";
import { tellAges } from "./frame.js";
import { loadFault } from "../lib/load-fault.js";

const EVERY_MS = 5_000;
const LIST = '[data-part="list"]';

async function refresh() {
  if (document.hidden) return;
  const list = document.querySelector(LIST);
  list.setAttribute("aria-busy", "true");
  try {
    const reply = await fetch(location.href);
    if (reply.redirected || !reply.ok) throw { status: reply.redirected ? 401 : reply.status };
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    takeOver(document.querySelector(LIST), page.querySelector(LIST));
    fault.remove();
  } catch (error) {
    setFault(error);
  } finally {
    document.querySelector(LIST).removeAttribute("aria-busy");
  }
}

const fault = element("div", { class: "note warn", role: "status", "data-part": "listFault" });

/** Shows a note that the rows may be out of date, with a button to retry; keeps the rows. */
function setFault(error) {
  const { text } = loadFault(error);
  const retry = element("button", { class: "button", type: "button", onclick: refresh }, "Try again");
  if (fault.isConnected && fault.dataset.text === text) return;
  fault.dataset.text = text;
  fault.replaceChildren(element("div", {}, element("b", {}, "This list may be out of date. "), text), retry);
  document.querySelector(LIST).before(fault);
}

function takeOver(shown, fresh) {
  const [rows, news] = [shown, fresh].map((list) => list.querySelector("tbody"));
  if (!rows || !news) {
    if (Boolean(rows) !== Boolean(news)) shown.replaceWith(fresh);
    return;
  }
  const focused = document.activeElement.closest("tr")?.id;
  const known = new Map([...rows.rows].map((row) => [row.id, row]));
  for (const row of news.rows) if (chosen(known.get(row.id))?.checked) chosen(row).checked = true;
  const wanted = [...news.rows].map((row) => sameAs(known.get(row.id), row) ?? row);
  // Rows that stay are never moved: an element that leaves the page loses the focus.
  for (const row of known.values()) if (!wanted.includes(row)) row.remove();
  wanted.forEach((row, place) => {
    if (rows.rows[place] !== row) rows.insertBefore(row, rows.rows[place] ?? null);
  });
  if (focused && document.activeElement === document.body) {
    document.getElementById(focused)?.querySelector("a").focus();
  }
  takeOverPager(shown, fresh);
  tellAges();
}

/** Replaces the pager, which changes with the rows: an old cursor would skip a run. */
function takeOverPager(shown, fresh) {
  const [pager, next] = [shown, fresh].map((list) => list.querySelector(".pager"));
  if (pager?.outerHTML === next?.outerHTML) return;
  pager?.remove();
  if (next) shown.querySelector("#chosen").before(next);
}

/** Returns the checkbox of a row; a checked one stays checked when its row is replaced. */
function chosen(row) {
  return row?.querySelector('input[name="run"]');
}

/** Returns the displayed row if the new one has the same content; frame.js updates its age. */
function sameAs(row, fresh) {
  const said = (one) => [...one.cells].map((cell) => (cell.querySelector("[data-age]") ? "" : cell.innerHTML)).join();
  return row && said(row) === said(fresh) ? row : null;
}

setInterval(refresh, EVERY_MS);
document.addEventListener("visibilitychange", refresh);
