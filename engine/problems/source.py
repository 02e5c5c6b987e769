"""Sources of a run's problems: the built-in generator or a file.

Invariant: the three splits are disjoint; for generated problems by program structure, for a file by
the content of its problems, independent of their order. Rows that could not be used are named in
`left_out`, never dropped silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from engine.config.errors import ConfigError
from engine.config.problems import ProblemsConfig
from engine.problems.errors import MAX_SHOWN, DatasetError, DatasetIssue
from engine.problems.generator import GeneratedProblems, Split
from engine.problems.identity import set_hash
from engine.problems.load import LoadedDataset, RowLocation, load_dataset
from engine.problems.problem import Problem
from engine.problems.splits import shuffled

GENERATED = "generated"


@dataclass(frozen=True)
class ProblemSet:
    """Splits of one run."""

    train: Sequence[Problem]
    validation: list[Problem]
    test: list[Problem]
    left_out: list[DatasetIssue] = field(default_factory=list)
    """Issues of the file's rows that could not be used."""
    locations: dict[str, RowLocation] = field(default_factory=dict)
    """Position of each problem of a file, by id; empty for generated ones, whose references were
    run when they were made."""

    def numbered(self, numbers: Iterable[int]) -> list[Problem]:
        """Returns the training problems of these numbers, which go round and round."""
        return [self.train[number % len(self.train)] for number in numbers]


class StreamedProblems(Sequence[Problem]):
    """First `size` problems of a split, generated on first access."""

    def __init__(self, source: GeneratedProblems, split: Split, size: int):
        self._stream = source.stream(split)
        self._made: list[Problem] = []
        self._size = size

    def __len__(self) -> int:
        return self._size

    # Slices and negative indices are not supported.
    def __getitem__(self, position: int) -> Problem:  # pyrefly: ignore[bad-override]
        if not 0 <= position < self._size:
            raise IndexError(position)
        while len(self._made) <= position:
            self._made.append(next(self._stream)[1])
        return self._made[position]


def load_problem_set(config: ProblemsConfig) -> ProblemSet:
    """Returns all problems of a run.

    Raises:
        ConfigError: a file with too few problems for the splits.
        DatasetError: a file with issues, each with line, field and remedy.
    """
    if config.dataset == GENERATED:
        source = GeneratedProblems.of(config)
        return ProblemSet(
            StreamedProblems(source, Split.TRAIN, config.train),
            source.first(Split.VALIDATION, config.validation),
            source.first(Split.TEST, config.test),
        )
    dataset = load_dataset(config.dataset, config.format)
    return _split(dataset, config)


@dataclass(frozen=True)
class Contents:
    """Contents of a file of problems, for the record; empty for generated ones."""

    hash: str = ""
    """Hash of all its problems (`engine.problems.identity`)."""
    left_out: list[DatasetIssue] = field(default_factory=list)
    problems: int = 0
    """Number of problems."""


def check_problem_set(config: ProblemsConfig) -> Contents:
    """Returns the contents of the run's problems after checking that a run can use them.

    Raises:
        ConfigError: with the first issues of the file, as errors of `problems.dataset`.
    """
    if config.dataset == GENERATED:
        return Contents()
    contents = contents_of(config.dataset, config.format)
    require_enough_problems(contents.problems, config)
    return contents


def contents_of(dataset: str, format: str) -> Contents:
    """Returns the contents of a file or folder. Raises `ConfigError` with its first issues."""
    try:
        loaded = load_dataset(dataset, format)
    except DatasetError as error:
        errors = [
            {"path": "problems.dataset", "value": dataset, "reason": str(issue)}
            for issue in error.issues[:MAX_SHOWN]
        ]
        if len(error.issues) > MAX_SHOWN:
            more = f"... and {len(error.issues) - MAX_SHOWN} more; `problems check` lists them"
            errors.append({"path": "problems.dataset", "value": dataset, "reason": more})
        raise ConfigError(errors) from None
    return Contents(set_hash(loaded.problems), loaded.left_out, len(loaded.problems))


def require_enough_problems(problems: int, config: ProblemsConfig) -> None:
    """Raises `ConfigError` unless a file with this number of problems leaves one to train on."""
    held_back = config.validation + config.test
    if problems <= held_back:
        reason = (
            f"{config.dataset} holds {problems} problems, but validation and test alone take "
            f"{held_back}; lower problems.validation or problems.test"
        )
        raise ConfigError([{"path": "problems", "value": problems, "reason": reason}])


def _split(dataset: LoadedDataset, config: ProblemsConfig) -> ProblemSet:
    problems = dataset.problems
    held_back = config.validation + config.test
    require_enough_problems(len(problems), config)
    ordered = shuffled(problems, config.seed)
    return ProblemSet(
        train=ordered[held_back : held_back + config.train],
        validation=ordered[: config.validation],
        test=ordered[config.validation : held_back],
        left_out=dataset.left_out,
        locations={p.id: location for p, location in zip(problems, dataset.locations, strict=True)},
    )
