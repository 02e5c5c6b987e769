/** What to say of something that could not be loaded, by the status that the server answered. Pure. */

const FINAL = {
  401: "You are signed out. Sign in again, then try again.",
  403: "You do not have access. Ask an owner of the workspace.",
  404: "It no longer exists, or you no longer have access to it.",
};

/** What is wrong, by the status of an answer; undefined where there was none. */
export function faultText(status) {
  return FINAL[status] ?? (status ? `The server answered ${status}.` : "The server is not reachable.");
}

/** {text, final}: `final` where asking again by itself would not help. */
export function loadFault(error) {
  const { status } = error;
  if (FINAL[status]) return { text: FINAL[status], final: true };
  return { text: `${faultText(status)} Retrying automatically.`, final: false };
}
