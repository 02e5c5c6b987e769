import { postInTurn, RequestError, Uploader } from "/static/js/lib/upload.js";
import { equal, ok, test } from "./check.js";

const TASK = { project: 1, kind: "dataset" };
const FILE = new File(["0123456789"], "a.jsonl", { lastModified: 1 });

/** An in-memory server of the upload addresses; first it throws or returns each of `failures`. */
function aWorld(failures = []) {
  const uploads = new Map();
  const requests = [];
  let known = {};
  const response = (status, body, headers = {}) => new Response(body && JSON.stringify(body), { status, headers });
  const uploadJson = (id) => ({ id, size: uploads.get(id).size, offset: uploads.get(id).text.length });
  async function request(address, { method = "GET", body, headers }) {
    const [, , , , id, verb] = address.split("/");
    requests.push(verb ?? method);
    const failure = failures.shift();
    if (failure instanceof Error) throw failure;
    if (failure) return failure;
    if (method === "POST" && !id) {
      uploads.set("7", { size: JSON.parse(body).size, text: "" });
      return response(201, uploadJson("7"));
    }
    const upload = uploads.get(id);
    if (!upload) return response(404, { status: 404, detail: "it does not exist", problems: [] });
    if (method === "PATCH") {
      if (Number(headers["Upload-Offset"]) !== upload.text.length) {
        return response(409, { status: 409, detail: "go on", problems: [], offset: upload.text.length });
      }
      upload.text += await body.text();
    }
    if (method === "DELETE") {
      uploads.delete(id);
      return response(204);
    }
    return response(200, uploadJson(id));
  }
  const pauses = [];
  const memory = { read: () => known, write: (value) => (known = value) };
  return { request, pause: async (ms) => pauses.push(ms), memory, uploads, requests, pauses };
}

const sender = (env) => new Uploader("token", { env, chunkBytes: 4 });

test("a file is sent in chunks with progress after each", async () => {
  const env = aWorld();
  const progress = [];
  await sender(env).send(FILE, { ...TASK, onProgress: (bytes) => progress.push(bytes) });
  equal(progress, [0, 4, 8, 10]);
  equal(env.uploads.get("7").text, "0123456789");
  equal(env.memory.read(), {}, "a finished upload is forgotten");
});

test("transient failures are retried, refusals are not", async () => {
  const busy = new Response("", { status: 503, headers: { "Retry-After": "3" } });
  const env = aWorld([new TypeError("no network"), busy]);
  await sender(env).send(FILE, TASK);
  equal(env.pauses, [500, 3000]);
  const no = { status: 413, detail: "", problems: [{ path: "size", value: 1, reason: "too much" }] };
  const refused = aWorld([new Response(JSON.stringify(no), { status: 413 })]);
  let error = null;
  await sender(refused).send(FILE, TASK).catch((thrown) => (error = thrown));
  ok(error instanceof RequestError);
  equal([error.message, refused.requests], ["size: too much", ["POST"]]);
});

test("after a reload it resumes at the server's offset", async () => {
  const env = aWorld();
  const stop = new AbortController();
  const first = { ...TASK, signal: stop.signal };
  const broken = sender({
    ...env,
    request: (address, options) => {
      if (env.requests.length === 2) stop.abort(new Error("reloaded"));
      return stop.signal.aborted ? Promise.reject(stop.signal.reason) : env.request(address, options);
    },
  });
  let error = null;
  await broken.send(FILE, first).catch((thrown) => (error = thrown));
  equal(error.message, "reloaded");
  equal(env.uploads.get("7").text, "0123");
  const progress = [];
  await sender(env).send(FILE, { ...TASK, onProgress: (bytes) => progress.push(bytes) });
  equal(progress, [4, 8, 10]);
  equal(env.requests.filter((what) => what === "POST").length, 1);
});

test("a chunk whose response was lost is not sent twice", async () => {
  const env = aWorld();
  let lost = false;
  const flaky = {
    ...env,
    async request(address, options) {
      const answer = await env.request(address, options);
      if (options.method !== "PATCH" || lost) return answer;
      lost = true;
      throw new TypeError("the connection broke");
    },
  };
  await sender(flaky).send(FILE, TASK);
  equal(env.uploads.get("7").text, "0123456789");
});

test("an upload that the server has deleted restarts; it can be discarded", async () => {
  const env = aWorld();
  env.memory.write({ [["1", "dataset", "a.jsonl", 10, 1].join("\n")]: "gone" });
  await sender(env).send(FILE, TASK);
  equal(env.uploads.get("7").text, "0123456789");
  env.memory.write({ [["1", "dataset", "a.jsonl", 10, 1].join("\n")]: "7" });
  await sender(env).discard(FILE, TASK);
  equal(env.uploads.size, 0);
});

test("a request that waits for its turn is repeated as it was, with its place, until it is served", async () => {
  const later = { headers: { "Retry-After": "2" } };
  const waiting = (place) => new Response(JSON.stringify({ state: "queued", place, waiting: 3 }), { status: 202, ...later });
  const answers = [waiting(2), new TypeError("the server restarts"), waiting(1), new Response('{"id": 7}', { status: 201 })];
  const sent = [];
  const env = {
    pauses: [],
    key: () => `key ${sent.length}`,
    pause: async (ms) => env.pauses.push(ms),
    async request(address, { headers, body }) {
      sent.push([address, headers["Idempotency-Key"], headers["X-CSRFToken"], body]);
      const answer = answers.shift();
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  const places = [];
  const onPlace = ({ place, waiting }) => places.push([place, waiting]);
  const result = await postInTurn("/api/v1/datasets", { a: 1 }, { token: "token", onPlace, env });
  equal([result.id, places, env.pauses], [7, [[2, 3], [1, 3]], [2000, 500, 2000]]);
  equal(new Set(sent.map(String)).size, 1);
  equal(sent[0], ["/api/v1/datasets", "key 0", "token", '{"a":1}']);
});

test("work that was accepted is no place in a queue, even if its state is queued", async () => {
  const accepted = new Response('{"id": 3, "state": "queued"}', { status: 202 });
  const env = { key: () => "key", request: async () => accepted, pause: async () => equal("a pause", "none") };
  equal(await postInTurn("/api/v1/models/imports", {}, { token: "token", env }), { id: 3, state: "queued" });
});
