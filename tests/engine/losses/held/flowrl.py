"""FlowRL: the clipped ratio of a sequence weighs its squared error, and is held."""

from tests.engine.losses import held


def objective(problem, settings, outputs):
    rows = problem.rows
    gaps = ((problem.start - rows.old_logprobs_NL) * rows.mask_NL).sum(-1, keepdim=True)
    ratios = held.clipped_ratio(gaps, settings)
    weights = problem.corrections(settings) * ratios * rows.mask_NL
    lengths_N = rows.mask_NL.sum(-1)
    drift_NL = (outputs[0] - rows.reference_logprobs_NL) * rows.mask_NL
    means_N = drift_NL.sum(-1) / lengths_N
    targets_N = settings.options("policy").beta * rows.advantages_NL[:, 0]
    errors_N = rows.heads["log_z"] + means_N - targets_N
    terms_N = (weights * errors_N.square()[:, None]).sum(-1) / lengths_N
    return held.of_the_rest(problem, settings, outputs) + terms_N.mean().item()
