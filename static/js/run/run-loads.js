/** What the run page fetches beside its stream: moments, single trees, and the trees of a step. */

import { fold } from "../stream/fold.js";
import { browser, TOPICS } from "../stream/stream.js";

/** @param urls those of the page's JSON. */
export class RunLoads {
  constructor(urls) {
    this.urls = urls;
  }

  /** {epoch, seq, events} that come to the state after `seq`. */
  state(seq) {
    return browser.load(`${this.urls.state}?seq=${seq}`);
  }

  /** The events after one seq, up to and with another. */
  async events(after, until) {
    const address = `${this.urls.events}?after=${after}&until=${until}&topics=${TOPICS.join()}`;
    const reply = await fetch(address);
    if (!reply.ok) throw new Error(`${address} answered ${reply.status}`);
    const lines = (await reply.text()).split("\n");
    return lines.filter(Boolean).map((line) => JSON.parse(line));
  }

  /** The events about the trees of a step, up to `seq`. */
  async step(step, seq) {
    return (await browser.load(`${this.urls.step.replace("STEP", step)}?seq=${seq}`)).events;
  }

  /** A tree as it was after `seq`; null if it cannot be had. */
  async tree(id, seq) {
    try {
      const { events } = await browser.load(`${this.urls.tree.replace("TREE", id)}?seq=${seq}`);
      return fold(events).trees.get(id) ?? null;
    } catch (error) {
      console.warn("grove: the tree of this address cannot be shown:", error.message);
      return null;
    }
  }

  /** All that is told of one node. */
  node(tree, node) {
    return browser.load(this.urls.node.replace("TREE", tree).replace("NODE", node));
  }

  /** {seq, tree, node} of the first node of the run that passed; null while there is none. */
  async firstSolved() {
    return (await browser.load(this.urls.moments)).first_solved;
  }
}
