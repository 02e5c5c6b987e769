/** The fragment of the page's address: tree, node, event and filters. Pure. */

import { hasFilters, readFilters, writeFilters } from "../run/filters.js";

/** Returns {tree, node, seq, filters}, null where a part is missing; null without any of them. */
export function readAddress(hash) {
  const fields = new URLSearchParams(hash.slice(1));
  const numberOf = (name) => Number(fields.get(name)) || null;
  const [tree, node, seq] = ["tree", "node", "seq"].map(numberOf);
  const filters = readFilters(fields);
  return tree || seq || hasFilters(filters) ? { tree, node, seq, filters } : null;
}

/** Returns "#tree=7&node=2&seq=40&agent=oak" with only the parts that are set; "" for none. */
export function addressOf({ filters, ...ids }) {
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries(ids)) if (value) fields.set(name, value);
  writeFilters(filters, fields);
  return fields.size ? `#${fields}` : "";
}
