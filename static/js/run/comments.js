/**
 * The card of comments: shows the thread of a run, a node or a comparison, and reloads it on request.
 *
 * The server renders threads; the part `data-thread` of its page is inserted here. A comment that is
 * being written is never discarded: while there is one, only the list is reloaded.
 */

import { ErrorNote } from "../lib/error-note.js";
import { updateAges } from "../pages/frame.js";
import { errorText } from "../lib/load-error.js";

export class Comments {
  #shown = "";

  /** @param host the element whose `data-comments` is the address of the thread. */
  constructor(host) {
    this.host = host;
    this.base = host.dataset.comments;
    this.title = host.querySelector("[data-comments-title]");
    this.body = host.querySelector("[data-comments-body]");
    this.errorNote = new ErrorNote(() => this.body, "Comments could not be loaded.");
    host.addEventListener("submit", (event) => this.#submit(event));
    this.show(null, null);
  }

  /** Loads what others have written since. */
  renew() {
    this.#load(false);
  }

  /** Shows the thread of a node, or that of the whole if `node` is null; ids are numbers. */
  show(tree, node) {
    const address = node === null ? this.base : `${this.base}&tree=${tree}&node=${node}`;
    if (address === this.#shown) return;
    this.#shown = address;
    this.title.textContent = node === null ? "Comments" : `Comments on node ${node}`;
    this.#showLoading();
    this.#load(true);
  }

  #showLoading() {
    const status = document.createElement("p");
    status.className = "card-body muted";
    status.setAttribute("role", "status");
    status.textContent = "Loading comments…";
    this.host.setAttribute("aria-busy", "true");
    this.body.replaceChildren(status);
  }

  async #load(whole) {
    const address = this.#shown;
    try {
      await this.#insert(address, await fetch(address), whole);
    } catch (error) {
      if (address === this.#shown && whole) this.#showError(error, () => this.#retry());
    } finally {
      if (address === this.#shown) this.host.removeAttribute("aria-busy");
    }
  }

  #retry() {
    this.#showLoading();
    this.#load(true);
  }

  async #submit(event) {
    event.preventDefault();
    const { target: form, submitter } = event;
    const address = this.#shown;
    submitter.disabled = true;
    try {
      const response = await fetch(form.action, { method: "POST", body: new FormData(form) });
      await this.#insert(address, response, true);
    } catch (error) {
      this.#showError(error, () => form.requestSubmit(submitter));
    } finally {
      submitter.disabled = false;
    }
  }

  async #insert(address, response, whole) {
    if (response.redirected && new URL(response.url).pathname.startsWith("/sign-in/")) throw { status: 401 };
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const thread = page.querySelector("[data-thread]");
    if (!thread) throw { status: response.status };
    if (address !== this.#shown) return;
    this.errorNote.hide();
    const list = this.body.querySelector("[data-thread-list]");
    if (whole || !list) this.body.replaceChildren(document.adoptNode(thread));
    else if (!list.contains(document.activeElement)) {
      list.replaceWith(document.adoptNode(thread.querySelector("[data-thread-list]")));
    }
    updateAges();
  }

  /** Shows a note in place of the loading text; keeps a comment that is being written. */
  #showError(error, retry) {
    this.body.querySelector("[role=status]")?.remove();
    this.errorNote.show(errorText(error.status), retry);
  }
}
