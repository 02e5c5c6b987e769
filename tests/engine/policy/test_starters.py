"""Tests of the shipped starters: true to their lineage, small, loadable, remade from the seed."""

import hashlib
import json
import re
from ast import literal_eval
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import islice
from statistics import mean

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from engine.config.agents import SamplingConfig
from engine.config.sandbox import SandboxConfig
from engine.environments.programs.prompts import root_prompt
from engine.policy.generators.torch_generator import TorchGenerator
from engine.policy.models.load import load_policy
from engine.policy.starters import STARTERS, starter_directory
from engine.policy.starters.demonstrations import (
    CLEAN,
    NoiseLevels,
    Repairs,
    demonstrations,
    mixed_demonstrations,
    steps_of,
)
from engine.policy.starters.make import (
    IGNORED,
    NOISY_START,
    NOTED_STEPS,
    RECIPES,
    batches_of,
    encode,
    make_starter,
    pad,
)
from engine.problems.extraction import extract_program
from engine.problems.generator import GeneratedProblems, Split, make_problem
from engine.problems.generator.compose import program, split_of
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.verify import verify
from tests.helpers.large import large_but

PAIRS = (("oak", "fern"), ("ash", "rowan"))
PROBLEMS = 200
OFTEN_WRONG = {"oak": 0.3, "fern": 0.3, "ash": 0.7, "rowan": 0.7}
"""Upper bound of Pass@1 on fully stated problems; measured: 0.51 and 0.62 of ash and rowan."""
DOUBT = 0.04
"""Least rise of the loss on right demonstrations in the last phase, in which half of the
demonstrations are right: the repairs."""
REMADE_STEPS = 40
MOST_OFF = 5e-3
"""Largest relative difference between losses of two makings with the same seed: another seed
differs by one to eight percent, another processor's instructions by less than a tenth of a
percent."""


FAILURE = re.compile(r"^solve\((.*)\) (?:gave|ended with) [^$]*?, expected (.*)\.$", re.M)


class Enough(Exception):
    """Stops a making that has run far enough for its test."""


def lineage(name):
    return json.loads((starter_directory(name) / "lineage.json").read_text())


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_the_shipped_weights_are_those_of_the_lineage(recipe):
    record = lineage(recipe.name)
    weights = (starter_directory(recipe.name) / "model.safetensors").read_bytes()
    assert hashlib.sha256(weights).hexdigest() == record["sha256"]
    assert record["recipe"] == asdict(recipe)


@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_a_pair_takes_at_most_five_megabytes(pair):
    files = [f for name in pair for f in starter_directory(name).rglob("*") if f.is_file()]
    assert sum(f.stat().st_size for f in files) <= 5_000_000


@pytest.mark.parametrize("name", STARTERS)
def test_a_starter_loads_with_the_standard_classes(name):
    model = AutoModelForCausalLM.from_pretrained(starter_directory(name))
    tokenizer = AutoTokenizer.from_pretrained(starter_directory(name))
    ids = tokenizer.apply_chat_template(
        root_prompt(make_problem(3, 3)[0]), add_generation_prompt=True, return_tensors="pt"
    )
    ids = ids if isinstance(ids, torch.Tensor) else ids["input_ids"]
    written = model.generate(ids, max_new_tokens=40, do_sample=False)
    assert tokenizer.decode(written[0, ids.shape[1] :]).startswith("def solve(x):")
    assert sum(p.numel() for p in model.parameters()) == lineage(name)["parameters"]


@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_the_two_of_a_pair_differ_in_size_and_in_strengths(pair):
    assert len({lineage(name)["parameters"] for name in pair}) == 2
    first, second = (lineage(name)["recipe"]["noise"] for name in pair)
    assert first["list"] < second["list"]
    assert first["text"] > second["text"]


def test_demonstrations_come_only_from_the_training_split():
    problems = {p.statement for p in GeneratedProblems(6).first(Split.TEST, 60)}
    stream = demonstrations(6, CLEAN)
    for _, row in zip(range(300), stream, strict=False):
        assert row.messages[0]["content"].splitlines()[0] not in problems


def test_the_demonstrations_of_oak_and_fern_are_what_they_were():
    digest = hashlib.sha256()
    for row in islice(demonstrations(1, RECIPES[0].noise), 300):
        digest.update((row.messages[0]["content"] + row.answer).encode())
    assert digest.hexdigest()[:16] == "1d36268469b63536"


@pytest.mark.large
def test_mixed_demonstrations_are_those_of_the_training_split_and_of_their_arguments():
    arguments = (6, NoiseLevels(0.2, 0.2, 0.2), 0.5, Repairs(0.3, 0.5, 0.5))
    first, again = (list(islice(mixed_demonstrations(*arguments), 100)) for _ in range(2))
    assert first == again
    assert first != list(islice(mixed_demonstrations(*arguments, start=500), 100))
    held_back = {
        problem.statement
        for split in (Split.VALIDATION, Split.TEST)
        for problem in GeneratedProblems(6, 0.5).first(split, 40)
    }
    assert not held_back & {row.messages[0]["content"].splitlines()[0] for row in first}


def test_a_demonstrated_repair_is_the_reading_that_its_feedback_shows():
    rows = list(islice(mixed_demonstrations(6, CLEAN, 1.0, Repairs(0.3, 0.5)), 300))
    repairs = [row for row in rows if "This program passed" in row.messages[0]["content"]]
    assert 0.4 < len(repairs) / len(rows) < 0.6
    readings = 0
    for row in repairs:
        prompt = row.messages[0]["content"]
        shown = FAILURE.findall(prompt)
        assert shown or "passed 3 of 3" in prompt, "nothing shows the reading"
        given, expected = [], []
        for argument, result in shown:
            given.append(function_of(row.answer)(literal_eval(argument)))
            expected.append(literal_eval(result))
        assert given == expected
        parent = prompt[prompt.index("def solve") : prompt.index("    return x\n")]
        answer = row.answer.removesuffix("    return x\n")
        same = [a == b for a, b in zip(parent.split("\n"), answer.split("\n"), strict=False)]
        readings += len(parent.split("\n")) == len(answer.split("\n")) and same.count(False) == 1
    assert readings / len(repairs) > 0.5, "most repairs change the reading alone"


@pytest.mark.large
def test_first_programs_guess_the_reading():
    guesses = defaultdict(list)
    for row in islice(mixed_demonstrations(6, CLEAN, 1.0, Repairs(0.3, 0.5)), 400):
        if "This program passed" not in row.messages[0]["content"]:
            guesses[row.messages[0]["content"]].append(row.answer)
    often = [answers for answers in guesses.values() if len(answers) >= 6]
    assert often and all(len(set(answers)) > 1 for answers in often)


def function_of(text):
    namespace = {}
    exec(compile(text, "program.py", "exec"), namespace)
    return namespace["solve"]


def test_a_clean_demonstration_is_the_reference():
    for index in range(200):
        problem, split = make_problem(14, index)
        assert program(steps_of(problem)) == problem.reference
        assert split is split_of(problem.tags)


SHORT_MAKING = {"20": 5.3722, "40": 4.07314}
"""Losses by step of a making of fern with 20 steps per phase. It covers the end of a cycle of
learning rates and the change of phases, which the first steps of a whole making never reach."""
SHORT_WEIGHTS = {"embedding": 15.08529, "norm": 0.77139, "mlp": 14.3658, "attn": 10.96479}
"""Norms of its final weights, by `norms_of`. The losses of the second phase hardly depend on its
learning rate: at 1.2 times the rate they are 2e-4 off, embeddings 1.2e-2 and norm weights 9e-3."""
SHORT_OFF = 1e-3
"""Largest relative difference between losses and norms of the same short making; with other
processor instructions (SSE4.2 instead of AVX2) it is 5e-6."""


@pytest.mark.large
@pytest.mark.slow
def test_a_short_making_goes_through_both_phases_and_is_a_function_of_the_seed(tmp_path):
    recipe = RECIPES[1]
    made = [short_making(tmp_path / str(n)) for n in range(2)]
    assert made[0] == made[1]
    assert made[0].losses == pytest.approx(SHORT_MAKING, rel=SHORT_OFF)
    assert made[0].norms == pytest.approx(SHORT_WEIGHTS, rel=SHORT_OFF)
    shipped = starter_directory(recipe.name)
    one, two = (tmp_path / str(n) for n in range(2))
    assert (one / "tokenizer.json").read_bytes() == (shipped / "tokenizer.json").read_bytes()
    weights = "model.safetensors"
    assert (one / weights).read_bytes() == (two / weights).read_bytes()
    assert (one / weights).read_bytes() != (shipped / weights).read_bytes()


@pytest.mark.large
@pytest.mark.slow
def test_a_learning_rate_that_is_a_fifth_too_high_shows_in_a_short_making(tmp_path):
    """The rate of the second phase, in which it shows least."""
    made = short_making(tmp_path / "fern", noisy=1.2)
    assert made.norms["embedding"] > SHORT_WEIGHTS["embedding"] * (1 + 5 * SHORT_OFF)
    assert made.norms["norm"] > SHORT_WEIGHTS["norm"] * (1 + 5 * SHORT_OFF)


@dataclass(frozen=True)
class Made:
    losses: dict[str, float]
    norms: dict[str, float]


def short_making(directory, **rates):
    """Result of 20 steps of each phase; `rates` are factors of a phase's learning rate."""
    few = {}
    for name in ("clean", "noisy"):
        phase = getattr(RECIPES[1], name)
        rate = phase.learning_rate * rates.get(name, 1.0)
        few[name] = replace(phase, steps=20, learning_rate=rate)
    losses = made_until(replace(RECIPES[1], **few), 40, directory)
    return Made(losses, norms_of(load_file(directory / "model.safetensors")))


def norms_of(weights):
    """Euclidean norms by the part of a model; for its norm weights, of the distance from their
    initial value."""
    squares = dict.fromkeys(SHORT_WEIGHTS, 0.0)
    for name, weight in weights.items():
        part = next(part for part in ("norm", "embed", "mlp", "attn") if part in name)
        moved = weight.double() - (1.0 if part == "norm" else 0.0)
        squares["embedding" if part == "embed" else part] += float((moved**2).sum())
    return {part: square**0.5 for part, square in squares.items()}


@pytest.mark.large
@pytest.mark.slow
@pytest.mark.parametrize("recipe", large_but(RECIPES[:1], RECIPES), ids=lambda recipe: recipe.name)
def test_a_remake_goes_the_way_of_the_shipped(recipe, tmp_path):
    """A whole making takes minutes, so its losses are recorded in the lineage."""
    seen = made_until(recipe, REMADE_STEPS, tmp_path / recipe.name)
    noted = lineage(recipe.name)["losses"]
    assert seen == pytest.approx({step: noted[step] for step in seen}, rel=MOST_OFF)
    assert len(seen) == REMADE_STEPS / NOTED_STEPS


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe", large_but([RECIPES[1]], RECIPES[:2]), ids=lambda recipe: recipe.name
)
def test_the_shipped_doubt_what_their_last_phase_made_them_doubt(recipe):
    """Checks the final weights of a whole making: on demonstrations of the last phase their loss is
    the lineage's last; on right ones it is far from the first phase's."""
    losses = lineage(recipe.name)["losses"]
    assert loss_of_shipped(recipe, recipe.noise) == pytest.approx(losses["2200"], rel=0.05)
    assert loss_of_shipped(recipe, CLEAN) > 2 * losses["2000"]


@pytest.mark.large
@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES[2:], ids=lambda recipe: recipe.name)
def test_the_shipped_of_the_mixture_doubt_so_too(recipe):
    losses, clean = lineage(recipe.name)["losses"], recipe.clean.steps
    # One record is an average over some 20 batches, of which those of long rows are nearly right.
    end = clean + recipe.noisy.steps
    last = mean(losses[str(end - NOTED_STEPS * back)] for back in range(5))
    assert loss_of_batches(recipe, recipe.noise) == pytest.approx(last, rel=0.08)
    assert loss_of_batches(recipe, CLEAN) > losses[str(clean)] + DOUBT


def made_until(recipe, step, directory):
    """The losses that a making records up to this step, where it stops."""
    seen, threads = {}, torch.get_num_threads()

    def look(_name, at, steps, loss):
        seen[str(at)] = loss
        if at == step < steps:
            raise Enough

    try:
        make_starter(recipe, lineage(recipe.name)["seed"], directory, look)
    except Enough:
        pass
    finally:
        torch.set_num_threads(threads)
    return seen


def loss_of_shipped(recipe, noise, rows=200):
    """Mean loss of the answers' tokens, on demonstrations that no making used."""
    policy = load_policy(str(starter_directory(recipe.name)))
    stream = demonstrations(lineage(recipe.name)["seed"], noise, 2 * NOISY_START)
    encoded = [encode(policy.tokenizer, row) for row in islice(stream, rows)]
    sums, tokens = 0.0, 0
    for ids_NL, labels_NL in (
        pad(encoded[at : at + 25], policy.pad_id) for at in range(0, rows, 25)
    ):
        mask_NL = (ids_NL != policy.pad_id).long()
        with torch.no_grad():
            loss = policy.model(input_ids=ids_NL, attention_mask=mask_NL, labels=labels_NL).loss
        count = int((labels_NL[:, 1:] != IGNORED).sum())
        sums, tokens = sums + loss.item() * count, tokens + count
    return sums / tokens


def loss_of_batches(recipe, noise, batches=24):
    """The same as a mean over batches, as a making records it: where repairs are less noisy than
    first programs, it matters that long rows fill more batches."""
    policy = load_policy(str(starter_directory(recipe.name)))
    torch.manual_seed(0)
    stream = recipe.demonstrations(lineage(recipe.name)["seed"], noise, 2 * NOISY_START)
    rows = batches_of(policy.tokenizer, stream, recipe.noisy.batch_tokens)
    sums = 0.0
    for ids_NL, labels_NL in islice(rows, batches):
        mask_NL = (ids_NL != policy.pad_id).long()
        with torch.no_grad():
            loss = policy.model(input_ids=ids_NL, attention_mask=mask_NL, labels=labels_NL).loss
        sums += loss.item()
    return sums / batches


@pytest.mark.slow
@pytest.mark.parametrize("name", large_but(["fern"], STARTERS))
def test_a_starter_is_often_wrong_and_better_at_low_temperature(name):
    assert 0.1 < (drawn := pass_at_1(starter_directory(name))) < OFTEN_WRONG[name]
    assert pass_at_1(starter_directory(name), temperature=0.2) > drawn + 0.1


@cache
def unseen_problems():
    return GeneratedProblems(0).first(Split.VALIDATION, PROBLEMS)


def pass_at_1(directory, temperature=1.0):
    policy, problems = load_policy(str(directory)), unseen_problems()
    prompts = [
        policy.tokenizer.apply_chat_template(
            root_prompt(p), add_generation_prompt=True, return_dict=False
        )
        for p in problems
    ]
    generator = TorchGenerator(policy.model, policy.end_ids, policy.pad_id, seed=1)
    sampling = SamplingConfig(temperature=temperature, max_new_tokens=40)
    texts = [
        policy.tokenizer.decode(g.output_ids, skip_special_tokens=True)
        for g in generator.generate(prompts, sampling, 0)
    ]
    with Sandbox(SandboxConfig()) as sandbox:
        pairs = [
            (p, extract_program(t, p.entry_point)) for p, t in zip(problems, texts, strict=True)
        ]
        return sum(v.passed for v in verify(sandbox, pairs)) / PROBLEMS
