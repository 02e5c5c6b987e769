"""W&B's `plot`: a chart that a program makes of a table is kept as that table.

The numbers of a step are charts by themselves: log them by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from webapp.client.tracking.media import NotKept, Table


def line(table: Table, *_: Any, **__: Any) -> Table:
    """Returns the table; axes, title and stroke are left out."""
    return table


scatter = bar = histogram = line


def plot_table(vega_spec_name: str, data_table: Table, *_: Any, **__: Any) -> Table:
    """Returns the table of a chart by Vega."""
    return data_table


def line_series(
    xs: Iterable[Any], ys: Iterable[Iterable[Any]], keys: Sequence[Any] | None = None, *_: Any,
    xname: str = "x", **__: Any,
) -> Table:  # fmt: skip
    """Returns points, key and number of several lines; `xs` is of all, or one sequence each."""
    lines = [list(one) for one in ys]
    shared = list(xs)
    is_each = bool(shared) and isinstance(shared[0], Sequence) and not isinstance(shared[0], str)
    rows = []
    for index, values in enumerate(lines):
        key = keys[index] if keys is not None else f"line_{index}"
        across = shared[index] if is_each else shared
        rows += [[x, str(key), y] for x, y in zip(across, values, strict=False)]
    return Table(columns=[xname, "lineKey", "lineVal"], data=rows)


def confusion_matrix(
    probs: Any = None, y_true: Any = None, preds: Any = None,
    class_names: Sequence[str] | None = None, *_: Any, **__: Any,
) -> Table:  # fmt: skip
    """Returns how often each class was predicted for each. Classes are indices.

    Raises:
        ValueError: there is no `y_true`, or not one of `probs` and `preds`, or of other lengths.
    """
    if y_true is None or (probs is None) == (preds is None):
        raise ValueError("confusion_matrix: give y_true, and either probs or preds")
    if preds is None:
        preds = [max(range(len(row)), key=list(row).__getitem__) for row in probs]
    pairs = Counter(zip(map(int, y_true), map(int, preds), strict=True))
    count = 1 + max((max(pair) for pair in pairs), default=-1)
    names = list(class_names) if class_names is not None else [str(one) for one in range(count)]
    if len(names) < count:
        raise ValueError(f"confusion_matrix: class_names has {len(names)}, the data {count}")
    rows = [
        [names[actual], names[predicted], pairs[actual, predicted]]
        for actual in range(len(names)) for predicted in range(len(names))
    ]  # fmt: skip
    return Table(columns=["Actual", "Predicted", "nPredictions"], data=rows)


class Curve(NotKept):
    pass


def pr_curve(*_: Any, **__: Any) -> Curve:
    """Returns a text that says how to keep the curve: it is computed by scikit-learn, which the
    program has."""
    return Curve(caption="compute the curve by scikit-learn, and log its points as a Table")


roc_curve = pr_curve


def visualize(id: str, value: Table, *_: Any, **__: Any) -> Table:
    """Returns the table of a chart."""
    return value
