/** Texts for data that could not be loaded, by the HTTP status of the response. Pure. */

const FINAL_TEXTS = {
  401: "You are signed out. Sign in again, then try again.",
  403: "You do not have access. Ask an owner of the workspace.",
  404: "It no longer exists, or you no longer have access to it.",
};

/** Returns the cause, by the status of a response; undefined means that there was none. */
export function errorText(status) {
  return FINAL_TEXTS[status] ?? (status ? `The server answered ${status}.` : "The server is not reachable.");
}

/** Returns {text, final}: `final` if an automatic retry would not help. */
export function loadError(error) {
  const { status } = error;
  if (FINAL_TEXTS[status]) return { text: FINAL_TEXTS[status], final: true };
  return { text: `${errorText(status)} Retrying automatically.`, final: false };
}
