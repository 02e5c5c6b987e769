/** The lineage of a node: its path, its children, the update and checkpoint that used it. Pure. */

/** Returns the nodes from below the root to this one; with a cycle, each node once. */
export function pathTo(tree, node) {
  const path = new Set();
  for (let at = node; at && !path.has(at); at = tree.nodes.get(at.parent)) path.add(at);
  return [...path].reverse();
}

export function childrenOf(tree, node) {
  return [...tree.nodes.values()].filter((one) => one.parent === node.id);
}

/** Returns the ids of all nodes below a node. */
export function descendants(tree, id) {
  const below = new Set([id]);
  // Children are opened after their parents, so one pass in this order reaches them all.
  for (const node of tree.nodes.values()) if (below.has(node.parent)) below.add(node.id);
  below.delete(id);
  return below;
}

/**
 * Returns {update, checkpoint}: the optimizer step that learned from a node and the first
 * checkpoint that holds it; `update` is null if none did, undefined if the log is too old to
 * say.
 */
export function trainedBy(state, tree, node) {
  const updates = state.updates.filter(
    (one) => one.agent === node.agent || (one.shared_with ?? []).includes(node.agent),
  );
  const update = updates.find((one) => (one.trees ?? []).includes(tree.id)) ?? null;
  if (!update) {
    const unrecorded = updates.some((one) => one.step >= tree.step) && updates.every((one) => !one.trees?.length);
    return { update: unrecorded ? undefined : null, checkpoint: null };
  }
  return { update, checkpoint: state.checkpoints.find((one) => one.step >= update.step) ?? null };
}
