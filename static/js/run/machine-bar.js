/** The time machine's controls: scrub over the log, play it, step by node, jump, and go live. */

import { setText } from "../lib/dom.js";
import { duration } from "../lib/format.js";
import { SPEEDS } from "./time-machine.js";

export class MachineBar {
  /** @param parts elements by name; `solved()` resolves to the seq to jump to, or null. */
  constructor(parts, machine, solved) {
    Object.assign(this, parts);
    this.machine = machine;
    this.speed.value = String(machine.speed);
    this.play.addEventListener("click", () => (machine.playing ? machine.pause() : machine.play()));
    this.back.addEventListener("click", () => machine.step(-1));
    this.next.addEventListener("click", () => machine.step(1));
    this.live.addEventListener("click", () => machine.live());
    this.banner.querySelector("button").addEventListener("click", () => machine.live());
    this.speed.addEventListener("change", () => machine.setSpeed(SPEEDS.find((one) => one === Number(this.speed.value))));
    this.scrub.addEventListener("input", () => this.#scrub());
    this.solved.addEventListener("click", async () => {
      const seq = await solved();
      if (seq !== null) machine.seek(seq);
      else setText(this.position, "No node has passed all tests yet.");
    });
  }

  /** @param live the newest state; `state` the displayed one. */
  show(live, state) {
    const { machine } = this;
    const isEmpty = live.seq < 2;
    this.bar.hidden = isEmpty;
    if (isEmpty) return;
    this.scrub.max = live.seq;
    if (!this.dragging) this.scrub.value = state.seq;
    const passed = duration((state.time - live.startedAt) / 1000);
    const text = `Event ${state.seq.toLocaleString("en-US")} of ${live.seq.toLocaleString("en-US")}`;
    this.scrub.setAttribute("aria-valuetext", `${text}, step ${state.step}, ${passed} after the start`);
    setText(this.position, `${text} · step ${state.step} · ${passed}`);
    this.play.setAttribute("aria-label", machine.playing ? "Pause" : "Play the log");
    this.play.dataset.playing = String(machine.playing);
    this.live.setAttribute("aria-pressed", String(!machine.active));
    this.banner.hidden = !machine.active;
    if (machine.active) {
      const at = new Date(state.time).toLocaleTimeString();
      setText(this.bannerText, `Showing the state at event ${state.seq.toLocaleString("en-US")}, at ${at}.`);
    }
  }

  async #scrub() {
    const { machine } = this;
    if (machine.playing) machine.pause();
    this.dragging = true;
    const request = (this.scrubRequest = (this.scrubRequest ?? 0) + 1);
    await machine.seek(Number(this.scrub.value));
    if (request === this.scrubRequest) this.dragging = false;
  }
}
