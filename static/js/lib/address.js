/** The part of the page's address after #: tree, node, moment and filters. Pure. */

import { isAsking, readFilters, writeFilters } from "../run/filters.js";

/** {tree, node, seq, filters}, null where it says nothing; null for an address without any. */
export function readAddress(hash) {
  const fields = new URLSearchParams(hash.slice(1));
  const given = (name) => Number(fields.get(name)) || null;
  const [tree, node, seq] = ["tree", "node", "seq"].map(given);
  const filters = readFilters(fields);
  return tree || seq || isAsking(filters) ? { tree, node, seq, filters } : null;
}

/** "#tree=7&node=2&seq=40&agent=oak", with only what there is; "" for nothing. */
export function addressOf({ filters, ...places }) {
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries(places)) if (value) fields.set(name, value);
  writeFilters(filters, fields);
  return fields.size ? `#${fields}` : "";
}
