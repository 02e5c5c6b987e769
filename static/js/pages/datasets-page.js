/** Upload of a dataset: its files in chunks, then a version made of them, then the version's page. */

import { element, setText } from "../lib/dom.js";
import { percent } from "../lib/format.js";
import { postInTurn, RequestError, Uploader } from "../lib/upload.js";

const part = (name) => document.querySelector(`[data-part="${name}"]`);
const form = part("upload");
const bar = part("uploadProgress").querySelector("progress");
const token = form.elements.csrfmiddlewaretoken.value;
const uploader = new Uploader(token);
let abortController = null;

form.addEventListener("submit", (event) => {
  event.preventDefault();
  upload(new AbortController());
});
part("uploadCancel").addEventListener("click", () => abortController?.abort(new Error("Upload cancelled.")));

async function upload(controller) {
  abortController = controller;
  const files = [...form.elements.files.files];
  const task = { project: Number(form.elements.project.value), kind: "dataset" };
  busy(true);
  try {
    const uploads = await send(files, { ...task, signal: controller.signal });
    showProgress("Processing the files…");
    const version = await makeVersion(files, task.project, uploads, controller.signal);
    location.assign(`/datasets/versions/${version.id}/`);
  } catch (error) {
    busy(false);
    if (controller.signal.aborted) await discardUploads(files, task);
    else showError(error);
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
      showProgress(`${file.name}: ${percent(share, 0)} of ${files.length > 1 ? "all files" : "the file"} sent.`);
    };
    uploads.push((await uploader.send(file, { ...task, onProgress })).id);
  }
  return uploads;
}

async function makeVersion(files, project, uploads, signal) {
  const name = form.elements.name.value.trim() || stem(files[0].name);
  const body = { project, name, uploads, note: form.elements.note.value };
  const onPlace = ({ place, waiting }) => showProgress(`Waiting to be read: place ${place} of ${waiting} in the queue.`);
  return postInTurn(form.dataset.address, body, { token, signal, onPlace });
}

/** "HumanEval.jsonl.gz" -> "HumanEval". */
function stem(name) {
  return name.replace(/(\.(jsonl|json|ndjson|parquet|arrow|gz|zst))+$/i, "") || name;
}

async function discardUploads(files, task) {
  showProgress("Cancelled.");
  for (const file of files) await uploader.discard(file, task).catch(() => {});
}

function busy(is) {
  part("uploadProgress").hidden = !is;
  part("uploadCancel").hidden = !is;
  part("uploadStart").disabled = is;
  if (is) part("uploadError").hidden = true;
  else showProgress("");
}

function showError(error) {
  const reasons = error instanceof RequestError ? error.problems.map(({ reason }) => reason) : [];
  const list = reasons.length ? reasons : [error.message];
  const items = list.map((reason) => element("li", {}, reason));
  const title = element("b", {}, "Upload rejected; nothing was saved.");
  part("uploadError").replaceChildren(element("div", {}, title, element("ul", {}, items)));
  part("uploadError").hidden = false;
}

function showProgress(text) {
  setText(part("uploadStatus"), text);
}
