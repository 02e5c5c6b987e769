/**
 * Where the nodes of one tree were drawn, to be pointed at. Pure.
 *
 * Places lie in typed arrays: of a tree of thousands of nodes an object each would be made anew with
 * every picture, and the browser would spend more on forgetting them than on drawing.
 */

export class Spots {
  /** @param most how many there can be; `r` their radius in px. */
  constructor(tree, most, r) {
    Object.assign(this, { tree, r, length: 0, nodes: [] });
    this.x = new Float64Array(most);
    this.y = new Float64Array(most);
  }

  add(node, x, y) {
    this.x[this.length] = x;
    this.y[this.length] = y;
    this.nodes[this.length] = node;
    this.length += 1;
  }

  /** {tree, node, x, y, r} of one of them. */
  at(index) {
    return { tree: this.tree, node: this.nodes[index], x: this.x[index], y: this.y[index], r: this.r };
  }

  /** The spot of a node; null if it was not drawn. */
  of(node) {
    const index = this.nodes.indexOf(node);
    return index < 0 ? null : this.at(index);
  }

  /** {spot, away} of the one that lies nearest, `away` px from its edge; null without any. */
  nearest(x, y) {
    let [best, least] = [-1, Infinity];
    for (let index = 0; index < this.length; index += 1) {
      const away = Math.hypot(this.x[index] - x, this.y[index] - y);
      if (away < least) [best, least] = [index, away];
    }
    return best < 0 ? null : { spot: this.at(best), away: least - this.r };
  }

  /** Moves all of them by pixels. */
  move(dx, dy) {
    for (let index = 0; index < this.length; index += 1) {
      this.x[index] += dx;
      this.y[index] += dy;
    }
  }
}
