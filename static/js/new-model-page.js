/**
 * The page that adds a model: sends its files one after the other, then has them made a version.
 *
 * What was sent stays with the server for a day: pressed again after a failure, it goes on.
 */

import { setText } from "./dom.js";
import { Refused, Uploader } from "./upload.js";

const part = (name) => document.querySelector(`[data-part="${name}"]`);
const form = part("form");
let sending = null;

/** What REST answers to a JSON body; throws `Refused`. */
async function post(address, body) {
  const answer = await fetch(address, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", "X-CSRFToken": token() },
  });
  const told = await answer.json();
  if (!answer.ok) throw new Refused({ problems: [], ...told });
  return told;
}

const token = () => form.elements.csrfmiddlewaretoken.value;

async function uploaded(files, project, signal) {
  const uploader = new Uploader(token());
  const ids = [];
  for (const [place, file] of files.entries()) {
    const onProgress = (bytes) => {
      const share = Math.floor((100 * bytes) / Math.max(1, file.size));
      setText(part("progress"), `${file.name}: ${share} % (file ${place + 1} of ${files.length})`);
    };
    const upload = await uploader.send(file, { project, kind: "model", signal, onProgress });
    ids.push(upload.id);
  }
  return ids;
}

/** The model that is there, or a new one of the name; one that was made before is gone on with. */
async function modelOf(project) {
  if (form.dataset.model) return Number(form.dataset.model);
  const name = form.elements.name.value;
  const found = await fetch(`/api/v1/models?project=${project}&name=${encodeURIComponent(name)}`);
  const { models } = await found.json();
  const known = models?.find((one) => one.name === name);
  return known?.id ?? (await post("/api/v1/models", { project, name })).id;
}

async function send() {
  const project = Number(form.dataset.project ?? form.elements.project.value);
  const files = [...form.elements.files.files];
  const uploads = await uploaded(files, project, sending.signal);
  setText(part("progress"), "Checking the files");
  const model = await modelOf(project);
  const parent = Number(form.elements.parent?.value) || null;
  const version = await post(`/api/v1/models/${model}/versions`, { uploads, parent });
  location.assign(`/models/${model}/versions/${version.number}/`);
}

function show(busy, error = "") {
  part("send").disabled = busy;
  part("stop").hidden = !busy;
  part("error").hidden = !error;
  setText(part("error"), error);
  if (!busy) setText(part("progress"), "");
}

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  sending = new AbortController();
  show(true);
  try {
    await send();
  } catch (error) {
    const stopped = sending.signal.aborted;
    show(false, stopped ? "Stopped. Upload goes on where it was." : error.message);
  }
});

part("stop")?.addEventListener("click", () => sending?.abort());
