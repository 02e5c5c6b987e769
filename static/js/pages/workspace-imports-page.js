/**
 * The page that imports a workspace: uploads its zip, then requests its check, whose progress and
 * result the list shows. The server keeps what was uploaded for a day: a new attempt resumes there.
 */

import { percent } from "../lib/format.js";
import { postInTurn, Uploader } from "../lib/upload.js";
import { onUpload, showProgress } from "../lib/upload-form.js";

const form = document.querySelector('[data-part="form"]');
const token = form.elements.csrfmiddlewaretoken.value;
const TASK = { project: null, kind: "workspace" };
const ZIP = "PK"; // the first bytes of a zip
let sent = { file: null, upload: null }; // a refused request does not cost another upload

/** Throws an error for what can be seen before the upload: it may take an hour. */
async function refuseEarly(file) {
  const start = new TextDecoder("latin1").decode(await file.slice(0, ZIP.length).arrayBuffer());
  if (start !== ZIP) throw new Error(`${file.name} is no zip: choose the file that Export everything made.`);
}

async function send(signal) {
  const file = form.elements.file.files[0];
  await refuseEarly(file);
  const onProgress = (bytes) => showProgress(`${file.name}: ${percent(bytes / file.size, 0)} sent.`);
  if (sent.file !== file) {
    sent = { file, upload: await new Uploader(token).send(file, { ...TASK, signal, onProgress }) };
  }
  const { upload } = sent;
  const [into, name] = [form.elements.into.value, form.elements.name.value.trim()];
  const body = into ? { upload: upload.id, into } : { upload: upload.id, name };
  await postInTurn(form.dataset.address, body, { token, signal });
  location.assign("/workspace-imports/");
}

/** A workspace that exists has a name. */
function updateName() {
  form.elements.name.disabled = Boolean(form.elements.into.value);
}

onUpload(form, send);
form.elements.into.addEventListener("change", updateName);
updateName();
