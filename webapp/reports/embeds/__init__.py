"""Figures of a report: their data, read from runs (`data_of`), as plain JSON values.

The data hold all that is drawn (`reports.drawing`), so that a frozen figure needs no run: {kind,
runs: [{id, name, project}], missing: [{line, value, remedy}], is_live, ...} and what the kind adds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webapp.reports.directives import Directive, Kind
from webapp.reports.embeds.charts import chart_data
from webapp.reports.embeds.readers import Reader
from webapp.reports.embeds.runs_tables import runs_data
from webapp.reports.embeds.trees import tree_data

_DATA: dict[Kind, Callable[[Directive, Reader], dict[str, Any]]] = {
    Kind.CHART: chart_data,
    Kind.TREE: tree_data,
    Kind.RUNS: runs_data,
}


def data_of(directive: Directive, reader: Reader) -> dict[str, Any]:
    """Returns the data of the figure as `reader` may see them now.

    Raises:
        BlockError: it shows nothing; the message says why.
    """
    return _DATA[directive.kind](directive, reader)
