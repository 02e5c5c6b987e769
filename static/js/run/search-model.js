/** A search at test time as numbers. Pure: the fold's trees in. */

/** The closed node that would be the answer now: most public tests, then the latest; or undefined. */
export function bestNode(tree) {
  let best;
  for (const node of tree.nodes.values()) {
    if (!node.closed || node.score === null) continue;
    if (!best || node.score > best.score || (node.score === best.score && node.id > best.id)) best = node;
  }
  return best;
}

/**
 * What a search has used of what it may: [{name, used, most}], of what is limited, nodes first;
 * times in milliseconds, `now` is the moment that is shown.
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

/** Share of the budget that is spent, 0 to 1: whichever limit is nearest. */
export function shareOf(rows) {
  return Math.min(1, Math.max(...rows.map(({ used, most }) => used / most)));
}
