/**
 * Chunked uploads: with progress, retries after a failure, and resumption after a reload.
 *
 * Invariant: the server alone knows an upload's offset; a chunk refused for its offset is sent
 * again from the server's. The browser stores only which upload belongs to which file.
 */

const PIECE = 4 << 20;
const TRIES = 8;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
const REMEMBERED = "grove.uploads";

/** A refusal of the server: `problems` is [{path, value, reason}]. */
export class Refused extends Error {
  constructor(problem) {
    const reasons = problem.problems.map(({ path, reason }) => `${path}: ${reason}`);
    super(reasons.join("; ") || problem.detail);
    this.name = "Refused";
    this.status = problem.status;
    this.problems = problem.problems;
    this.offset = problem.offset ?? null;
  }
}

/** The browser functions that uploads need; tests pass their own. */
export const browser = {
  request: (address, options) => fetch(address, options),
  pause: (milliseconds, signal) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, milliseconds);
      signal?.addEventListener("abort", () => {
        clearTimeout(timer);
        reject(signal.reason);
      });
    }),
  memory: {
    read: () => JSON.parse(localStorage.getItem(REMEMBERED) ?? "{}"),
    write: (known) => localStorage.setItem(REMEMBERED, JSON.stringify(known)),
  },
};

/** Returns the key under which the same file, chosen again, finds its upload. */
export function fingerprint(file, project, kind) {
  return [project, kind, file.name, file.size, file.lastModified].join("\n");
}

export class Uploader {
  /** @param token the page's CSRF token; `address` is that of uploads in REST. */
  constructor(token, { address = "/api/v1/uploads", world = browser, piece = PIECE } = {}) {
    Object.assign(this, { token, address, world, piece });
  }

  /**
   * Sends a file; resolves to the finished upload as REST returns it.
   *
   * `onProgress(bytes)` receives how many bytes the server has; `signal` aborts, and a later call
   * resumes. Rejects with `Refused`, with the signal's reason, or as `fetch` after `TRIES` attempts.
   */
  async send(file, { project, kind, signal, onProgress = () => {} }) {
    const mark = fingerprint(file, project, kind);
    let upload = await this.#begun(file, { project, kind, mark, signal });
    onProgress(upload.offset);
    while (upload.offset < upload.size) {
      upload = await this.#sent(file, upload, signal);
      onProgress(upload.offset);
    }
    try {
      upload = await this.#ask(`/${upload.id}/finish`, { method: "POST", signal });
    } catch (error) {
      if (error instanceof Refused && error.status < 500) this.#forget(mark);
      throw error;
    }
    this.#forget(mark);
    return upload;
  }

  /** Discards what an aborted `send` has uploaded; the server deletes its bytes. */
  async discard(file, { project, kind }) {
    const mark = fingerprint(file, project, kind);
    const id = this.world.memory.read()[mark];
    this.#forget(mark);
    if (id) await this.#ask(`/${id}`, { method: "DELETE" });
  }

  async #begun(file, { project, kind, mark, signal }) {
    const known = this.world.memory.read()[mark];
    if (known) {
      try {
        return await this.#ask(`/${known}`, { signal });
      } catch (error) {
        if (!(error instanceof Refused) || error.status !== 404) throw error;
      }
    }
    const body = JSON.stringify({ project, kind, name: file.name, size: file.size });
    const headers = { "Content-Type": "application/json" };
    const upload = await this.#ask("", { method: "POST", body, headers, signal });
    this.world.memory.write({ ...this.world.memory.read(), [mark]: upload.id });
    return upload;
  }

  async #sent(file, upload, signal) {
    const body = file.slice(upload.offset, upload.offset + this.piece);
    const headers = {
      "Content-Type": "application/octet-stream",
      "Upload-Offset": String(upload.offset),
    };
    try {
      return await this.#ask(`/${upload.id}`, { method: "PATCH", body, headers, signal });
    } catch (error) {
      // The response was lost: the server has the chunk and reports the offset after it.
      if (!(error instanceof Refused) || error.offset === null) throw error;
      if (error.offset === upload.offset) await this.world.pause(FIRST_PAUSE_MS, signal);
      return { ...upload, offset: error.offset };
    }
  }

  /** Sends a request and retries transient failures (no network, 429, 5xx). */
  async #ask(path, { headers = {}, ...options }) {
    for (let tried = 1; ; tried += 1) {
      const last = tried === TRIES;
      let wait = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (tried - 1));
      try {
        const answer = await this.world.request(this.address + path, {
          ...options,
          headers: { "X-CSRFToken": this.token, ...headers },
        });
        if (answer.ok) return answer.status === 204 ? null : await answer.json();
        const passing = answer.status === 429 || answer.status >= 500;
        if (last || !passing) throw new Refused(await problemOf(answer));
        wait = Math.max(wait, 1000 * Number(answer.headers.get("Retry-After") ?? 0));
      } catch (error) {
        if (last || error instanceof Refused || options.signal?.aborted) throw error;
      }
      await this.world.pause(wait, options.signal);
    }
  }

  #forget(mark) {
    const { [mark]: _, ...others } = this.world.memory.read();
    this.world.memory.write(others);
  }
}

async function problemOf(answer) {
  const empty = { status: answer.status, detail: `the server answered ${answer.status}`, problems: [] };
  try {
    return { ...empty, ...(await answer.json()) };
  } catch {
    return empty;
  }
}
