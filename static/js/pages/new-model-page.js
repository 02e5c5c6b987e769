/**
 * The page that adds a model: uploads its files one after the other, then makes a version of them,
 * or requests the import of a GGUF file, which the page of models shows.
 *
 * The server keeps what was uploaded for a day: a new attempt after a failure resumes there.
 */

import { setText } from "../lib/dom.js";
import { chosenFiles } from "../lib/model-files.js";
import { postInTurn, Uploader } from "../lib/upload.js";
import { onUpload, showProgress } from "../lib/upload-form.js";

const part = (name) => document.querySelector(`[data-part="${name}"]`);
const form = part("form");
const GGUF = "GGUF"; // the first bytes of the file, and its suffix

/** Returns the REST response to a JSON body, when it is its turn; throws `RequestError`. */
function post(address, body, signal) {
  const onPlace = ({ place, waiting }) =>
    showProgress(`Waiting to be checked: place ${place} of ${waiting} in the queue.`);
  return postInTurn(address, body, { token: token(), signal, onPlace });
}

const token = () => form.elements.csrfmiddlewaretoken.value;

async function uploaded(files, project, signal) {
  const uploader = new Uploader(token());
  const ids = [];
  for (const [index, file] of files.entries()) {
    const onProgress = (bytes) => {
      const share = Math.floor((100 * bytes) / Math.max(1, file.size));
      showProgress(`${file.name}: ${share} % (file ${index + 1} of ${files.length})`);
    };
    const upload = await uploader.send(file, { project, kind: "model", signal, onProgress });
    ids.push(upload.id);
  }
  return ids;
}

/** Returns the id of the model of that name in the project; null if there is none. */
async function modelOf(project) {
  if (form.dataset.model) return Number(form.dataset.model);
  const name = form.elements.name.value;
  const response = await fetch(`/api/v1/models?project=${project}&name=${encodeURIComponent(name)}`);
  const { models } = await response.json();
  return models?.find((one) => one.name === name)?.id ?? null;
}

/** Makes a version of the uploads, the first of a new model or the next of one: [model, number]. */
async function versionOf(uploads, project, signal) {
  const existing = await modelOf(project);
  if (existing === null) {
    const model = await post("/api/v1/models", { project, name: form.elements.name.value, uploads }, signal);
    return [model.id, model.versions[0].number];
  }
  const parent = Number(form.elements.parent?.value) || null;
  const version = await post(`/api/v1/models/${existing}/versions`, { uploads, parent }, signal);
  return [existing, version.number];
}

const isGguf = (file) => file.name.toLowerCase().endsWith(`.${GGUF.toLowerCase()}`);

/** Throws an error for what can be seen before the upload: it may take an hour. */
async function refuseEarly(files) {
  const file = files.find(isGguf);
  if (!file) return;
  if (files.length > 1) throw new Error(`${file.name}: give a GGUF file alone; it holds the whole model.`);
  if (form.elements.parent?.value) throw new Error("Parent version: leave it empty for a GGUF file.");
  const start = new TextDecoder("latin1").decode(await file.slice(0, GGUF.length).arrayBuffer());
  if (start !== GGUF) throw new Error(`${file.name} is no GGUF file: it does not start with ${GGUF}.`);
}

/** Returns the files of the model, and shows which of those that were chosen are left out. */
function modelFiles(files) {
  const { names, required, shard } = form.dataset;
  const lists = { names: names.split(" "), required: required.split(" "), shard };
  const { taken, leftOut } = chosenFiles(files, lists);
  part("left-out").hidden = !leftOut.length;
  setText(part("left-out"), leftOut.length ? `Left out, as no part of a model: ${leftOut.join(", ")}.` : "");
  return taken;
}

/** Requests the import of an uploaded GGUF file. */
async function requestImport(upload, project, signal) {
  const name = form.dataset.name ?? form.elements.name.value;
  await post(`/api/v1/projects/${project}/model-imports`, { name, upload }, signal);
  location.assign("/models/#imports");
}

async function send(signal) {
  const project = Number(form.dataset.project ?? form.elements.project.value);
  const all = [...form.elements.files.files];
  await refuseEarly(all);
  const files = isGguf(all[0]) ? all : modelFiles(all);
  const uploads = await uploaded(files, project, signal);
  if (isGguf(files[0])) {
    await requestImport(uploads[0], project, signal);
    return;
  }
  showProgress("Checking the files…");
  const [model, number] = await versionOf(uploads, project, signal);
  location.assign(`/models/${model}/versions/${number}/`);
}

if (form) onUpload(form, send);
