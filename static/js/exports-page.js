/** The list of exports: while one is under way, the page asks for itself and shows how it stands. */

import { tellAges } from "./frame.js";

const EVERY_MS = 1_500;
const LIST = '[data-part="list"]';

async function refresh() {
  const shown = document.querySelector(LIST);
  if (document.hidden || !("pending" in shown.dataset) || shown.contains(document.activeElement)) return;
  const reply = await fetch(location.href).catch(() => null); // the footer tells of a lost server
  if (!reply?.ok || reply.redirected) return;
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  shown.replaceWith(page.querySelector(LIST));
  tellAges();
}

setInterval(refresh, EVERY_MS);
