/** The policy versions that sampled an answer, as text. */

/** "3"; of an answer that newer weights carried on "3, 4 from token 18, 5 from token 40". */
export function policyVersions(node) {
  let first = 1;
  const parts = (node.pieces ?? []).map(([version, tokens]) => {
    const part = first === 1 ? String(version) : `${version} from token ${first}`;
    first += tokens;
    return part;
  });
  return parts.join(", ") || node.policyVersion;
}
