/** The page of a new search, in addition to launch-page.js: the source of the problem. */

import { element, setText } from "../lib/dom.js";
import { faultText } from "../lib/load-fault.js";
import { callTest, programTest, withTest } from "./typed-tests.js";

const part = (name) => document.querySelector(`[data-part="${name}"]`);
const form = part("form");
const known = new Map(); // address -> problems of a dataset version

function showSource() {
  const pasted = form.elements.source.value === "paste";
  part("ofDataset").hidden = pasted;
  part("pasted").hidden = !pasted;
}

/** Offers the problems of the chosen dataset; any other can be entered by its id. */
async function offer() {
  const address = form.elements.version.selectedOptions[0]?.dataset.problems;
  if (!address) return show([], "Id of the problem; the list has the first ones.");
  if (!known.has(address)) {
    setText(part("knownText"), "Loading…");
    part("known").parentElement.setAttribute("aria-busy", "true");
    const reply = await fetch(address).catch(() => null);
    part("known").parentElement.removeAttribute("aria-busy");
    if (!reply?.ok || reply.redirected) return showFault(reply?.redirected ? 401 : reply?.status);
    known.set(address, await reply.json());

  }
  const { problems, reason } = known.get(address);
  show(problems, reason ?? `Id of the problem; the list has the first ${problems.length}.`);
}

/** Shows why the list is missing, with a button to retry; a problem can be entered without it. */
function showFault(status) {
  show([], "");
  const retry = element("button", { class: "link", type: "button", onclick: offer }, "Try again");
  part("knownText").replaceChildren(`The problems could not be loaded. ${faultText(status)} Enter an id, or `, retry);
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

/** Shows the fields of a test: arguments for a function, stdin for a program. */
function showTestForm() {
  const isProgram = !form.elements.entry_point.value.trim();
  part("argumentsField").hidden = isProgram;
  part("stdinField").hidden = !isProgram;
  setText(part("testHelp"), isProgram
    ? "Text as the program reads and prints it."
    : "JSON values; separate several arguments by commas, for example [3, 1], true");
}

function addTest({ currentTarget: button }) {
  const fault = part("testFault");
  const field = form.elements[button.dataset.add];
  const expected = part("testExpected").value;
  try {
    const isProgram = !form.elements.entry_point.value.trim();
    const test = isProgram
      ? programTest(part("testStdin").value, expected)
      : callTest(part("testArguments").value, expected);
    field.value = withTest(field.value, test);
    for (const name of ["testArguments", "testStdin", "testExpected"]) part(name).value = "";
    fault.hidden = true;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    part(isProgram ? "testStdin" : "testArguments").focus();
  } catch (error) {
    setText(fault, error.message);
    fault.hidden = false;
  }
}

if (form) {
  part("addTest").hidden = false;
  showTestForm();
  form.elements.entry_point.addEventListener("input", showTestForm);
  for (const button of document.querySelectorAll("[data-add]")) button.addEventListener("click", addTest);
  showSource();
  offer();
  for (const radio of form.elements.source) radio.addEventListener("change", showSource);
  form.elements.version.addEventListener("change", offer);
}
