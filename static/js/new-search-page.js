/** The page of a new search, beside what launch-page.js does: where the problem is from. */

import { element, setText } from "./dom.js";

const part = (name) => document.querySelector(`[data-part="${name}"]`);
const form = part("form");
const known = new Map(); // address -> problems of a dataset's version

function showSource() {
  const pasted = form.elements.source.value === "paste";
  part("ofDataset").hidden = pasted;
  part("pasted").hidden = !pasted;
}

/** Offers the problems of the chosen dataset; any other can be named by its id. */
async function offer() {
  const address = form.elements.version.selectedOptions[0]?.dataset.problems;
  if (!address) return show([], "Its id; the list offers the first of them.");
  if (!known.has(address)) {
    setText(part("knownText"), "Loading…");
    const reply = await fetch(address).catch(() => null);
    known.set(address, reply?.ok ? await reply.json() : { problems: [], reason: "The list could not be loaded; name it by its id." });
  }
  const { problems, reason } = known.get(address);
  show(problems, reason ?? `Its id; the first ${problems.length} are offered.`);
}

function show(problems, text) {
  part("known").replaceChildren(...problems.map(({ id, statement }) => element("option", { value: id }, statement)));
  setText(part("knownText"), text);
  const field = form.elements.problem;
  if (!field.value && problems.length) {
    field.value = problems[0].id;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

if (form) {
  showSource();
  offer();
  for (const radio of form.elements.source) radio.addEventListener("change", showSource);
  form.elements.version.addEventListener("change", offer);
}
