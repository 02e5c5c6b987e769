import { found, isAsking, matcher, readFilters, writeFilters } from "/static/js/run/filters.js";
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
const asks = (wanted) => found(trees, matcher({ ...readFilters(new URLSearchParams()), ...wanted }));

test("each filter leaves what it names, and all together what all name", () => {
  equal([asks({}).nodes, asks({}).trees], [3, 2]);
  equal([...asks({ agent: "fern" }).ids.keys()], [7, 9]);
  equal([...asks({ agent: "fern", depth: "2" }).ids.get(7)], [2]);
  equal(asks({ verdict: "wrong_answer", agent: "oak" }).nodes, 0);
  equal([asks({ score: "passed" }).nodes, asks({ score: "open" }).nodes, asks({ score: "failed" }).nodes], [1, 1, 1]);
});

test("words are sought in programs and problems, a number is a node or a tree", () => {
  equal([...asks({ q: "X = 2" }).ids.keys()], [7]);
  equal([...asks({ q: "the MOST" }).ids.keys()], [9]);
  equal(asks({ q: "#1" }).nodes, 2);
  equal([...asks({ q: "9" }).ids.keys()], [9]);
});

test("filters go into an address and come back", () => {
  const address = new URLSearchParams("tree=7");
  const wanted = { ...readFilters(address), agent: "oak", q: "a b&c" };
  ok(!isAsking(readFilters(address)) && isAsking(wanted));
  writeFilters(wanted, address);
  equal(readFilters(new URLSearchParams(address.toString())), wanted);
  equal([...address.keys()], ["tree", "agent", "q"]);
});

test("an address names tree, node, moment and filters, and nothing that is not there", () => {
  const filters = { ...readFilters(new URLSearchParams()), q: "x" };
  const hash = addressOf({ tree: 7, node: undefined, seq: 40, filters });
  equal(hash, "#tree=7&seq=40&q=x");
  equal(readAddress(hash), { tree: 7, node: null, seq: 40, filters });
  equal(addressOf({ tree: null, filters: readFilters(new URLSearchParams()) }), "");
  equal([readAddress(""), readAddress("#nothing=1"), readAddress("#tree=x")], [null, null, null]);
});
