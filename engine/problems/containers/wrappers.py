"""What holds rows within one JSON value, or around each row: lists, splits, columns of pandas, and
responses of the Hugging Face data set viewer (https://huggingface.co/docs/dataset-viewer/rows).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WRAPPER_FIELDS = 4  # an object with more fields is a row
_VIEWER_FIELDS = frozenset({"row_idx", "row", "truncated_cells"})
_SPLIT_FIELDS = frozenset({"columns", "index", "data"})
_LIST_NAMES = ("data", "rows", "records", "problems", "instances")
"""Of a list that is the rows, however many fields say what they are."""
_SHOWN_CELLS = 5


def is_viewer_row(row: Any) -> bool:
    """Returns whether this is a row as the viewer gives it, with the row itself inside."""
    holds_one = isinstance(row, dict) and isinstance(row.get("row"), dict)
    return holds_one and row.keys() <= _VIEWER_FIELDS


def is_viewer_page(value: Any) -> bool:
    """Returns whether this is a response of the viewer, with some of the rows."""
    rows = value.get("rows") if isinstance(value, dict) else None
    return isinstance(rows, list) and bool(rows) and all(map(is_viewer_row, rows))


def unwrapped(row: Any) -> Any:
    """Returns the row inside of one of the viewer, any other as it is; a ValueError if the viewer
    has cut cells of it."""
    if not is_viewer_row(row):
        return row
    cells = row.get("truncated_cells") or []
    if not cells:
        return row["row"]
    names = ", ".join(map(str, cells[:_SHOWN_CELLS])) if isinstance(cells, list) else str(cells)
    return ValueError(
        f"the data set viewer has cut the cells {names[:200]}; take the row from the files of the "
        "data set, or give hf:ORG/NAME@REVISION"
    )


def rows_inside(value: Any) -> list[Any]:
    """Returns the rows that a JSON value holds, a list or an object: one with a list as its only
    list, with rows, splits or columns as its values, or one row."""
    if isinstance(value, list):
        return value
    if is_viewer_page(value):
        return value["rows"]
    if value and all(isinstance(one, dict) for one in value.values()):
        return _transposed(value) or list(value.values())
    if value.keys() <= _SPLIT_FIELDS and (rows := _of_split(value)):
        return rows
    lists = [one for one in value.values() if _is_list_of_objects(one)]
    empty = [one for one in value.values() if one == []]
    if lists and len(lists) + len(empty) == len(value) and _share_a_field(lists):
        return [row for one in lists for row in one]
    named = any(_is_list_of_objects(value.get(name)) for name in _LIST_NAMES)
    if len(lists) == 1 and (named or len(value) <= _WRAPPER_FIELDS):
        return lists[0]
    return _of_columns(value) or [value]


def _share_a_field(lists: list[list[Any]]) -> bool:
    """Returns whether the first rows of splits have a field in common."""
    return bool(set.intersection(*(set(one[0]) for one in lists)))


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _of_columns(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the rows of a list for each column, all of one length and one of texts; none if it is
    no such."""
    columns = list(value.values())
    if not all(isinstance(one, list) for one in columns):
        return []
    has_texts = any(all(isinstance(text, str) for text in one) for one in columns)
    if len({len(one) for one in columns}) != 1 or not has_texts:
        return []
    return [dict(zip(value, row, strict=True)) for row in zip(*columns, strict=True)]


def _transposed(value: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows of an object for each column with the values by number, as `to_json` of
    pandas writes it; none if it is no such."""
    keys = list(next(iter(value.values())))
    if not keys or not all(key.isdecimal() for key in keys):
        return []
    if any(column.keys() != set(keys) for column in value.values()):
        return []
    return [{name: column[key] for name, column in value.items()} for key in keys]


def _of_split(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the rows of lists under `data` whose fields `columns` names; none if it is no
    such."""
    names, rows = value.get("columns"), value.get("data")
    if not isinstance(names, list) or not isinstance(rows, list):
        return []
    if not all(isinstance(row, list) and len(row) == len(names) for row in rows):
        return []
    return [dict(zip(map(str, names), row, strict=True)) for row in rows]
