import { addressOf, readAddress } from "/static/js/lib/address.js";
import { equal, test } from "./check.js";

const NONE = { agent: "", score: "", verdict: "", depth: "", q: "" };

test("an address is read and written unchanged", () => {
  const hash = "#tree=7&node=2&seq=40&agent=oak&q=return+x";
  const read = readAddress(hash);
  equal([read.tree, read.node, read.seq], [7, 2, 40]);
  equal([read.filters.agent, read.filters.q], ["oak", "return x"]);
  equal(addressOf(read), hash);
});

test("no tree, event or filter gives no address, and no fragment gives null", () => {
  equal(readAddress(""), null);
  equal(readAddress("#charts"), null);
  equal(readAddress("#tree=seven&node=2"), null, "a node stands in a tree");
  equal(addressOf({ tree: null, node: null, seq: null, filters: NONE }), "");
});
