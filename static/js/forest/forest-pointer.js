/** Pointer control of the forest: it shows tooltips, opens nodes, drags and zooms a tree in focus. */

const CLICK_REACH = 4; // px that a press may move and still be a click
const WHEEL_RATE = 0.0016; // of zoom per px of wheel

/**
 * @param forest {at(x, y), point(hit), leave(), pick(hit), drag(dx, dy), zoom(factor, x, y),
 *   inFocus(x, y)}; positions are px within the canvas.
 */
export function listenToPointer(canvas, forest) {
  let press = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const { offsetX: x, offsetY: y } = event;
    press = { x, y, moved: false, drags: forest.inFocus(x, y) && event.pointerType !== "touch" };
    if (press.drags) canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const { offsetX: x, offsetY: y } = event;
    if (!press?.drags) return forest.point(forest.at(x, y), x, y);
    const [dx, dy] = [x - press.x, y - press.y];
    if (!press.moved && Math.hypot(dx, dy) <= CLICK_REACH) return undefined;
    Object.assign(press, { x, y, moved: true });
    return forest.drag(dx, dy);
  });
  canvas.addEventListener("pointerup", () => {
    if (!press?.moved) press = null;
  });
  canvas.addEventListener("pointerleave", () => forest.leave());
  canvas.addEventListener("click", ({ offsetX, offsetY }) => {
    const moved = press?.moved;
    press = null;
    if (!moved) forest.pick(forest.at(offsetX, offsetY));
  });
  // A plain wheel scrolls the page; with Ctrl, which a pinch sends too, it zooms.
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!(event.ctrlKey || event.metaKey) || !forest.inFocus(event.offsetX, event.offsetY)) return;
      event.preventDefault();
      forest.zoom(Math.exp(-event.deltaY * WHEEL_RATE), event.offsetX, event.offsetY);
    },
    { passive: false },
  );
}
