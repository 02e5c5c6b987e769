"""The page of health warnings, from the modules of `engine.health.rules`: what each sees, its
thresholds with their reasons, and its advice.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

from docs.generate import markdown
from docs.generate.markdown import code, escaped, paragraphs, sentence, table
from engine.health import RULES, logged_names
from engine.health.monitor import CALM
from engine.health.rule import Rule

ABOUT = f"""
A training run checks its own events. After each step, the rules below look at the latest steps,
updates and validations. A rule that finds something opens a warning, which closes after {CALM}
steps without a finding. Warnings never stop a run; each says what was seen, since when, and what
usually helps.

Open warnings are shown at the top of the run page, closed ones are folded away; a replay shows
those of its moment, and the list of runs counts the open ones. Every change is a `health` event in
the run's log ([Events](events.md#health)). `result.health` of a run in REST holds the newest 50,
each with the step at which it closed. A resumed run continues with the warnings of its checkpoint.
[Alerts](../guides/alerts.md) can notify you of them.

## Runs of other trainers

Runs that other programs log ([guide](../guides/tracking.md)) are judged by the server while it
stores their events, by the rules below that have *Other trainers*. A step is judged when the first
value of a later step arrives, or the run ends. Rules read the names in the table and the groups
that integrations record; a rule whose figure is not logged finds nothing. Of validations, which
come without standard errors, the error is estimated from the differences between successive ones.
Steps with none of entropy, clip fraction, mismatch, reward, or shares of equal groups or
cut answers are not judged: supervised training is not.
External engines are not judged: they send `health` events of their own.
"""


def page() -> str:
    return markdown.page("Health of a run", ABOUT, _names(), *_parts())


def _names() -> str:
    """Returns the table of the names under which other trainers log each figure."""
    rows = []
    for figure, names in logged_names.NAMES.items():
        shown = [code(name) for name in names]
        if pattern := logged_names.PATTERNS.get(figure):
            shown += [code(part) for part in pattern.pattern.split("|")]
        rows.append((figure.replace("_", " "), ", ".join(shown).replace("|", "&#124;")))
    return table(("figure", "names, also after `train/`; or as these expressions"), rows)


def _parts() -> Iterator[str]:
    for name, rule in RULES.items():
        yield f"## {rule.TITLE}"
        yield f"Rule {code(name)}. " + paragraphs(rule.__doc__)
        yield table(("threshold", "value", "reason"), _thresholds(rule))
        yield f"**What people change.** {escaped(rule.ADVICE)}"
        if general := getattr(rule, "GENERAL_ADVICE", ""):
            yield f"**Other trainers.** {escaped(general)}"


def _thresholds(rule: Rule) -> Iterator[tuple[str, str, str]]:
    body = ast.parse(inspect.getsource(inspect.getmodule(rule.find))).body  # type: ignore[arg-type]
    for index, node in enumerate(body):
        if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
            continue
        name = node.targets[0].id
        value = getattr(rule, name)
        if name in ("TITLE", "ADVICE", "GENERAL_ADVICE") or not isinstance(value, (int, float)):
            continue
        after = body[index + 1]
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        yield code(name), f"{value:g}", sentence(str(after.value.value)) if is_text else ""
