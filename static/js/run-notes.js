/** The small texts of the run page: its log, and how its stream is. */

import { element, setText } from "./dom.js";
import { clock } from "./format.js";
import { statusText } from "./stream.js";

const NEAR_END = 40; // px from its end at which a log stays at its end

/** The newest lines of the log, in a card that is there once there is one. */
export function drawLog(card, host, { logs }) {
  const newest = logs.at(-1);
  if (host.dataset.newest === String(newest?.seq ?? "")) return;
  host.dataset.newest = String(newest?.seq ?? "");
  card.hidden = !newest;
  const atEnd = host.scrollHeight - host.scrollTop - host.clientHeight < NEAR_END;
  host.replaceChildren(
    ...logs.map((line) =>
      element("div", { class: `level-${line.level}` }, `${clock(line.time)} ${line.message}`),
    ),
  );
  if (atEnd) host.scrollTop = host.scrollHeight;
}

/** @param state the run's; `head` and `shown` the seq that arrived last and the one shown. */
export function drawStream(host, status, state, head, shown) {
  const text = statusText(status, state, clock);
  setText(host, text);
  host.dataset.kind = text === "ended" ? "ended" : status.kind;
  host.dataset.seq = head;
  host.dataset.shown = shown;
}
