/**
 * Texts of nodes that are being written. Pure.
 *
 * Invariant: a text is shown only for a node that the state holds as open. What arrives is not part of
 * the log: a text may be missing, and the last one stays until its node is closed, or until a frame
 * without drafts says that no engine writes any more.
 */

import { duration } from "../lib/format.js";

export const MOST_SHOWN = 16;
export const QUIET_MS = 15_000; // without a new token of any node

export class Drafts {
  constructor() {
    this.byNode = new Map(); // "tree/node" -> {agent, tokens, text}
    this.version = 0;
    this.grewAt = -Infinity; // when the last frame with a text came, in ms
    this.ended = false; // whether the engine that wrote has ended
  }

  /** Takes what a frame of the stream holds: [{tree, node, agent, tokens, text}]. */
  take(nodes, now = Date.now()) {
    if (!nodes.length) {
      this.clear();
      this.ended = true;
      return;
    }
    this.ended = false;
    this.grewAt = now;
    for (const { tree, node, agent, tokens, text } of nodes) this.byNode.set(`${tree}/${node}`, { agent, tokens, text });
    this.version += 1;
  }

  /** Returns the draft of a node, or null. */
  of(tree, node) {
    return this.byNode.get(`${tree.id}/${node.id}`) ?? null;
  }

  /** Returns for how many milliseconds no text has grown; Infinity if there is none. */
  quiet(now) {
    return this.byNode.size ? now - this.grewAt : Infinity;
  }

  /** Discards all drafts, of a log or an engine that begins again. */
  clear() {
    this.byNode.clear();
    this.ended = false;
    this.grewAt = -Infinity;
    this.version += 1;
  }

  /** Returns [{tree, node, draft}] of the open nodes of the newest tree, the newest `MOST_SHOWN`, in the
   *  order of their ids; discards the drafts of all nodes that are not open. */
  inFlight(state) {
    const open = new Set();
    const rows = [];
    for (const tree of state.trees.values()) {
      for (const node of tree.nodes.values()) {
        if (node.closed) continue;
        open.add(`${tree.id}/${node.id}`);
        rows.push({ tree, node, draft: this.of(tree, node) });
      }
    }
    for (const key of this.byNode.keys()) if (!open.has(key)) this.byNode.delete(key);
    const newest = Math.max(0, ...rows.map(({ tree }) => tree.id));
    return rows.filter(({ tree }) => tree.id === newest).slice(-MOST_SHOWN);
  }
}

/** Returns what is said of a node that is being written. @param streams whether its agent has drafts;
 *  `quiet`: for how many milliseconds no text of the run has grown. */
export function draftNote(draft, streams, quiet = 0) {
  if (draft) {
    const tokens = draft.tokens === 1 ? "1 token so far" : `${draft.tokens} tokens so far`;
    return quiet < QUIET_MS ? tokens : `${tokens}, none for ${duration(quiet / 1000)}`;
  }
  return streams ? "Waiting for the first tokens" : "The text appears when it is complete: this agent's server does not send it before";
}
