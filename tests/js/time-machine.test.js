import { asJson, fold } from "/static/js/stream/fold.js";
import { firstAfter, TimeMachine } from "/static/js/run/time-machine.js";
import { equal, ok, test } from "./check.js";

/** A log of trees of three nodes, ten seconds between events; every 100 events end a step. */
function log(length) {
  const events = [];
  let tree = 0;
  for (let seq = 1; seq <= length; seq += 1) {
    const time = 10_000 * seq;
    if (seq % 100 === 1) events.push([seq, time, "step.start", { step: Math.ceil(seq / 100), trees: 9 }]);
    else if (seq % 10 === 2) {
      tree = seq;
      events.push([seq, time, "tree.open", { tree, step: Math.ceil(seq / 100), problem: "p", statement: "s" }]);
    } else if (tree && seq - tree <= 6 && seq > tree) {
      const node = Math.ceil((seq - tree) / 2);
      if ((seq - tree) % 2) events.push([seq, time, "node.open", { tree, node, agent: "oak", parent: node - 1, depth: node, draws: {} }]);
      else events.push([seq, time, "node.close", { tree, node, score: 1, fraction: 1 }]);
    } else events.push([seq, time, "log.line", { level: "info", message: `${seq}` }]);
  }
  return events;
}

function machineOf(events, env) {
  const loads = [];
  const machine = new TimeMachine(
    {
      loadState: async (seq) => {
        loads.push(seq);
        return { seq, events: events.slice(0, seq) };
      },
      loadEvents: async (after, until) => events.slice(after, until),
      head: () => events.length,
      onChange: () => {},
      onError: (error) => {
        throw error;
      },
    },
    env,
  );
  return { machine, loads };
}

test("at every event the state is the fold of the log up to it, in any order of seeks", async () => {
  const events = log(9000);
  const { machine, loads } = machineOf(events);
  for (const seq of [8000, 7990, 7600, 8001, 12, 1, 4000, 9000, 2500, 5000]) {
    ok(await machine.seek(seq));
    equal(asJson(machine.state), asJson(fold(events.slice(0, seq))), `at ${seq}:`);
  }
  ok(loads.length < 8, `${loads.length} windows`);
  machine.live();
  ok(!machine.active);
});

test("of several concurrent seeks the last one wins", async () => {
  const { machine } = machineOf(log(9000));
  const results = await Promise.all([machine.seek(8000), machine.seek(100), machine.seek(5000)]);
  equal(results, [false, false, true]);
  equal(machine.seq, 5000);
});

test("a step moves from verdict to verdict, also beyond the window", async () => {
  const events = log(9000);
  const { machine } = machineOf(events);
  const closes = events.filter(([, , kind]) => kind === "node.close").map(([seq]) => seq);
  await machine.seek(4000);
  await machine.step(1);
  equal(machine.seq, closes.find((seq) => seq > 4000));
  await machine.step(-1);
  equal(machine.seq, closes.findLast((seq) => seq < closes.find((one) => one > 4000)));
  await machine.seek(machine.window.end);
  const last = machine.seq;
  await machine.step(1);
  equal(machine.seq, closes.find((seq) => seq > last));
  await machine.seek(machine.window.base + 1);
  const first = machine.seq;
  await machine.step(-1);
  equal(machine.seq, closes.findLast((seq) => seq < first));
});

test("play follows the log's own time, shortens its pauses and ends at the head", async () => {
  const events = log(3600);
  let now = 0;
  const due = [];
  const env = { now: () => now, later: (action) => due.push(action), cancel: () => {} };
  const { machine } = machineOf(events, env);
  machine.setSpeed(4);
  await machine.seek(3000);
  await machine.play();
  const seen = [];
  for (let tick = 0; machine.playing && tick < 20_000; tick += 1) {
    now += 50;
    await due.shift()();
    seen.push(machine.seq);
  }
  // Ten seconds between events play as at most one second: 20 ticks for each event.
  ok(seen.length > 600 * 18 && seen.length < 600 * 22, `${seen.length} ticks`);
  ok(seen.every((seq, index) => !index || seq - seen[index - 1] <= 1), "no event is skipped");
  equal([machine.seq, machine.playing], [3600, false]);
});

test("firstAfter is a binary search", () => {
  const events = [[2], [5], [9]];
  equal([0, 2, 4, 9, 11].map((seq) => firstAfter(events, seq)), [0, 1, 1, 3, 3]);
});
