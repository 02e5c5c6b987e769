/**
 * Checkboxes of the fields that hold a list of names, in place of their text. The field keeps the value.
 */

import { namesIn, withName } from "../lib/toml-lines.js";

/** Shows the boxes of a form; returns a function that checks those of the fields' values. */
export function startNameBoxes(form) {
  const pairs = [...form.querySelectorAll("[data-boxes]")].map((boxes) => {
    const field = boxes.closest(".setting").querySelector("[data-path]");
    boxes.addEventListener("change", ({ target }) => {
      field.value = withName(field.value, target.value, target.checked);
      field.dispatchEvent(new Event("input", { bubbles: true }));
    });
    [boxes.hidden, field.hidden] = [false, true];
    return { boxes, field };
  });
  function sync() {
    for (const { boxes, field } of pairs) {
      const names = namesIn(field.value) ?? [];
      for (const box of boxes.querySelectorAll("input")) box.checked = names.includes(box.value);
    }
  }
  sync();
  return sync;
}
