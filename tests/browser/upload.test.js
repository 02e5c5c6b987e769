import { Refused, Uploader } from "/static/js/lib/upload.js";
import { equal, ok, test } from "./check.js";

const TASK = { project: 1, kind: "dataset" };
const FILE = new File(["0123456789"], "a.jsonl", { lastModified: 1 });

/** An in-memory server of the upload addresses; first it throws or returns each of `faults`. */
function aWorld(faults = []) {
  const uploads = new Map();
  const asked = [];
  let known = {};
  const told = (status, body, headers = {}) => new Response(body && JSON.stringify(body), { status, headers });
  const said = (id) => ({ id, size: uploads.get(id).size, offset: uploads.get(id).text.length });
  async function request(address, { method = "GET", body, headers }) {
    const [, , , , id, verb] = address.split("/");
    asked.push(verb ?? method);
    const fault = faults.shift();
    if (fault instanceof Error) throw fault;
    if (fault) return fault;
    if (method === "POST" && !id) {
      uploads.set("7", { size: JSON.parse(body).size, text: "" });
      return told(201, said("7"));
    }
    const upload = uploads.get(id);
    if (!upload) return told(404, { status: 404, detail: "it does not exist", problems: [] });
    if (method === "PATCH") {
      if (Number(headers["Upload-Offset"]) !== upload.text.length) {
        return told(409, { status: 409, detail: "go on", problems: [], offset: upload.text.length });
      }
      upload.text += await body.text();
    }
    if (method === "DELETE") {
      uploads.delete(id);
      return told(204);
    }
    return told(200, said(id));
  }
  const pauses = [];
  const memory = { read: () => known, write: (value) => (known = value) };
  return { request, pause: async (ms) => pauses.push(ms), memory, uploads, asked, pauses };
}

const sender = (world) => new Uploader("token", { world, piece: 4 });

test("a file goes in pieces, and each is told", async () => {
  const world = aWorld();
  const heard = [];
  await sender(world).send(FILE, { ...TASK, onProgress: (bytes) => heard.push(bytes) });
  equal(heard, [0, 4, 8, 10]);
  equal(world.uploads.get("7").text, "0123456789");
  equal(world.memory.read(), {}, "a finished upload is forgotten");
});

test("what may pass is asked again, what is refused is not", async () => {
  const busy = new Response("", { status: 503, headers: { "Retry-After": "3" } });
  const world = aWorld([new TypeError("no network"), busy]);
  await sender(world).send(FILE, TASK);
  equal(world.pauses, [500, 3000]);
  const no = { status: 413, detail: "", problems: [{ path: "size", value: 1, reason: "too much" }] };
  const refused = aWorld([new Response(JSON.stringify(no), { status: 413 })]);
  let error = null;
  await sender(refused).send(FILE, TASK).catch((thrown) => (error = thrown));
  ok(error instanceof Refused);
  equal([error.message, refused.asked], ["size: too much", ["POST"]]);
});

test("after a reload it goes on from where the server stands", async () => {
  const world = aWorld();
  const stop = new AbortController();
  const first = { ...TASK, signal: stop.signal };
  const broken = sender({
    ...world,
    request: (address, options) => {
      if (world.asked.length === 2) stop.abort(new Error("reloaded"));
      return stop.signal.aborted ? Promise.reject(stop.signal.reason) : world.request(address, options);
    },
  });
  let error = null;
  await broken.send(FILE, first).catch((thrown) => (error = thrown));
  equal(error.message, "reloaded");
  equal(world.uploads.get("7").text, "0123");
  const heard = [];
  await sender(world).send(FILE, { ...TASK, onProgress: (bytes) => heard.push(bytes) });
  equal(heard, [4, 8, 10]);
  equal(world.asked.filter((what) => what === "POST").length, 1);
});

test("a piece whose answer was lost is not sent twice", async () => {
  const world = aWorld();
  let lost = false;
  const flaky = {
    ...world,
    async request(address, options) {
      const answer = await world.request(address, options);
      if (options.method !== "PATCH" || lost) return answer;
      lost = true;
      throw new TypeError("the connection broke");
    },
  };
  await sender(flaky).send(FILE, TASK);
  equal(world.uploads.get("7").text, "0123456789");
});

test("an upload that the server no longer knows begins anew; one can be given up", async () => {
  const world = aWorld();
  world.memory.write({ [["1", "dataset", "a.jsonl", 10, 1].join("\n")]: "gone" });
  await sender(world).send(FILE, TASK);
  equal(world.uploads.get("7").text, "0123456789");
  world.memory.write({ [["1", "dataset", "a.jsonl", 10, 1].join("\n")]: "7" });
  await sender(world).discard(FILE, TASK);
  equal(world.uploads.size, 0);
});
