/** Text of other people, such as names in events that were stored before such names were refused. Pure. */

/* Control characters but tab and line ends, separators of lines, and marks of the direction of writing (UAX 9), which
 * reorder what follows. */
const HIDDEN = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

const escaped = (character) => {
  const number = character.charCodeAt(0);
  return number < 0x100 ? `\\x${number.toString(16).padStart(2, "0")}` : `\\u${number.toString(16).padStart(4, "0")}`;
};

/** Returns a text with escapes for what is not visible in it and changes how the rest looks. */
export function shown(text) {
  return text.replace(HIDDEN, escaped);
}
