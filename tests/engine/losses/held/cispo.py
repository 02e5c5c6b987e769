"""CISPO: the clipped ratio is a weight of the log-probability, and held."""

from tests.engine.losses import held


def objective(problem, settings, outputs):
    rows = problem.rows
    ratios = held.clipped_ratio(problem.start - rows.old_logprobs_NL, settings)
    weights = problem.corrections(settings) * ratios * rows.mask_NL
    terms = -weights * rows.advantages_NL * outputs[0]
    rest = held.of_the_rest(problem, settings, outputs)
    return rest + terms.sum().item() / rows.mask_NL.sum().item()
