/**
 * Python source as coloured tokens. Pure: text in, [{kind, text}] out.
 *
 * Invariant: the texts of the tokens joined together are the source, whatever the source is;
 * programs here are often broken, so nothing may be dropped or refused.
 */

const KEYWORDS = new Set(
  ("and as assert async await break class continue def del elif else except finally for from " +
    "global if import in is lambda match case nonlocal not or pass raise return try while with " +
    "yield").split(" "),
);
const CONSTANTS = new Set(["True", "False", "None", "self", "cls"]);
const BUILTINS = new Set(
  ("abs all any bin bool bytes chr dict divmod enumerate filter float frozenset hex int " +
    "isinstance iter len list map max min next oct ord pow print range repr reversed round set " +
    "sorted str sum tuple type zip").split(" "),
);

// Order matters: a triple quote before a single one, a number before a name.
const TOKEN = new RegExp(
  [
    "(?<comment>#[^\\n]*)",
    "(?<string>[rRbBuUfF]{0,2}(?:\"\"\"[\\s\\S]*?(?:\"\"\"|$)|'''[\\s\\S]*?(?:'''|$)" +
      "|\"(?:\\\\.|[^\"\\\\\\n])*\"?|'(?:\\\\.|[^'\\\\\\n])*'?))",
    "(?<decorator>@[A-Za-z_][\\w.]*)",
    "(?<number>\\b(?:0[xX][\\da-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+" +
      "|\\d[\\d_]*\\.?[\\d_]*(?:[eE][+-]?\\d+)?j?))",
    "(?<name>[^\\W\\d]\\w*)",
    "(?<space>\\s+)",
    "(?<operator>[-+*/%@&|^~<>=!:]+|[()[\\]{},.;])",
    "(?<other>[\\s\\S])",
  ].join("|"),
  "gu",
);

/** Returns the tokens of a Python program, in order. */
export function highlight(source) {
  const tokens = [];
  let afterDefinition = false;
  for (const match of source.matchAll(TOKEN)) {
    const [[kind, text]] = Object.entries(match.groups).filter(([, value]) => value !== undefined);
    tokens.push({ kind: kind === "name" ? nameKind(text, afterDefinition) : kind, text });
    if (kind !== "space") afterDefinition = text === "def" || text === "class";
  }
  return tokens;
}

function nameKind(text, afterDefinition) {
  if (afterDefinition) return "definition";
  if (KEYWORDS.has(text)) return "keyword";
  if (CONSTANTS.has(text)) return "constant";
  return BUILTINS.has(text) ? "builtin" : "name";
}

/** Returns the tokens split at line ends: one list per line of the source. */
export function highlightLines(source) {
  const lines = [[]];
  for (const { kind, text } of highlight(source)) {
    text.split("\n").forEach((part, index) => {
      if (index) lines.push([]);
      if (part) lines.at(-1).push({ kind, text: part });
    });
  }
  return lines;
}
