/**
 * The live log of one run over a websocket (subprotocol grove.v1), lossless by its cursor.
 *
 * Invariants:
 * - Events reach `onEvents` in the order of their seq, without a gap: a frame that does not start
 *   at `last + 1` is not applied; the stream subscribes again after the last event that it has.
 * - Frames are handled one after another, even while a snapshot is being fetched.
 * - A log with another `epoch` is another log: `onReset` is called before its first event.
 *
 * Waits: a lost socket is retried after a random part of 0.5 to 30 s (full jitter); a socket
 * that is silent for 45 s counts as lost. A snapshot is awaited as long as its socket is open: the
 * loss of the socket aborts the request, which would otherwise hold up the frames of the next one.
 */

const PROTOCOL = "grove.v1";
const SID = 1;
const SILENCE_MS = 45_000;
const ACK_MS = 1_000;
const LIVE_HZ = 20;
const HIDDEN_HZ = 1;
// Close codes of the server after which a retry cannot help.
const REFUSAL_TEXTS = { 4400: "reload the page", 4401: "sign in again", 4403: "your access was revoked" };
const BANNER_DELAY_MS = 2_000; // a socket that reconnects sooner is not worth a banner
/** What a page subscribes to: everything but big events that are fetched for one node at a time. */
export const TOPICS = ["*", "-node.text", "-tree.learned", "-eval.outcomes", "-run.described"];
const FATAL_ERRORS = new Set(["not_found", "too_many"]);
const ENDED = ["finished", "failed", "stopped"];

/** Returns whether a run in this state emits nothing more, unless it is resumed. */
export function hasEnded(state) {
  return ENDED.includes(state);
}

/** Milliseconds before attempt n (0, 1, ...): full jitter under a doubling ceiling. */
export function backoff(attempt, random = Math.random) {
  return random() * Math.min(30_000, 500 * 2 ** attempt);
}

/** Returns the page's text about its stream. `state` is the run's state, `time` formats a moment. */
export function statusText(status, state, time) {
  if (status.kind === "refused") return `disconnected: ${status.reason}`;
  if (status.kind === "stale") return `stale since ${time(status.since)}`;
  if (status.kind === "connecting") return "connecting";
  if (status.kind === "catching-up") return `catching up ${status.percent} %`;
  return hasEnded(state) ? "ended" : "live";
}

/** Returns the banner of a page that may be out of date: {kind, title, text}, or null. */
export function connectionNote(status, now, time) {
  if (status.kind === "refused") {
    const text = `Updates have stopped: ${status.reason}. Reload the page to continue.`;
    return { kind: "bad", title: "Disconnected.", text };
  }
  if (status.kind !== "stale" || now - status.since < BANNER_DELAY_MS) return null;
  const why = status.reason ? `${status.reason}. ` : "";
  const text = `${why}Showing the state at ${time(status.since)}. Reconnecting automatically; nothing will be missed.`;
  return { kind: "warn", title: "Connection lost.", text };
}

/** The browser functions that the stream needs; tests pass their own. */
export const browser = {
  open: (url, protocol) => new WebSocket(url, protocol),
  now: () => Date.now(),
  random: () => Math.random(),
  later: (action, ms) => setTimeout(action, ms),
  cancel: (timer) => clearTimeout(timer),
  hidden: () => document.hidden,
  load: async (href, signal) => {
    const reply = await fetch(href, { headers: { accept: "application/json" }, signal });
    if (!reply.ok) throw Object.assign(new Error(`${href} answered ${reply.status}`), { status: reply.status });
    return reply.json();
  },
};

export class RunStream {
  /**
   * @param options {url, run, stateUrl, first, epoch, topics, onEvents, onReset, onStatus, onRunStatus, onDrafts}:
   *   `first` resolves to the state to start from, as `stateUrl` returns it; null starts at the
   *   log's beginning. If it fails, the server's first frame says what to start from. With `onDrafts`
   *   the texts of nodes that are being written are requested too; they are no part of the log.
   */
  constructor(options, env = browser) {
    Object.assign(this, options);
    this.env = env;
    this.last = 0;
    this.attempt = 0;
    this.since = env.now();
    this.socket = null;
    this.work = Promise.resolve();
  }

  start() {
    this.#report({ kind: "connecting" });
    const first = this.first?.then((state) => this.#take(state));
    const warn = (error) => console.warn("grove stream:", error.message);
    this.initialState = this.work = Promise.resolve(first).catch(warn);
    this.#connect();
  }

  /** Resolves when the initial state was applied, or failed to load. */
  begun() {
    return this.initialState;
  }

  stop() {
    this.ended = true;
    this.loading?.abort();
    this.env.cancel(this.timer);
    this.env.cancel(this.silenceTimer);
    this.socket?.close(1000);
  }

  /** Requests the frame rate of a hidden or visible tab; a visible one without a socket reconnects. */
  visibilityChanged() {
    this.#send({ type: "set", sid: SID, max_hz: this.#hz() });
    if (!this.env.hidden() && !this.socket) this.#connect();
  }

  #connect() {
    this.env.cancel(this.timer);
    const socket = this.env.open(this.url, PROTOCOL);
    this.socket = socket;
    this.catchUpFrom = this.last;
    socket.onopen = () => {
      this.#send({ type: "hello", v: 1 });
      this.work = this.work.then(() => this.#subscribe());
    };
    socket.onmessage = ({ data }) => {
      this.#restartSilenceTimer();
      this.work = this.work.then(() => this.socket === socket && this.#handle(JSON.parse(data)));
      this.work = this.work.catch((error) => this.#onError(socket, error));
    };
    socket.onclose = ({ code, reason }) => this.#closed(socket, code, reason);
    this.#restartSilenceTimer();
  }

  #subscribe() {
    this.#send({
      type: "sub",
      sid: SID,
      run: this.run,
      topics: this.topics ?? ["*"],
      after: this.last || null,
      epoch: this.epoch ?? null,
      max_hz: this.#hz(),
      drafts: Boolean(this.onDrafts),
    });
  }

  async #handle(message) {
    switch (message.type) {
      case "subscribed":
        return this.#subscribed(message);
      case "snapshot":
        return this.#snapshot(message.href);
      case "batch":
        return this.#batch(message);
      case "gap":
        return this.#gap(message);
      case "status":
        return this.onRunStatus(message.run);
      case "drafts":
        return this.onDrafts?.(message.nodes);
      case "error":
        return FATAL_ERRORS.has(message.code) && this.#refuse(message.message);
      case "bye":
        this.retryIn = message.retry_ms ?? undefined;
        return message.retry_ms === null && this.#refuse(message.reason);
      default:
        return undefined;
    }
  }

  #subscribed({ epoch, head }) {
    const isOtherLog = this.epoch && epoch !== this.epoch;
    this.epoch = epoch;
    this.head = head;
    this.attempt = 0;
    if (isOtherLog || head < this.last) {
      // The server sends a log that we do not hold from its beginning.
      this.last = 0;
      this.onReset();
    }
    this.catchUpFrom = this.last;
    this.#progress();
  }

  #batch({ from, to, events }) {
    if (to <= this.last) return;
    if (from > this.last + 1) {
      this.#subscribe();
      return;
    }
    this.onEvents(events);
    this.last = to;
    this.#progress();
    this.#acknowledge();
  }

  async #snapshot(href) {
    this.loading = new AbortController();
    this.#take(await this.env.load(href, this.loading.signal));
  }

  #take({ epoch, seq, events }) {
    this.epoch = epoch;
    if (seq <= this.last) return;
    this.onReset();
    this.onEvents(events);
    this.last = seq;
    this.#progress();
  }

  #gap({ from, to, reason }) {
    if (reason === "retention") return this.#snapshot(this.stateUrl);
    if (from <= this.last + 1) this.last = Math.max(this.last, to);
    else this.#subscribe();
    return undefined;
  }

  #progress() {
    const left = (this.head ?? 0) - this.last;
    if (left <= 0) {
      this.#report({ kind: "live" });
      return;
    }
    const span = this.head - this.catchUpFrom;
    const percent = Math.min(99, Math.floor((100 * (this.last - this.catchUpFrom)) / span));
    this.#report({ kind: "catching-up", percent });
  }

  #acknowledge() {
    if (this.acknowledging) return;
    this.acknowledging = this.env.later(() => {
      this.acknowledging = null;
      this.#send({ type: "ack", sid: SID, seq: this.last });
    }, ACK_MS);
  }

  #closed(socket, code, reason = "") {
    if (this.socket !== socket || this.ended) return;
    this.socket = null;
    this.loading?.abort();
    this.env.cancel(this.silenceTimer);
    if (REFUSAL_TEXTS[code]) {
      this.#refuse(reason || REFUSAL_TEXTS[code]);
      return;
    }
    const staleStatus = this.status?.kind === "stale" ? this.status : null;
    if (!staleStatus || staleStatus.reason !== reason) {
      this.#report({ kind: "stale", since: staleStatus?.since ?? this.env.now(), reason });
    }
    const wait = this.retryIn ?? backoff(this.attempt, this.env.random);
    this.retryIn = undefined;
    this.attempt += 1;
    this.timer = this.env.later(() => this.#connect(), wait);
  }

  #onError(socket, error) {
    console.warn("grove stream:", error.message);
    if (this.socket === socket) socket.close(4000);
  }

  #refuse(reason) {
    this.#report({ kind: "refused", reason });
    this.stop();
  }

  /** Restarts the silence timer and keeps the connection alive with pings. */
  #restartSilenceTimer() {
    this.env.cancel(this.silenceTimer);
    const socket = this.socket;
    this.silenceTimer = this.env.later(() => {
      this.#send({ type: "ping" });
      this.silenceTimer = this.env.later(() => {
        // close() would wait for an unreachable peer, so the loss is declared here.
        socket.close(4000);
        this.#closed(socket, 4000);
      }, SILENCE_MS / 3);
    }, (2 * SILENCE_MS) / 3);
  }

  #hz() {
    return this.env.hidden() ? HIDDEN_HZ : LIVE_HZ;
  }

  #send(message) {
    if (this.socket?.readyState === 1) this.socket.send(JSON.stringify(message));
  }

  #report(status) {
    if (JSON.stringify(status) === JSON.stringify(this.status)) return;
    this.status = status;
    this.onStatus(status);
  }
}
