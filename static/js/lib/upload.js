/**
 * Chunked uploads: with progress, retries after a failure, and resumption after a reload; and the
 * request that has them read, which may have to wait for its turn.
 *
 * Invariant: the server alone knows an upload's offset; a chunk refused for its offset is sent
 * again from the server's. The browser stores only which upload belongs to which file.
 */

const CHUNK_BYTES = 4 << 20;
const MAX_ATTEMPTS = 8;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
const STORAGE_KEY = "grove.uploads";
const QUEUED = 202;

/** A refusal of the server: `problems` is [{path, value, reason}]. */
export class RequestError extends Error {
  constructor(problem) {
    const reasons = problem.problems.map(({ path, reason }) => `${path}: ${reason}`);
    super(reasons.join("; ") || problem.detail);
    this.name = "RequestError";
    this.status = problem.status;
    this.problems = problem.problems;
    this.offset = problem.offset ?? null;
  }
}

/** The browser functions that uploads need; tests pass their own. */
export const browser = {
  request: (address, options) => fetch(address, options),
  key: () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-"),
  pause: (milliseconds, signal) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, milliseconds);
      signal?.addEventListener("abort", () => {
        clearTimeout(timer);
        reject(signal.reason);
      });
    }),
  memory: {
    read: () => JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}"),
    write: (uploads) => localStorage.setItem(STORAGE_KEY, JSON.stringify(uploads)),
  },
};

/** Returns the key under which the same file, chosen again, finds its upload. */
export function fingerprint(file, project, kind) {
  return [project, kind, file.name, file.size, file.lastModified].join("\n");
}

export class Uploader {
  /** @param token the page's CSRF token; `address` is that of uploads in REST. */
  constructor(token, { address = "/api/v1/uploads", env = browser, chunkBytes = CHUNK_BYTES } = {}) {
    Object.assign(this, { token, address, env, chunkBytes });
  }

  /**
   * Sends a file; resolves to the finished upload as REST returns it.
   *
   * `onProgress(bytes)` receives how many bytes the server has; `signal` aborts, and a later call
   * resumes. Rejects with `RequestError`, with the signal's reason, or as `fetch` after `MAX_ATTEMPTS` attempts.
   */
  async send(file, { project, kind, signal, onProgress = () => {} }) {
    const key = fingerprint(file, project, kind);
    let upload = await this.#create(file, { project, kind, key, signal });
    onProgress(upload.offset);
    while (upload.offset < upload.size) {
      upload = await this.#sendChunk(file, upload, signal);
      onProgress(upload.offset);
    }
    try {
      upload = await this.#request(`/${upload.id}/finish`, { method: "POST", signal });
    } catch (error) {
      if (error instanceof RequestError && error.status < 500) this.#removeEntry(key);
      throw error;
    }
    this.#removeEntry(key);
    return upload;
  }

  /** Discards what an aborted `send` has uploaded; the server deletes its bytes. */
  async discard(file, { project, kind }) {
    const key = fingerprint(file, project, kind);
    const id = this.env.memory.read()[key];
    this.#removeEntry(key);
    if (id) await this.#request(`/${id}`, { method: "DELETE" });
  }

  async #create(file, { project, kind, key, signal }) {
    const id = this.env.memory.read()[key];
    if (id) {
      try {
        return await this.#request(`/${id}`, { signal });
      } catch (error) {
        if (!(error instanceof RequestError) || error.status !== 404) throw error;
      }
    }
    const body = JSON.stringify({ project, kind, name: file.name, size: file.size });
    const headers = { "Content-Type": "application/json" };
    const upload = await this.#request("", { method: "POST", body, headers, signal });
    this.env.memory.write({ ...this.env.memory.read(), [key]: upload.id });
    return upload;
  }

  async #sendChunk(file, upload, signal) {
    const body = file.slice(upload.offset, upload.offset + this.chunkBytes);
    const headers = {
      "Content-Type": "application/octet-stream",
      "Upload-Offset": String(upload.offset),
    };
    try {
      return await this.#request(`/${upload.id}`, { method: "PATCH", body, headers, signal });
    } catch (error) {
      // The response was lost: the server has the chunk and reports the offset after it.
      if (!(error instanceof RequestError) || error.offset === null) throw error;
      if (error.offset === upload.offset) await this.env.pause(FIRST_PAUSE_MS, signal);
      return { ...upload, offset: error.offset };
    }
  }

  async #request(path, { headers = {}, ...options }) {
    const named = { ...options, headers: { "X-CSRFToken": this.token, ...headers } };
    const response = await requested(this.env, this.address + path, named);
    return response.status === 204 ? null : await response.json();
  }

  #removeEntry(key) {
    const { [key]: _, ...others } = this.env.memory.read();
    this.env.memory.write(others);
  }
}

/**
 * Posts a JSON body; resolves to the response once it is the request's turn: until then it is
 * repeated, and `onPlace` receives its `place` of `waiting`. The key makes repetitions safe.
 *
 * Rejects as `Uploader.send`.
 */
export async function postInTurn(address, body, { token, signal, onPlace = () => {}, env = browser }) {
  const headers = { "Content-Type": "application/json", "X-CSRFToken": token, "Idempotency-Key": env.key() };
  const options = { method: "POST", headers, body: JSON.stringify(body), signal };
  for (;;) {
    const response = await requested(env, address, options);
    const result = await response.json();
    // A place in the queue says when to ask again; an import that was accepted (202 too) does not.
    const seconds = response.status === QUEUED ? response.headers.get("Retry-After") : null;
    if (seconds === null) return result;
    onPlace(result);
    await env.pause(1000 * Number(seconds), signal);
  }
}

/** Sends a request and retries transient failures (no network, 429, 5xx). */
async function requested(env, address, options) {
  for (let attempt = 1; ; attempt += 1) {
    const last = attempt === MAX_ATTEMPTS;
    let wait = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempt - 1));
    try {
      const response = await env.request(address, options);
      if (response.ok) return response;
      const transient = response.status === 429 || response.status >= 500;
      if (last || !transient) throw new RequestError(await problemOf(response));
      wait = Math.max(wait, 1000 * Number(response.headers.get("Retry-After") ?? 0));
    } catch (error) {
      if (last || error instanceof RequestError || options.signal?.aborted) throw error;
    }
    await env.pause(wait, options.signal);
  }
}

async function problemOf(response) {
  const empty = { status: response.status, detail: `the server answered ${response.status}`, problems: [] };
  try {
    return { ...empty, ...(await response.json()) };
  } catch {
    return empty;
  }
}
