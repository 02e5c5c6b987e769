/** The look of a node: its agent's mark, and a fill by score, advantage or agent. Pure. */

import { outcome } from "../stream/fold.js";
import { mixed } from "../forest/marks.js";

const STRONG = 2; // advantage from which on the overlay has its full colour

/**
 * Returns the look function of nodes, for the agents of a team in their order.
 *
 * @param colour what the fill shows: "score", "advantage" or "agent".
 */
export function lookup(agents, palette, colour = "score") {
  const shapes = new Map(agents.map((agent) => [agent.name, agent]));
  return (node) => {
    const agent = shapes.get(node.agent) ?? agents[0];
    const look = {
      shape: agent?.shape ?? "circle",
      hue: palette.agents[agent?.position ?? 0],
      outcome: outcome(node),
      fraction: node.fraction ?? 0,
    };
    if (colour === "advantage" && node.closed) Object.assign(look, creditFill(node.advantage, palette));
    else if (colour === "agent" && node.closed) Object.assign(look, { fill: look.hue, sign: 0 });
    return look;
  };
}

/** Returns fill and sign of an advantage; one that is not known yet has the surface's colour. */
export function creditFill(advantage, palette) {
  if (!advantage) return { fill: advantage === 0 ? palette.line : palette.surface, sign: 0 };
  const share = 0.25 + 0.75 * Math.min(1, Math.abs(advantage) / STRONG);
  const fill = mixed(palette.surface, advantage > 0 ? palette.plus : palette.minus, share);
  return { fill, sign: Math.sign(advantage) };
}
