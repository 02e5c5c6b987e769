/** Upload of a dataset: its files in chunks, then a version made of them, then the version's page. */

import { element, setText } from "../lib/dom.js";
import { percent } from "../lib/format.js";
import { Refused, Uploader } from "../lib/upload.js";

const part = (name) => document.querySelector(`[data-part="${name}"]`);
const form = part("upload");
const bar = part("uploadProgress").querySelector("progress");
const token = form.elements.csrfmiddlewaretoken.value;
const uploader = new Uploader(token);
let stop = null;

form.addEventListener("submit", (event) => {
  event.preventDefault();
  work(new AbortController());
});
part("uploadCancel").addEventListener("click", () => stop?.abort(new Error("Upload cancelled.")));

async function work(controller) {
  stop = controller;
  const files = [...form.elements.files.files];
  const task = { project: Number(form.elements.project.value), kind: "dataset" };
  busy(true);
  try {
    const uploads = await send(files, { ...task, signal: controller.signal });
    say("Processing the files…");
    const version = await makeVersion(files, task.project, uploads, controller.signal);
    location.assign(`/datasets/versions/${version.id}/`);
  } catch (error) {
    busy(false);
    if (controller.signal.aborted) await giveUp(files, task);
    else refuse(error);
  }
}

async function send(files, task) {
  const total = files.reduce((sum, file) => sum + file.size, 0);
  const done = new Map();
  const uploads = [];
  for (const file of files) {
    const onProgress = (bytes) => {
      done.set(file, bytes);
      const share = [...done.values()].reduce((sum, size) => sum + size, 0) / Math.max(1, total);
      bar.value = share;
      say(`${file.name}: ${percent(share, 0)} of ${files.length > 1 ? "all files" : "the file"} sent.`);
    };
    uploads.push((await uploader.send(file, { ...task, onProgress })).id);
  }
  return uploads;
}

async function makeVersion(files, project, uploads, signal) {
  const name = form.elements.name.value.trim() || stem(files[0].name);
  const body = JSON.stringify({ project, name, uploads, note: form.elements.note.value });
  const headers = { "Content-Type": "application/json", "X-CSRFToken": token };
  const answer = await fetch(form.dataset.address, { method: "POST", headers, body, signal });
  const told = await answer.json();
  if (!answer.ok) throw new Refused({ problems: [], ...told });
  return told;
}

/** "HumanEval.jsonl.gz" -> "HumanEval". */
function stem(name) {
  return name.replace(/(\.(jsonl|json|ndjson|parquet|arrow|gz|zst))+$/i, "") || name;
}

async function giveUp(files, task) {
  say("Cancelled.");
  for (const file of files) await uploader.discard(file, task).catch(() => {});
}

function busy(is) {
  part("uploadProgress").hidden = !is;
  part("uploadCancel").hidden = !is;
  part("uploadStart").disabled = is;
  if (is) part("uploadRefused").hidden = true;
  else say("");
}

function refuse(error) {
  const reasons = error instanceof Refused ? error.problems.map(({ reason }) => reason) : [];
  const list = reasons.length ? reasons : [error.message];
  const items = list.map((reason) => element("li", {}, reason));
  const title = element("b", {}, "Upload rejected; nothing was saved.");
  part("uploadRefused").replaceChildren(element("div", {}, title, element("ul", {}, items)));
  part("uploadRefused").hidden = false;
}

function say(text) {
  setText(part("uploadSaid"), text);
}
