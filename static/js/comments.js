/**
 * The card of comments: shows the thread of a run, a node or a comparison, and renews it when told.
 *
 * The server renders threads; what is taken from its page is the part `data-thread`. A comment that
 * is being written is never taken away: while one is there, only the list is renewed.
 */

import { tellAges } from "./frame.js";

export class Comments {
  #shown = "";

  /** @param host the element whose `data-comments` is the address of the thread. */
  constructor(host) {
    this.host = host;
    this.base = host.dataset.comments;
    this.title = host.querySelector("[data-comments-title]");
    this.body = host.querySelector("[data-comments-body]");
    host.addEventListener("submit", (event) => this.#submit(event));
    this.show(null, null);
  }

  /** Show what others have written since. */
  renew() {
    this.#load(false);
  }

  /** The thread of a node, or that of the whole; ids are numbers. */
  show(tree, node) {
    const address = node === null ? this.base : `${this.base}&tree=${tree}&node=${node}`;
    if (address === this.#shown) return;
    this.#shown = address;
    this.title.textContent = node === null ? "Comments" : `Comments on node ${node}`;
    this.#load(true);
  }

  async #load(whole) {
    const address = this.#shown;
    try {
      this.#take(address, await fetch(address), whole);
    } catch (error) {
      if (whole) this.#fault(error);
    }
  }

  async #submit(event) {
    event.preventDefault();
    const { target: form, submitter } = event;
    const address = this.#shown;
    submitter.disabled = true;
    try {
      const response = await fetch(form.action, { method: "POST", body: new FormData(form) });
      await this.#take(address, response, true);
    } catch (error) {
      this.#fault(error);
    } finally {
      submitter.disabled = false;
    }
  }

  async #take(address, response, whole) {
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const thread = page.querySelector("[data-thread]");
    if (!thread) throw new Error(page.querySelector("h1")?.textContent ?? `answer ${response.status}`);
    if (address !== this.#shown) return;
    const list = this.body.querySelector("[data-thread-list]");
    if (whole || !list) this.body.replaceChildren(document.adoptNode(thread));
    else if (!list.contains(document.activeElement)) {
      list.replaceWith(document.adoptNode(thread.querySelector("[data-thread-list]")));
    }
    tellAges();
  }

  #fault(error) {
    const said = document.createElement("p");
    said.className = "card-body down";
    said.setAttribute("role", "alert");
    said.textContent = `The comments do not answer: ${error.message}`;
    this.body.querySelector("[role=alert]")?.remove();
    this.body.append(said);
  }
}
