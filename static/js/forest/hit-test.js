/**
 * Positions of the drawn nodes of one tree, for hit tests. Pure.
 *
 * Positions are in typed arrays: with an object per node, a tree of thousands of nodes would allocate
 * them again for every picture, and the browser would spend more on collecting than on drawing them.
 */

export class DrawnNodes {
  /** @param most maximum number of nodes; `r` their radius in px. */
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

  /** Returns {tree, node, x, y, r} of the node at an index. */
  at(index) {
    return { tree: this.tree, node: this.nodes[index], x: this.x[index], y: this.y[index], r: this.r };
  }

  /** Returns the position of a node, as `at`; null if it was not drawn. */
  of(node) {
    const index = this.nodes.indexOf(node);
    return index < 0 ? null : this.at(index);
  }

  /** Returns the nearest node as {hit, away}, `away` px from its edge; null without any. */
  nearest(x, y) {
    let [best, least] = [-1, Infinity];
    for (let index = 0; index < this.length; index += 1) {
      const away = Math.hypot(this.x[index] - x, this.y[index] - y);
      if (away < least) [best, least] = [index, away];
    }
    return best < 0 ? null : { hit: this.at(best), away: least - this.r };
  }

  /** Moves all positions by pixels. */
  move(dx, dy) {
    for (let index = 0; index < this.length; index += 1) {
      this.x[index] += dx;
      this.y[index] += dy;
    }
  }
}
