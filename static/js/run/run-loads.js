/** Requests of the run page apart from its stream: states, events, single trees, trees of a step. */

import { fold } from "../stream/fold.js";
import { browser, TOPICS } from "../stream/stream.js";

/** @param urls the URLs in the page's JSON. */
export class RunLoads {
  constructor(urls) {
    this.urls = urls;
  }

  /** Returns {epoch, seq, events}, whose fold is the state after `seq`. */
  state(seq) {
    return browser.load(`${this.urls.state}?seq=${seq}`);
  }

  /** Returns the events after one seq, up to and including another. */
  async events(after, until) {
    const address = `${this.urls.events}?after=${after}&until=${until}&topics=${TOPICS.join()}`;
    const response = await fetch(address);
    if (!response.ok) throw new Error(`${address} answered ${response.status}`);
    const lines = (await response.text()).split("\n");
    return lines.filter(Boolean).map((line) => JSON.parse(line));
  }

  /** Returns the events about the trees of a step, up to `seq`. */
  async step(step, seq) {
    return (await browser.load(`${this.urls.step.replace("STEP", step)}?seq=${seq}`)).events;
  }

  /** Returns a tree as of `seq`; null if it had not begun. */
  async tree(id, seq) {
    const { events } = await browser.load(`${this.urls.tree.replace("TREE", id)}?seq=${seq}`);
    return fold(events).trees.get(id) ?? null;
  }

  /** Returns the recorded texts and token figures of one node. */
  node(tree, node) {
    return browser.load(this.urls.node.replace("TREE", tree).replace("NODE", node));
  }

  /** Returns {seq, tree, node} of the first node of the run that passed; null if none has. */
  async firstSolved() {
    return (await browser.load(this.urls.moments)).first_solved;
  }
}
