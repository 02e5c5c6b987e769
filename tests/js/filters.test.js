import { findMatches, hasFilters, matcher, readFilters, writeFilters } from "/static/js/run/filters.js";
import { addressOf, readAddress } from "/static/js/lib/address.js";
import { equal, ok, test } from "./check.js";

const node = (id, agent, score, extra = {}) => ({
  id, agent, score, parent: 0, depth: 1, closed: true, fraction: score, verdict: score ? "passed" : "wrong_answer",
  program: `x = ${id}`, error: "", ...extra,
});
const trees = [
  { id: 7, problem: "sum", statement: "Add.", nodes: new Map([[1, node(1, "oak", 1)], [2, node(2, "fern", 0, { depth: 2 })]]) },
  { id: 9, problem: "max", statement: "Take the most.", nodes: new Map([[1, node(1, "fern", 0, { closed: false, program: undefined })]]) },
];
const find = (filters) => findMatches(trees, matcher({ ...readFilters(new URLSearchParams()), ...filters }));

test("each filter keeps its matches, and several keep those of all", () => {
  equal([find({}).nodes, find({}).trees], [3, 2]);
  equal([...find({ agent: "fern" }).ids.keys()], [7, 9]);
  equal([...find({ agent: "fern", depth: "2" }).ids.get(7)], [2]);
  equal(find({ verdict: "wrong_answer", agent: "oak" }).nodes, 0);
  equal([find({ score: "passed" }).nodes, find({ score: "open" }).nodes, find({ score: "failed" }).nodes], [1, 1, 1]);
});

test("text searches programs and problems, a number matches a node or a tree", () => {
  equal([...find({ q: "X = 2" }).ids.keys()], [7]);
  equal([...find({ q: "the MOST" }).ids.keys()], [9]);
  equal(find({ q: "#1" }).nodes, 2);
  equal([...find({ q: "9" }).ids.keys()], [9]);
});

test("filters are written to an address and read back", () => {
  const address = new URLSearchParams("tree=7");
  const filters = { ...readFilters(address), agent: "oak", q: "a b&c" };
  ok(!hasFilters(readFilters(address)) && hasFilters(filters));
  writeFilters(filters, address);
  equal(readFilters(new URLSearchParams(address.toString())), filters);
  equal([...address.keys()], ["tree", "agent", "q"]);
});

test("an address names tree, node, event and filters, and leaves out the rest", () => {
  const filters = { ...readFilters(new URLSearchParams()), q: "x" };
  const hash = addressOf({ tree: 7, node: undefined, seq: 40, filters });
  equal(hash, "#tree=7&seq=40&q=x");
  equal(readAddress(hash), { tree: 7, node: null, seq: 40, filters });
  equal(addressOf({ tree: null, filters: readFilters(new URLSearchParams()) }), "");
  equal([readAddress(""), readAddress("#nothing=1"), readAddress("#tree=x")], [null, null, null]);
});
