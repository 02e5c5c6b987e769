/** The small texts of the run page: its log, and the status of its stream. */

import { element, setText } from "../lib/dom.js";
import { clock } from "../lib/format.js";
import { statusText } from "../stream/stream.js";

const NEAR_END = 40; // px from the end within which the log keeps scrolling

/** Draws the newest lines of the log, in a card that is hidden until there is one. */
export function drawLog(card, host, { logs }) {
  const newest = logs.at(-1);
  const version = String(newest?.seq ?? "");
  if ((host.dataset.newest ?? "") === version) return;
  host.dataset.newest = version;
  // A hidden card has no size to read, and reading it would lay out the whole page.
  const atEnd = card.hidden || host.scrollHeight - host.scrollTop - host.clientHeight < NEAR_END;
  card.hidden = !newest;
  host.replaceChildren(
    ...logs.map((line) =>
      element("div", { class: `level-${line.level}` }, `${clock(line.time)} ${line.message}`),
    ),
  );
  if (atEnd) requestAnimationFrame(() => (host.scrollTop = host.scrollHeight));
}

/** @param state the run's; `head` is the newest seq received, `shown` the displayed one. */
export function drawStream(host, status, state, head, shown) {
  const text = statusText(status, state, clock);
  setText(host, text);
  host.dataset.kind = text === "ended" ? "ended" : status.kind;
  host.dataset.seq = head;
  host.dataset.shown = shown;
}
