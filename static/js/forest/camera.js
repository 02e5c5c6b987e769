/** Pan and zoom of one tree: pixels of the fitted tree to pixels of the screen. Pure. */

import { pixelMapping } from "./layout.js";

export const HOME = { k: 1, x: 0, y: 0 };
const MOST = 60;

/** Returns the camera after zooming by a factor about a point of the screen. */
export function zoomed(camera, factor, px, py) {
  const k = Math.min(MOST, Math.max(1, camera.k * factor));
  if (k === 1) return HOME;
  const ratio = k / camera.k;
  return { k, x: px - (px - camera.x) * ratio, y: py - (py - camera.y) * ratio };
}

/** Returns the camera moved by pixels; some of the tree's box always stays on the screen. */
export function panned(camera, dx, dy, box) {
  const clamp = (value, size, from) => {
    const least = from - (from + size) * camera.k + from + size * 0.5;
    const most = size * 0.5 + from - from * camera.k;
    return Math.min(most, Math.max(least, value));
  };
  return {
    k: camera.k,
    x: clamp(camera.x + dx, box.width, box.x),
    y: clamp(camera.y + dy, box.height, box.y),
  };
}

/** Returns a mapping to pixels (`layout.pixelMapping`) as seen through the camera. */
export function through({ line: [left, across, top, down], scale }, { k, x, y }) {
  return pixelMapping([left * k + x, across * k, top * k + y, down * k], scale * k);
}

/** Returns the camera moved the shortest way such that a point of the screen is within the box. */
export function revealing(camera, point, box, margin = 40) {
  const way = (value, from, size) => {
    if (value < from + margin) return from + margin - value;
    return value > from + size - margin ? from + size - margin - value : 0;
  };
  const dx = way(point.x, box.x, box.width);
  const dy = way(point.y, box.y, box.height);
  return dx || dy ? { k: camera.k, x: camera.x + dx, y: camera.y + dy } : camera;
}
