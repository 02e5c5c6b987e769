/** Figures of a search at test time. Pure: a function of the fold's trees. */

/** Returns the closed node that would be the answer now: most public tests, then the latest. */
export function bestNode(tree) {
  let best;
  for (const node of tree.nodes.values()) {
    if (!node.closed || node.score === null) continue;
    if (!best || node.score > best.score || (node.score === best.score && node.id > best.id)) best = node;
  }
  return best;
}

/**
 * Returns what a search has used of each limit: [{name, used, most}], nodes first; times are in
 * milliseconds, `now` is the displayed moment.
 */
export function spentOf(state, budget, now) {
  const tree = [...state.trees.values()].at(-1);
  const closed = tree ? [...tree.nodes.values()].filter((node) => node.closed) : [];
  const rows = [{ name: "nodes", used: closed.length, most: budget.nodes }];
  if (budget.tokens) {
    const tokens = closed.reduce((sum, node) => sum + (node.tokens ?? 0), 0);
    rows.push({ name: "tokens", used: tokens, most: budget.tokens });
  }
  if (budget.seconds) {
    const end = state.answer?.time ?? now;
    const used = tree ? Math.max(0, (end - state.stepStartedAt) / 1000) : 0;
    rows.push({ name: "seconds", used: Math.round(used), most: budget.seconds });
  }
  return rows;
}

/** Returns the share of the budget that is used, 0 to 1: that of the nearest limit. */
export function shareOf(rows) {
  return Math.min(1, Math.max(...rows.map(({ used, most }) => used / most)));
}
