/** The note of a list that could not be loaded: the cause, and a button to retry. */

import { element } from "./dom.js";

export class ErrorNote {
  /** @param before returns the element above which the note is inserted; `title` is its heading. */
  constructor(before, title) {
    this.before = before;
    this.title = title;
    this.note = element("div", { class: "note warn", role: "status", "data-part": "listError" });
  }

  show(text, retry) {
    if (this.note.isConnected && this.text === text) return; // a screen reader announces it once
    this.text = text;
    const button = element("button", { class: "button", type: "button", onclick: retry }, "Try again");
    this.note.replaceChildren(element("div", {}, element("b", {}, this.title), ` ${text} `), button);
    this.before().before(this.note);
  }

  hide() {
    this.note.remove();
  }
}

/** Fetches an address; returns a successful response, throws {status} of any other. */
export async function fetchOk(address, options) {
  const response = await fetch(address, options);
  if (response.redirected && new URL(response.url).pathname.startsWith("/sign-in/")) throw { status: 401 };
  if (!response.ok) throw { status: response.status };
  return response;
}
