"""PACS: linear in log pi, with the slope that the minibatch gives it, which is held."""


def objective(problem, settings, outputs):
    moves_N = ((outputs[0] - problem.start) * problem.rows.mask_NL).sum(-1)
    own = (problem.rows.columns["slope"] * moves_N).sum().item() / len(moves_N)
    return problem.loss(settings, outputs).loss.item() + own
