/** What to say of something that could not be loaded, by the status that the server answered. Pure. */

const FINAL = {
  401: "You are signed out. Sign in again, then try again.",
  403: "You may not see this. Ask an owner of the workspace for access.",
  404: "It is not there any more, or you may no longer see it.",
};

/** {text, final}: `final` where asking again by itself would not help. */
export function loadFault(error) {
  const { status } = error;
  if (FINAL[status]) return { text: FINAL[status], final: true };
  const cause = status ? `The server answered ${status}.` : "The server does not answer.";
  return { text: `${cause} The page tries again by itself.`, final: false };
}
