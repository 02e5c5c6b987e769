"""Figures of a report as pictures: positions and texts, which a template writes as SVG and tables.

Pure: data of a figure in, what is drawn out; the same for a page, a guest and an exported file.
"""

from __future__ import annotations

from typing import Any

from webapp.reports.drawing.charts import ChartDrawing, chart_drawing
from webapp.reports.drawing.runs_tables import TableDrawing, table_drawing
from webapp.reports.drawing.trees import TreeDrawing, tree_drawing

Drawing = ChartDrawing | TreeDrawing | TableDrawing
_DRAWINGS = {"chart": chart_drawing, "tree": tree_drawing, "runs": table_drawing}


def drawing_of(data: dict[str, Any]) -> Drawing:
    """Returns the drawing of a figure's data (`reports.embeds`)."""
    return _DRAWINGS[data["kind"]](data)
