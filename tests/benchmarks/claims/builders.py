"""Builders of claims and of results, for the tests of the claims."""

from dataclasses import asdict

from benchmarks.claims.catalogue import BY_NAME
from benchmarks.claims.cell import Cell, CellResult, recipe_hash, write_result

TEAM, SHAPING, SAMPLES = BY_NAME["team"], BY_NAME["shaping"], BY_NAME["tree-samples"]
OPEN, SEARCH = BY_NAME["underspecified"], BY_NAME["thompson-search"]
BUDGET = {
    "nodes": 5120, "learned_tokens": 30000, "parameters": 985760, "tree_answers": 800,
    "samples_answers": 800, "single_answers": 1600,
}  # fmt: skip


def result_of(claim, arm, seed, plan=None, figures=None, **budget):
    """A result as the runner writes it, with these figures."""
    cell = Cell(claim, claim.arm(arm), seed, plan or claim.plan)
    return CellResult(
        claim=claim.name,
        arm=arm,
        seed=seed,
        digest=cell.digest,
        plan=asdict(cell.plan),
        recipe=cell.arm.recipe,
        recipe_version=cell.config.recipe_version,
        recipe_sha256=recipe_hash(cell.arm.recipe),
        config=cell.config.model_dump(mode="json"),
        evaluation=cell.evaluation(),
        grove="0.2.0",
        commit="0123456789",
        versions={"torch": "2.13.0"},
        machine="a processor, 2 cores",
        finished_at="2026-01-01 00:00:00",
        figures=figures or {},
        budget=BUDGET | budget,
        seconds={"training": 30.0, "evaluation": 3.0},
    )


def write_arms(folder, claim, values, plan=None, **budgets):
    """Writes a result for each arm and seed; `values` are those of the primary figure, by arm."""
    for name, by_seed in values.items():
        figure = claim.arm(name).reads.get(claim.primary, claim.primary)
        for seed, value in enumerate(by_seed, start=1):
            one = result_of(
                claim, name, seed, plan or claim.plan, {figure: value}, **budgets.get(name, {})
            )
            write_result(folder / claim.name / f"{name}-{seed}.json", one)
