import { backoff, connectionNote, RunStream, statusText } from "/static/js/stream/stream.js";
import { equal, ok, test } from "./check.js";

/** A simulated environment: the test opens its sockets and advances its clock. */
function fakeBrowser() {
  const made = {
    sockets: [], clock: 0, timers: new Map(), next: 1, isHidden: false, states: {},
    now: () => made.clock,
    random: () => 1,
    hidden: () => made.isHidden,
    later: (action, ms) => {
      made.timers.set(made.next, { action, at: made.clock + ms });
      return made.next++;
    },
    cancel: (timer) => made.timers.delete(timer),
    load: async (href) => made.states[href],
    open: (url, protocol) => {
      const socket = { url, protocol, readyState: 0, sent: [], closedWith: null };
      socket.send = (text) => socket.sent.push(JSON.parse(text));
      socket.close = (code) => (socket.closedWith = code);
      made.sockets.push(socket);
      return socket;
    },
    pass(ms) {
      made.clock += ms;
      for (const [id, timer] of [...made.timers]) {
        if (timer.at <= made.clock && made.timers.delete(id)) timer.action();
      }
    },
  };
  return made;
}

async function opened(after = 0, first = after ? Promise.resolve({ epoch: "e1", seq: after, events: [] }) : null) {
  const its = fakeBrowser();
  const received = { events: [], resets: 0, statuses: [], rows: [] };
  const stream = new RunStream(
    {
      url: "ws://x/stream", run: "r", stateUrl: "/state", first, epoch: "e1",
      onEvents: (events) => received.events.push(...events.map(([seq]) => seq)),
      onReset: () => { received.resets += 1; received.events = []; },
      onStatus: (status) => received.statuses.push(status),
      onRunStatus: (row) => received.rows.push(row),
    },
    its,
  );
  stream.start();
  accept(its.sockets[0]);
  await turns();
  received.resets = 0;
  return { its, received, stream };
}

function accept(socket) {
  socket.readyState = 1;
  socket.onopen();
}

const turns = async () => {
  for (let turn = 0; turn < 20; turn += 1) await null;
};
const say = async (socket, ...messages) => {
  for (const message of messages) socket.onmessage({ data: JSON.stringify(message) });
  await turns(); // frames are handled one after another, each in its own task
};
const events = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => [from + i, 0, "k", {}]);
const batch = (from, to) => ({ type: "batch", sid: 1, from, to, events: events(from, to) });
const subscribed = (head, epoch = "e1") => ({ type: "subscribed", sid: 1, epoch, head, oldest: 1 });

test("it says hello, subscribes after its last event and is live at the head", async () => {
  const { its, received } = await opened(3);
  equal(its.sockets[0].protocol, "grove.v1");
  equal(its.sockets[0].sent.map((message) => message.type), ["hello", "sub"]);
  equal([its.sockets[0].sent[1].after, its.sockets[0].sent[1].max_hz], [3, 20]);
  await say(its.sockets[0], subscribed(7), batch(4, 5));
  equal(received.statuses.at(-1), { kind: "catching-up", percent: 50 });
  await say(its.sockets[0], batch(6, 7));
  equal(received.events, [4, 5, 6, 7]);
  equal(received.statuses.at(-1).kind, "live");
});

test("a page without events loads a snapshot; later frames wait for it", async () => {
  const { its, received } = await opened();
  equal(its.sockets[0].sent[1].after, null);
  its.states["/s"] = { epoch: "e1", seq: 100, events: [[1, 0, "k", {}], [90, 0, "k", {}]] };
  await say(its.sockets[0], subscribed(100), { type: "snapshot", sid: 1, seq: 100, href: "/s" }, batch(101, 102));
  equal(received.events, [1, 90, 101, 102]);
});

test("a snapshot that never comes holds up no later socket", async () => {
  const { its, received } = await opened();
  its.load = (href, signal) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));
  await say(its.sockets[0], subscribed(100), { type: "snapshot", sid: 1, seq: 100, href: "/s" });
  its.sockets[0].onclose({ code: 1006 });
  its.pass(500);
  accept(its.sockets[1]);
  await turns();
  equal(its.sockets[1].sent.map((message) => message.type), ["hello", "sub"]);
  equal(received.events, []);
});

test("a state that is fetched first is applied before the subscription", async () => {
  const { its, received } = await opened(0, Promise.resolve({ epoch: "e2", seq: 90, events: events(3, 3) }));
  equal([its.sockets[0].sent[1].after, its.sockets[0].sent[1].epoch, received.events], [90, "e2", [3]]);
});

test("without a state the server decides what to start from", async () => {
  const { its } = await opened(0, Promise.reject(new Error("500")));
  equal([its.sockets[0].sent[1].type, its.sockets[0].sent[1].after], ["sub", null]);
});

test("a frame that leaves a gap is not applied: it subscribes again after its last", async () => {
  const { its, received } = await opened(3);
  await say(its.sockets[0], subscribed(9), batch(4, 5), batch(8, 9));
  equal(received.events, [4, 5]);
  equal(its.sockets[0].sent.at(-1).type, "sub");
  equal(its.sockets[0].sent.at(-1).after, 5);
  await say(its.sockets[0], subscribed(9), batch(6, 9), batch(6, 9));
  equal(received.events, [4, 5, 6, 7, 8, 9]);
});

test("a lost socket is retried with growing delays and resumes after its last event", async () => {
  const { its, received } = await opened(3);
  await say(its.sockets[0], subscribed(5), batch(4, 5));
  its.sockets[0].onclose({ code: 1006 });
  equal(received.statuses.at(-1).kind, "stale");
  its.pass(499);
  equal(its.sockets.length, 1);
  its.pass(1);
  equal(its.sockets.length, 2);
  its.sockets[1].onclose({ code: 1006 });
  its.pass(1000);
  accept(its.sockets[2]);
  await turns();
  equal(its.sockets[2].sent[1].after, 5);
  await say(its.sockets[2], subscribed(6), batch(6, 6));
  equal(received.events, [4, 5, 6]);
  equal(received.statuses.at(-1).kind, "live");
});

test("messages of an old socket are ignored", async () => {
  const { its, received } = await opened(3);
  await say(its.sockets[0], subscribed(4));
  its.sockets[0].onclose({ code: 1006 });
  its.pass(500);
  accept(its.sockets[1]);
  await say(its.sockets[0], batch(4, 4));
  equal(received.events, []);
});

test("another epoch is another log: the state is reset first", async () => {
  const { its, received } = await opened(3);
  await say(its.sockets[0], subscribed(2, "e2"), batch(1, 2));
  equal([received.resets, received.events], [1, [1, 2]]);
});

test("a refusal by the server is not retried", async () => {
  const { its, received } = await opened(3);
  its.sockets[0].onclose({ code: 4403 });
  equal(received.statuses.at(-1).kind, "refused");
  its.pass(60_000);
  equal(its.sockets.length, 1);
});

test("the client waits as long as the server requests", async () => {
  const { its } = await opened(3);
  await say(its.sockets[0], { type: "bye", code: 1012, reason: "restarting", retry_ms: 5000 });
  its.sockets[0].onclose({ code: 1012 });
  its.pass(4999);
  equal(its.sockets.length, 1);
  its.pass(1);
  equal(its.sockets.length, 2);
});

test("the reason of a close is shown, and the page reconnects after the server's delay", async () => {
  const { its, received } = await opened(3);
  const reason = "too many wrong tokens came from your address: try again in 60 seconds";
  await say(its.sockets[0], { type: "bye", code: 4429, reason, retry_ms: 60_000 });
  its.sockets[0].onclose({ code: 4429, reason });
  equal(received.statuses.at(-1).reason, reason);
  ok(connectionNote(received.statuses.at(-1), received.statuses.at(-1).since + 3000, String).text.includes(reason));
  its.pass(59_999);
  equal(its.sockets.length, 1);
  its.pass(1);
  equal(its.sockets.length, 2);
  its.sockets[1].onclose({ code: 4401, reason: "this token is not valid: make another" });
  equal(received.statuses.at(-1), { kind: "refused", reason: "this token is not valid: make another" });
});

test("a socket that is silent for 45 s counts as lost", async () => {
  const { its, received } = await opened(3);
  await say(its.sockets[0], subscribed(3));
  its.pass(30_000);
  equal(its.sockets[0].sent.at(-1).type, "ping");
  its.pass(15_000);
  equal(received.statuses.at(-1).kind, "stale");
  equal(its.sockets[0].closedWith, 4000);
});

test("a hidden tab requests one frame per second", async () => {
  const { its, stream } = await opened(3);
  its.isHidden = true;
  stream.visibilityChanged();
  equal(its.sockets[0].sent.at(-1), { type: "set", sid: 1, max_hz: 1 });
});

test("coalesced gaps are skipped, the run's row is passed on, acks are delayed", async () => {
  const { its, received } = await opened(3);
  await say(
    its.sockets[0],
    subscribed(9),
    { type: "gap", sid: 1, from: 4, to: 6, reason: "coalesced" },
    batch(7, 9),
    { type: "status", sid: 1, run: { state: "running" } },
  );
  equal([received.events, received.rows], [[7, 8, 9], [{ state: "running" }]]);
  const acks = () => its.sockets[0].sent.filter((message) => message.type === "ack");
  equal(acks(), []);
  its.pass(1000);
  equal(acks(), [{ type: "ack", sid: 1, seq: 9 }]);
});

test("waits double up to half a minute, with full jitter", () => {
  equal([0, 1, 5, 6, 50].map((attempt) => backoff(attempt, () => 1)), [500, 1000, 16000, 30000, 30000]);
  ok(backoff(3, () => 0) === 0);
});

test("the status text names the state of the stream", () => {
  const time = () => "12:34";
  equal(statusText({ kind: "live" }, "running", time), "live");
  equal(statusText({ kind: "live" }, "finished", time), "ended");
  equal(statusText({ kind: "catching-up", percent: 40 }, "running", time), "catching up 40 %");
  equal(statusText({ kind: "stale", since: 0 }, "running", time), "stale since 12:34");
});

test("a banner says since when the page is out of date, unless it just reconnects", () => {
  const time = (ms) => `${ms / 1000} s`;
  const lost = { kind: "stale", since: 5000 };
  equal(connectionNote(lost, 6500, time), null);
  ok(connectionNote(lost, 8000, time).text.includes("state at 5 s"));
  equal(connectionNote({ kind: "live" }, 8000, time), null);
  equal(connectionNote({ kind: "catching-up", percent: 3 }, 8000, time), null);
});

test("a banner names at once why updates stopped, and the remedy", () => {
  const { kind, text } = connectionNote({ kind: "refused", reason: "sign in again" }, 0, String);
  equal(kind, "bad");
  ok(text.includes("sign in again") && text.includes("Reload"));
});
