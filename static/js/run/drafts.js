/**
 * Texts of nodes that are being written. Pure.
 *
 * Invariant: a text is shown only for a node that the state holds as open. What arrives is not part of
 * the log: a text may be missing, and the last one stays until its node is closed.
 */

export const MOST_SHOWN = 16;

export class Drafts {
  constructor() {
    this.byNode = new Map(); // "tree/node" -> {agent, tokens, text}
    this.version = 0;
  }

  /** Takes what a frame of the stream holds: [{tree, node, agent, tokens, text}]. */
  take(nodes) {
    for (const { tree, node, agent, tokens, text } of nodes) this.byNode.set(`${tree}/${node}`, { agent, tokens, text });
    this.version += 1;
  }

  /** Returns the draft of a node, or null. */
  of(tree, node) {
    return this.byNode.get(`${tree.id}/${node.id}`) ?? null;
  }

  clear() {
    this.byNode.clear();
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

/** Returns what is said of a node that is being written. @param streams whether its agent has drafts. */
export function draftNote(draft, streams) {
  if (draft) return draft.tokens === 1 ? "1 token so far" : `${draft.tokens} tokens so far`;
  return streams ? "Waiting for the first tokens" : "The text appears when it is complete: this agent's server does not send it before";
}
