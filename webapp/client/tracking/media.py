"""Values besides numbers that a program logs: histograms, tables, and what is kept as a text.

Names and arguments are those of W&B's classes of the same names, as far as trainers use them.
"""

from __future__ import annotations

import base64
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

from webapp.client.tracking.images import encoded
from webapp.client.tracking.limits import MOST_BINS

DEFAULT_BINS = 64


class Media:
    """Base of all that is logged besides numbers and texts."""


class Histogram(Media):
    """Histogram of numbers, of which NaN and infinite ones are left out; or one that is computed
    already, `np_histogram` = (counts, edges)."""

    def __init__(
        self,
        sequence: Any = None,
        np_histogram: tuple[Any, Any] | None = None,
        num_bins: int = DEFAULT_BINS,
    ):
        """Raises ValueError unless there is one of the two, or for too many bins."""
        if (sequence is None) == (np_histogram is None):
            raise ValueError("Histogram: give either a sequence of numbers or np_histogram")
        if np_histogram is not None:
            counts, edges = (numbers_of(one) for one in np_histogram)
            if len(edges) != len(counts) + 1:
                raise ValueError(f"np_histogram: {len(counts)} counts need {len(counts) + 1} edges")
        else:
            if not 1 <= num_bins <= MOST_BINS:
                raise ValueError(f"num_bins = {num_bins}: give 1 to {MOST_BINS}")
            counts, edges = _binned(sequence, num_bins)
        if len(counts) > MOST_BINS:
            raise ValueError(f"np_histogram: {len(counts)} counts, give at most {MOST_BINS}")
        self.counts, self.edges = counts, edges

    def as_json(self) -> dict[str, list[float]]:
        return {"edges": self.edges, "counts": self.counts}


class Table(Media):
    """Table of texts and numbers; `dataframe`, or `data`, may be one of pandas. Of a table whose
    `log_mode` is INCREMENTAL each call of `log` records the rows that were added since."""

    DEFAULT_COLUMNS = ("Input", "Output", "Expected")
    """Of a table that is given nothing, as W&B's."""

    def __init__(
        self,
        columns: Sequence[Any] | None = None,
        data: Iterable[Sequence[Any]] | None = None,
        rows: Iterable[Sequence[Any]] | None = None,
        dataframe: Any = None,
        log_mode: str | None = None,
        **_: Any,
    ):
        if dataframe is None and is_dataframe(data):
            dataframe, data = data, None
        if dataframe is not None:
            columns, data = list(dataframe.columns), dataframe.to_numpy().tolist()
        given = data if data is not None else rows
        self.log_mode = log_mode or "IMMUTABLE"
        self._recorded = 0
        """Rows that earlier calls of `log` have recorded, of an incremental table."""
        self.data = [list(row) for row in given] if given is not None else []
        if columns is None:
            columns = self.DEFAULT_COLUMNS if given is None else range(len((self.data or [[]])[0]))
        self.columns = [str(name) for name in columns]
        for row in self.data:
            self._check(row)

    def add_data(self, *row: Any) -> None:
        self._check(row)
        self.data.append(list(row))

    add_row = add_data

    def add_column(self, name: str, data: Iterable[Any]) -> None:
        values = list(data)
        if self.columns and len(values) != len(self.data):
            raise ValueError(f"column {name!r}: {len(values)} values for {len(self.data)} rows")
        self.data = self.data if self.columns else [[] for _ in values]
        self.columns.append(str(name))
        for row, value in zip(self.data, values, strict=True):
            row.append(value)

    def iterrows(self) -> Iterator[tuple[int, list[Any]]]:
        """Yields index and cells of each row."""
        yield from enumerate(self.data)

    def get_dataframe(self) -> Any:
        """Returns the table as one of pandas, which the program has to have."""
        return import_module("pandas").DataFrame(self.data, columns=self.columns)

    def rows_to_record(self) -> list[list[Any]]:
        """Returns the rows of this call of `log`; of an incremental table the new ones, once."""
        if self.log_mode != "INCREMENTAL":
            return self.data
        new, self._recorded = self.data[self._recorded :], len(self.data)
        return new

    def get_column(self, name: str, convert_to: str | None = None) -> Any:
        """Returns the cells of a column; with `convert_to="numpy"` as an array."""
        index = self.columns.index(name)
        cells = [row[index] for row in self.data]
        return import_module("numpy").array(cells) if convert_to == "numpy" else cells

    def get_index(self) -> list[int]:
        """Returns the numbers of the rows."""
        return list(range(len(self.data)))

    def add_computed_columns(self, compute: Callable[[int, dict[str, Any]], Any]) -> None:
        """Adds the columns that `compute` returns of a row, given its number and its cells by
        column."""
        by_column: dict[str, list[Any]] = {}
        for index, row in self.iterrows():
            made = compute(index, dict(zip(self.columns, row, strict=True)))
            for name, value in made.items():
                by_column.setdefault(name, []).append(value)
        for name, cells in by_column.items():
            self.add_column(name, cells)

    def cast(self, *_: Any, **__: Any) -> None:
        """Does nothing: a cell is kept as what it is."""

    set_pk = set_fk = cast

    def _check(self, row: Sequence[Any]) -> None:
        if len(row) != len(self.columns):
            raise ValueError(f"a row has {len(row)} cells, the table {len(self.columns)} columns")


class EvalTable(Table):
    """W&B's table of an evaluation: here as any other."""


class Text(Media):
    """A text; `Html` is kept as its source, and shown as that."""

    def __init__(self, data: Any, **_: Any):
        self.text = data.read() if hasattr(data, "read") else str(data)


class Html(Text):
    pass


class NotKept(Media):
    """What Grove does not store: it is logged as a text that says so."""

    def __init__(self, *_: Any, caption: Any = None, **__: Any):
        about = f": {caption}" if caption else ""
        self.text = f"not kept: {type(self).__name__}{about}"

    @classmethod
    def made_of(cls, *_: Any, caption: Any = None, **__: Any) -> NotKept:
        """W&B's other ways to make one."""
        return cls(caption=caption)

    def add_node(self, *_: Any, **__: Any) -> None:
        """Does nothing."""

    add_edge = add_node
    from_file = from_numpy = from_point_cloud = made_of
    from_smiles = from_rdkit = from_keras = make_plot_media = made_of


class Image(Media):
    """Picture: a PNG or JPEG file or its bytes, a figure of matplotlib, a picture of PIL, or an
    array (`images.encoded`). One that cannot be kept is logged as a text that says why."""

    def __init__(self, data_or_path: Any = None, mode: Any = None, caption: Any = None, **_: Any):
        self.caption = "" if caption is None else str(caption)
        self.text = ""
        """Why it is not kept; empty if it is."""
        self.format, self.content = "png", b""
        if isinstance(data_or_path, Image):
            self.caption = self.caption or data_or_path.caption
            self.format, self.content = data_or_path.format, data_or_path.content
            self.text = data_or_path.text
            return
        try:
            self.format, self.content = encoded(data_or_path)
        except (OSError, ValueError, TypeError, RecursionError) as error:
            about = f" ({self.caption})" if self.caption else ""
            self.text = f"not kept: Image{about}: {error}"

    def as_json(self) -> dict[str, str]:
        data = base64.b64encode(self.content).decode()
        return {"format": self.format, "data": data, "caption": self.caption}


class Audio(NotKept):
    pass


class Video(NotKept):
    pass


class Object3D(NotKept):
    pass


class Molecule(NotKept):
    pass


class Plotly(NotKept):
    """A figure of plotly; log one of matplotlib, which is kept as a picture."""


class Graph(NotKept):
    pass


class JoinedTable(NotKept):
    pass


class Classes(NotKept):
    """W&B's names of the classes of a mask, which is not kept."""


def box3d(*_: Any, **box: Any) -> dict[str, Any]:
    """Returns a box of an `Object3D`, which is not kept."""
    return box


def has(value: Any, name: str) -> bool:
    """Returns whether a value has an attribute; false if its own look-up raises anything."""
    try:
        return hasattr(value, name)
    except Exception:
        return False


def is_dataframe(value: Any) -> bool:
    """Returns whether a value is a table of pandas."""
    return has(value, "to_numpy") and has(value, "columns")


def numbers_of(values: Any) -> list[float]:
    """Returns the numbers of a list, an array or a tensor of any shape, flattened."""
    if hasattr(values, "detach"):  # a tensor
        values = values.detach().cpu()
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, int | float):
        return [float(values)]
    flat: list[float] = []
    pending = [iter(values)]
    while pending:
        for one in pending[-1]:
            if isinstance(one, list | tuple):
                pending.append(iter(one))
                break
            flat.append(float(one))
        else:
            pending.pop()
    return flat


def _binned(values: Any, bins: int) -> tuple[list[float], list[float]]:
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(values, "__array__"):
        if hasattr(values, "detach"):
            values = values.detach().cpu().float()
        array = numpy.asarray(values, dtype=float).ravel()
        values = array[numpy.isfinite(array)]
        if values.size:
            low, high = _range(float(values.min()), float(values.max()), bins)
            if math.isfinite(high - low):
                counts, edges = numpy.histogram(values, bins=bins, range=(low, high))
                return counts.astype(float).tolist(), edges.tolist()
    numbers = [one for one in numbers_of(values) if math.isfinite(one)]
    if not numbers:
        return [0.0], [0.0, 1.0]
    low, high = _range(min(numbers), max(numbers), bins)
    edges = [*(_share(low, high, index / bins) for index in range(bins)), high]
    counts = [0.0] * bins
    for one in numbers:
        # Quarters: the range of the largest floats is no float.
        share = (one / 4 - low / 4) / (high / 4 - low / 4)
        counts[min(bins - 1, int(share * bins))] += 1
    return counts, edges


def _range(low: float, high: float, bins: int) -> tuple[float, float]:
    """Returns a range that has as many different floats as edges: that of equal or nearly equal
    numbers is widened, as numpy does for equal ones."""
    least = 4 * bins * math.ulp(max(abs(low), abs(high)))
    if high - low > least:
        return low, high
    half, most = max(0.5, least), sys.float_info.max
    return max(low - half, -most), min(high + half, most)


def _share(low: float, high: float, share: float) -> float:
    between = low + (high - low) * share
    return between if math.isfinite(between) else low * (1 - share) + high * share
