/** The page of a new search, in addition to launch-page.js: the source of the problem. */

import { element, setText } from "../lib/dom.js";
import { errorText } from "../lib/load-error.js";
import { callTest, programTest, withTest } from "./typed-tests.js";

const part = (name) => document.querySelector(`[data-part="${name}"]`);
const form = part("form");
const examples = form ? JSON.parse(document.getElementById("examples").textContent) : [];
const problemsByAddress = new Map(); // address -> problems of a dataset version

function showSource() {
  const pasted = form.elements.source.value === "paste";
  part("ofDataset").hidden = pasted;
  part("pasted").hidden = !pasted;
}

/** Offers the problems of the chosen dataset; any other can be entered by its id. */
async function loadProblems() {
  const address = form.elements.version.selectedOptions[0]?.dataset.problems;
  if (!address) return show([], "Id of the problem; the list has the first ones.");
  if (!problemsByAddress.has(address)) {
    setText(part("problemHelp"), "Loading…");
    part("problemList").parentElement.setAttribute("aria-busy", "true");
    const response = await fetch(address).catch(() => null);
    part("problemList").parentElement.removeAttribute("aria-busy");
    if (!response?.ok || response.redirected) return showLoadError(response?.redirected ? 401 : response?.status);
    problemsByAddress.set(address, await response.json());

  }
  const { problems, reason } = problemsByAddress.get(address);
  show(problems, reason ?? `Id of the problem; the list has the first ${problems.length}.`);
}

/** Shows why the list is missing, with a button to retry; a problem can be entered without it. */
function showLoadError(status) {
  show([], "");
  const retry = element("button", { class: "link", type: "button", onclick: loadProblems }, "Try again");
  part("problemHelp").replaceChildren(`The problems could not be loaded. ${errorText(status)} Enter an id, or `, retry);
}

function show(problems, text) {
  part("problemList").replaceChildren(...problems.map(({ id, statement }) => element("option", { value: id }, statement)));
  setText(part("problemHelp"), text);
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
  const message = part("testError");
  const field = form.elements[button.dataset.add];
  const expected = part("testExpected").value;
  try {
    const isProgram = !form.elements.entry_point.value.trim();
    const test = isProgram
      ? programTest(part("testStdin").value, expected)
      : callTest(part("testArguments").value, expected);
    field.value = withTest(field.value, test);
    for (const name of ["testArguments", "testStdin", "testExpected"]) part(name).value = "";
    message.hidden = true;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    part(isProgram ? "testStdin" : "testArguments").focus();
  } catch (error) {
    setText(message, error.message);
    message.hidden = false;
  }
}

/** Fills the fields of a pasted problem with an example. */
function fillExample({ currentTarget: select }) {
  const example = examples[select.value];
  if (!example) return;
  for (const name of ["statement", "entry_point", "public_tests", "private_tests"]) {
    form.elements[name].value = example[name];
    form.elements[name].dispatchEvent(new Event("input", { bubbles: true }));
  }
}

if (form) {
  part("addTest").hidden = false;
  part("exampleField").hidden = false;
  part("example").addEventListener("change", fillExample);
  const shown = examples.findIndex(({ statement }) => statement === form.elements.statement.value);
  if (shown >= 0) part("example").value = shown;
  showTestForm();
  form.elements.entry_point.addEventListener("input", showTestForm);
  for (const button of document.querySelectorAll("[data-add]")) button.addEventListener("click", addTest);
  showSource();
  loadProblems();
  for (const radio of form.elements.source) radio.addEventListener("change", showSource);
  form.elements.version.addEventListener("change", loadProblems);
}
