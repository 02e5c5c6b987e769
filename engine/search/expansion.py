"""The decision of a strategy: which agent generates a child of which node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Expansion:
    """The decision that `agent` generates a child of `parent`.

    `draws` is JSON-safe: `{"levels": [...]}`, one entry per visited node, root first, each with
    `node`, and where they were drawn `agents` (draw, or finite upper bound, per agent), `agent`,
    `gen`, `cont`, `children` (draw per child id, the largest first; in a wide pool, see
    `engine.search.children`, only that of the entered child) and `choice`: "gen" for the last
    entry, else the id of the entered child. A level without a child to enter has no `gen` and
    `cont`: it expands without a draw. `known` holds the parameters of the posterior behind each of
    these draws, under the same names, and `weight` the factor on the draw of `gen`, if depth-guided
    exploration is on.
    """

    parent: int
    agent: str
    depth: int
    """Depth of the new child."""
    draws: dict[str, Any]
    node: int | None = None
    """Id of the child, once it is open."""

    def opened(self, node: int) -> Expansion:
        """Returns the same expansion with the id of its node."""
        return Expansion(self.parent, self.agent, self.depth, self.draws, node)
