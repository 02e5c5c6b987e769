"""Random cases of each kind, with expected values computed here from the definitions.

Plain Python over lists, with sums as in the formulas: no code of the engine, no arrays, no running
sums. Draws of statistical kinds come from numpy's own distributions.
"""

import itertools
import math
import random
from itertools import combinations, pairwise
from statistics import mean, stdev
from zlib import crc32

import numpy as np
import pytest

from engine.golden.cases import run_case
from engine.golden.kinds import KINDS

CASES = 12


def rewards(luck, count, binary=0.5):
    if luck.random() < binary:
        return [float(luck.random() < 0.5) for _ in range(count)]
    return [round(luck.random(), 3) for _ in range(count)]


def belief(family, seen, prior=None):
    if family == "beta":
        p = {"a": 0.5, "b": 0.5, **(prior or {})}
        return {"a": p["a"] + sum(seen), "b": p["b"] + sum(1 - r for r in seen)}
    p = {"m": 0.0, "kappa": 1.0, "nu": 1.0, "tau_square": 0.1, **(prior or {})}
    n = len(seen)
    average = mean(seen) if seen else 0.0
    squares = sum((r - average) ** 2 for r in seen)
    kappa, nu = p["kappa"] + n, p["nu"] + n
    shift = n * p["kappa"] * (p["m"] - average) ** 2 / kappa
    return {
        "m": (p["kappa"] * p["m"] + sum(seen)) / kappa,
        "kappa": kappa,
        "nu": nu,
        "tau_square": (p["nu"] * p["tau_square"] + squares + shift) / nu,
    }


def draws(family, seen, rng, count=40_000):
    now = belief(family, seen)
    if family == "beta":
        return rng.beta(now["a"], now["b"], count)
    sigma = np.sqrt(now["nu"] * now["tau_square"] / rng.chisquare(now["nu"], count))
    return rng.normal(now["m"], sigma / math.sqrt(now["kappa"]))


def prior(luck):
    family, p = luck.choice(["beta", "gaussian"]), round(luck.uniform(0.05, 0.95), 2)
    expected = {"a": p, "b": 1 - p} if family == "beta" else {**belief(family, []), "m": p}
    return {"dist_type": family, "reward_average_prior": p}, expected


def posterior(luck):
    seen, a = rewards(luck, luck.randint(0, 30)), round(luck.uniform(0.1, 3), 2)
    if luck.random() < 0.5:
        p = {"a": a, "b": round(luck.uniform(0.1, 3), 2)}
        return {"prior": p, "obs": seen}, belief("beta", seen, p)
    p = {"m": round(luck.random(), 2), "kappa": a, "nu": a + 1, "tau_square": 0.05 + a}
    return {"prior": p, "obs": seen}, belief("gaussian", seen, p)


def backprop(luck):
    """Every node's lists of scores, filled by the update rule (docs/algorithm.md, section 2)."""
    family, strategy = (
        luck.choice(["beta", "gaussian"]),
        luck.choice(["stack", "multiarm_bandit_thompson"]),
    )
    agents = ["0", "1", "2"][: luck.randint(1, 3)]
    script = [
        [luck.randint(-1, node - 1), luck.choice(agents), score]
        for node, score in enumerate(rewards(luck, luck.randint(1, 14)))
    ]
    above = {node: (parent, agent) for node, (parent, agent, _) in enumerate(script)}
    pools = agents if strategy == "stack" else ["shared"]
    seen = {}

    def tell(node, arm, score):
        seen.setdefault((node, arm), []).append(score)

    for node, (parent, agent, score) in enumerate(script):
        pool = agent if strategy == "stack" else "shared"
        for arm in (("GEN", pool), ("child", node), ("action", agent)):
            tell(parent, arm, score)
        below = parent
        while below != -1:
            upper, writer = above[below]
            pool = writer if strategy == "stack" else "shared"
            for arm in (("CONT", pool), ("child", below), ("action", writer)):
                tell(upper, arm, score)
            below = upper
    states = {}
    for node in range(-1, len(script)):
        children = [child for child in above if above[child][0] == node]
        state = {"children_expand_idx": children}
        for pool in pools:
            mine = [c for c in children if pool in ("shared", above[c][1])]
            for arm in ("GEN", "CONT"):
                state[f"{arm}[{pool}]"] = belief(family, seen.get((node, (arm, pool)), []))
            state[f"child[{pool}]"] = {
                str(children.index(c)): belief(family, seen[node, ("child", c)]) for c in mine
            }
        state["action_probas"] = {
            agent: belief(family, seen.get((node, ("action", agent)), [])) for agent in agents
        }
        states[str(node)] = state
    store = {agent: [s for _, a, s in script if a == agent] for agent in agents}
    inputs = {"dist_type": family, "strategy": strategy, "agents": agents, "script": script}
    return inputs, {"states": states, "all_rewards_store": store}


def p_widen(luck):
    gen, cont = rewards(luck, luck.randint(0, 6)), rewards(luck, luck.randint(0, 6))
    rng = np.random.default_rng(luck.randrange(2**32))
    expected = {
        f"p_gen_{family}": float(np.mean(draws(family, gen, rng) > draws(family, cont, rng)))
        for family in ("beta", "gaussian")
    }
    return {"gen_obs": gen, "cont_obs": cont}, expected


def p_agent(luck):
    family = luck.choice(["beta", "gaussian"])
    store = {str(agent): rewards(luck, luck.randint(0, 6)) for agent in range(luck.randint(2, 3))}
    rng = np.random.default_rng(luck.randrange(2**32))
    best = np.argmax([draws(family, seen, rng) for seen in store.values()], axis=0)
    expected = {f"posterior_{agent}": belief(family, seen) for agent, seen in store.items()}
    expected |= {f"p_agent{agent}": float(np.mean(best == int(agent))) for agent in store}
    return {"store": store, "dist_type": family}, expected


def ucb_agent(luck):
    store = {str(agent): rewards(luck, luck.randint(0, 5)) for agent in range(luck.randint(1, 4))}
    total = sum(map(len, store.values()))
    scores = {
        agent: mean(seen) + math.sqrt(2) * math.sqrt(math.log(total) / len(seen)) if seen else None
        for agent, seen in store.items()
    }
    unseen = [agent for agent, score in scores.items() if score is None]
    return {"store": store}, {
        "scores": scores,
        "chosen": unseen[0] if unseen else max(scores, key=scores.get),
    }


def rollout_budget(luck):
    """Exhaustion; every problem is sometimes solved, so that nothing is left to hand out."""
    low, high = luck.randint(1, 3), luck.randint(3, 6)
    rates = [luck.uniform(0.05, 0.95) for _ in range(luck.randint(1, 4))]
    budget = luck.randint(low * len(rates), high * len(rates) + 2)

    def value(counts):
        pairs = zip(rates, counts, strict=True)
        return sum((1 - p**n - (1 - p) ** n) * p * (1 - p) ** 2 for p, n in pairs)

    counts = itertools.product(range(low, high + 1), repeat=len(rates))
    best = max((one for one in counts if sum(one) <= budget), key=value)
    inputs = {"pass_rates": rates, "budget": budget, "low": low, "high": high}
    return inputs, {"budgets": list(best), "value": value(best)}


def rae(luck):
    decay, roles = luck.random(), [str(role) for role in range(luck.randint(1, 3))]
    episodes = [
        {"game": luck.choice("xy"), "returns": {role: luck.uniform(-1, 1) for role in roles}}
        for _ in range(luck.randint(1, 8))
    ]
    advantages, returned = [], {}
    for episode in episodes:
        advantages.append({})
        for role, reward in episode["returns"].items():
            earlier = returned.setdefault(f"{episode['game']}/{role}", [])
            advantages[-1][role] = reward - weighted(earlier, decay)
            earlier.append(reward)
    expected = {role: weighted(rewards, decay) for role, rewards in returned.items()}
    inputs = {"decay": decay, "episodes": episodes}
    return inputs, {"advantages": advantages, "baselines": expected}


def weighted(rewards, decay):
    """The moving average in closed form: the newest weighs most."""
    return sum((1 - decay) * decay**age * r for age, r in enumerate(reversed(rewards)))


def tree_shaping(luck):
    count, gamma, share = luck.randint(1, 12), luck.uniform(0, 2), luck.random()
    parents, raw = [luck.randint(-1, v - 1) for v in range(count)], rewards(luck, count)
    shaped = []
    for v, parent in enumerate(parents):
        siblings = [raw[u] for u in range(count) if u != v and parents[u] == parent]
        if parent == -1:
            base = mean(siblings) if siblings else raw[v]
        elif siblings:
            base = (1 - share) * raw[parent] + share * mean(siblings)
        else:
            base = raw[parent]
        shaped.append(raw[v] + gamma * (raw[v] - base))
    return {"rewards": raw, "parent": parents, "gamma": gamma, "lambda": share}, shaped


def normal(values, epsilon):
    if len(values) < 2 or len(set(values)) == 1:
        return [0.0] * len(values)
    return [(value - mean(values)) / (stdev(values) + epsilon) for value in values]


def advantage(luck):
    """Ragged trees, given by the tree id of each node, in shuffled order."""
    name = luck.choice(["mars2", "group_norm", "grpo", "dr_grpo", "rloo", "reinforce_pp"])
    trees = [luck.choice("xyz") for _ in range(luck.randint(1, 12))]
    raw, lengths = rewards(luck, len(trees)), [luck.randint(1, 9) for _ in trees]
    expected = [0.0] * len(trees)
    for tree in set(trees):
        mine = [place for place, other in enumerate(trees) if other == tree]
        group = [raw[place] for place in mine]
        if name == "dr_grpo":
            values = [r - mean(group) for r in group]
        elif name == "rloo":
            values = [r - (sum(group) - r) / (len(group) - 1) if group[1:] else 0.0 for r in group]
        else:
            values = normal(group, 1e-6 if name == "grpo" else 1e-9)
        for place, value in zip(mine, values, strict=True):
            expected[place] = value
    if name == "reinforce_pp":
        tokens = [r for r, n in zip(raw, lengths, strict=True) for _ in range(n)]
        spread = math.sqrt(max(sum((t - mean(tokens)) ** 2 for t in tokens) / len(tokens), 1e-8))
        expected = [(r - mean(tokens)) / spread for r in raw]
    return {"rewards": raw, "tree_ids": trees, "estimator": name, "lengths": lengths}, expected


def per_agent(luck):
    agents = [luck.choice("ab") for _ in range(luck.randint(1, 8))]
    raw, expected = rewards(luck, len(agents)), [0.0] * len(agents)
    for agent in set(agents):
        mine = [place for place, other in enumerate(agents) if other == agent]
        values = normal([raw[place] for place in mine], 1e-6)
        for place, value in zip(mine, values, strict=True):
            expected[place] = value
    return {"rewards": raw, "agents": agents, "estimator": "per_agent"}, expected


def cosines(features):
    """Cosines of hashed counts of features: a place and a sign for each by its CRC-32."""

    def vector(of_one):
        places = [0] * 256
        for feature in of_one:
            bits = crc32(feature.encode())
            places[bits % 256] += 1 if bits >= 1 << 31 else -1
        return places

    def cosine(one, other):
        length = math.sqrt(sum(x * x for x in one) * sum(x * x for x in other))
        return sum(x * y for x, y in zip(one, other, strict=True)) / length if length else 0.0

    vectors = [vector(of_one) for of_one in features]
    return [[cosine(one, other) for other in vectors] for one in vectors]


def program_similarity(luck):
    """Assignments of a sum or product, whose syntax is written out, and texts that do not parse."""
    programs, features = [], []
    for _ in range(luck.randint(1, 6)):
        if luck.random() < 0.5:
            words = [luck.choice(["if", "(", "x", "total"]) for _ in range(luck.randint(0, 9))]
            words = [*words, "("] if words else []  # never closed
            programs.append(" ".join(words))
            features.append([*words, *(f"{one} {two}" for one, two in pairwise(words))])
            continue
        kind, sign = luck.choice([("Add", "+"), ("Mult", "*")])
        bound, free, number = luck.choice("abc"), luck.choice("xyz"), luck.randint(0, 3)
        programs.append(f"{bound} = {free} {sign} {number}  # {luck.random()}")
        features.append([
            "Module", "Module > Assign", "Assign", "Assign > Name", "Assign > BinOp", "Name '_0'",
            "BinOp", "BinOp > Name", f"BinOp > {kind}", "BinOp > Constant", f"Name '{free}'", kind,
            f"Constant 0x{number}",
        ])  # fmt: skip
    return {"programs": programs}, cosines(features)


def overlong(luck):
    limit, factor = luck.randint(10, 40), luck.choice([0.5, 1, 2])
    buffer = luck.randint(1, 9)
    lengths = [luck.randint(1, limit) for _ in range(luck.randint(2, 8))]
    raw = rewards(luck, len(lengths))
    cut = [
        r - (min(n - (limit - buffer), buffer) / buffer * factor if n > limit - buffer else 0)
        for r, n in zip(raw, lengths, strict=True)
    ]
    inputs = {
        "rewards": raw, "lengths": lengths, "generate_max_len": limit,
        "overlong_buffer_len": buffer, "factor": factor,
    }  # fmt: skip
    return inputs, {"penalised_rewards": cut, "advantages": normal(cut, 1e-9)}


def dynamic_filter(luck):
    trees = [rewards(luck, luck.randint(1, 5), binary=0.9) for _ in range(5)]
    low, high = luck.choice([(0, 1), (0.2, 0.8)])
    kept = [low + 1e-6 < mean(tree) < high - 1e-6 for tree in trees]
    return {"trees": trees, "range": [low, high]}, kept


def pass_at_k(luck):
    """Over all subsets of k of the n answers."""
    cases, expected = [], []
    for _ in range(4):
        n = luck.randint(1, 9)
        right, k = luck.randint(0, n), luck.randint(1, n)
        taken = list(combinations([i < right for i in range(n)], k))
        cases.append([n, right, k])
        expected.append(sum(map(any, taken)) / len(taken))
    return {"cases": cases}, expected


def tree_select(luck):
    count = luck.randint(1, 8)
    public, private = rewards(luck, count, binary=0.8), rewards(luck, count, binary=1)
    top = luck.randint(1, 3)
    order = sorted(range(count), key=lambda v: (public[v], v))[::-1]
    perfect = [private[v] for v in range(count) if public[v] == 1]
    return {"public": public, "private": private, "top_k": top}, {
        "pass1_tree": max(private[v] for v in order[:top]),
        "pass_n": max(private),
        "mean_private_over_public_perfect": mean(perfect) if perfect else 0.0,
    }


def diversity(luck):
    """DA@K over all subsets of K of the answers."""
    sizes = [luck.randint(1, 3) for _ in range(luck.randint(1, 4))]
    answers = [cluster for cluster, size in enumerate(sizes) for _ in range(size)]
    distinct = [
        mean(len(set(taken)) for taken in combinations(answers, k))
        for k in range(1, len(answers) + 1)
    ]
    kmax, shares = luck.randint(1, len(answers)), [size / len(answers) for size in sizes]
    area = sum((a + b) / 2 for a, b in pairwise(distinct[:kmax]))
    return {"cluster_sizes": sizes, "k": list(range(1, len(answers) + 1)), "kmax": kmax}, {
        "DA": distinct,
        "EA": math.prod(share**-share for share in shares),
        "NAUADC": area / (kmax - 1) if kmax > 1 else distinct[0],
    }


def depth_weight(luck):
    depth, rho, gen = luck.randint(0, 6), luck.uniform(0.95, 1), luck.random()
    counts = [luck.randint(0, 12) for _ in range(3)]
    return {"depth": depth, "rho": rho, "c": counts, "r_gen": gen}, [
        gen * (0.98 * rho**depth) ** c for c in counts
    ]


def token_rows(luck):
    """Ragged rows with prompts masked out, and every row with an unmasked token."""
    lengths = [luck.randint(1, 5) for _ in range(luck.randint(1, 4))]
    masks = [[luck.randint(0, 1) for _ in range(n - 1)] + [1] for n in lengths]

    def near(rows, spread):
        return [[round(x + luck.gauss(0, spread), 4) for x in row] for row in rows]

    old = [[round(-luck.expovariate(1), 4) for _ in range(n)] for n in lengths]
    return {
        "log_probs": near(old, 0.3), "old_log_probs": old, "rollout_log_probs": near(old, 0.4),
        "ref_log_probs": near(old, 0.5), "mask": masks,
    }  # fmt: skip


def seen(rows, name, v, other):
    """Differences of two log-probs at the unmasked tokens of row v."""
    triples = zip(rows[name][v], rows[other][v], rows["mask"][v], strict=True)
    return [a - b for a, b, m in triples if m]


def weights_of(rows, v, level, mode, threshold, veto):
    """One weight per unmasked token of row v."""
    gaps = seen(rows, "old_log_probs", v, "rollout_log_probs")
    payload = {"token": gaps, "sequence": [sum(gaps)] * len(gaps)}
    payload["geometric"] = [mean(gaps)] * len(gaps)
    weights = [math.exp(gap) for gap in payload[level]]
    if mode == "truncate":
        weights = [min(w, threshold) for w in weights]
    else:
        weights = [w if 1 / threshold <= w <= threshold else 0.0 for w in weights]
    vetoed = veto is not None and any(math.exp(gap) < veto for gap in gaps)
    return [0.0] * len(gaps) if vetoed else weights


def corrections(luck):
    return {
        "level": luck.choice(["token", "sequence", "geometric"]),
        "mode": luck.choice(["truncate", "mask"]),
        "veto": luck.choice([None, 0.5]),
    }


def is_weights(luck):
    rows, options = token_rows(luck), {**corrections(luck), "threshold": luck.choice([1.2, 2.0])}
    names = ("old_log_probs", "rollout_log_probs")
    # Only unmasked tokens have a defined weight: here all are unmasked.
    rows["mask"] = [[1] * len(row) for row in rows["mask"]]
    expected = [weights_of(rows, v, **options) for v in range(len(rows["mask"]))]
    return {**{name: rows[name] for name in names}, "mask": rows["mask"], **options}, expected


def gspo_ratio(luck):
    rows = token_rows(luck)
    expected = [
        math.exp(mean(seen(rows, "log_probs", v, "old_log_probs")))
        for v in range(len(rows["mask"]))
    ]
    return {name: rows[name] for name in ("log_probs", "old_log_probs", "mask")}, expected


def kl_term(gap, estimator):
    value = {"k1": gap, "k2": gap**2 / 2, "k3": math.exp(-gap) - 1 + gap}[estimator]
    return max(-10.0, min(10.0, value))


def kl(luck):
    rows, estimator = token_rows(luck), luck.choice(["k1", "k2", "k3"])
    rows["mask"] = [[1] * len(row) for row in rows["mask"]]
    per_token = [
        [kl_term(gap, estimator) for gap in seen(rows, "log_probs", v, "ref_log_probs")]
        for v in range(len(rows["mask"]))
    ]
    inputs = {name: rows[name] for name in ("log_probs", "ref_log_probs", "mask")}
    flat = [value for row in per_token for value in row]
    return {**inputs, "estimator": estimator}, {
        "per_token": per_token,
        "masked_mean_all_tokens": mean(flat),
    }


def loss_of(rows, options):
    """The policy loss: per token, then its mean."""
    low, high = options["clip"]
    per_row = []
    for v in range(len(rows["mask"])):
        gain = options["advantages"][v]
        gaps = seen(rows, "log_probs", v, "old_log_probs")
        written = [x for x, m in zip(rows["log_probs"][v], rows["mask"][v], strict=True) if m]
        if options["loss"] == "gspo":
            gaps = [mean(gaps)] * len(gaps)
        terms = []
        for gap, logprob in zip(gaps, written, strict=True):
            ratio = math.exp(gap)
            if options["loss"] == "cispo":
                terms.append(-max(1 - low, min(1 + high, ratio)) * gain * logprob)
                continue
            term = min(ratio * gain, max(1 - low, min(1 + high, ratio)) * gain)
            if gain < 0 and options["dual_clip"] is not None:
                term = max(term, options["dual_clip"] * gain)
            terms.append(-term)
        if options["tis_threshold"] is not None:
            results = {key: options[key] for key in ("level", "mode", "veto")}
            weights = weights_of(rows, v, threshold=options["tis_threshold"], **results)
            terms = [w * t for w, t in zip(weights, terms, strict=True)]
        per_row.append(terms)
    kind = options["aggregation"]
    if kind == "token_mean":
        return mean(term for terms in per_row for term in terms)
    if kind == "sequence_mean":
        return mean(mean(terms) for terms in per_row)
    return mean(sum(terms) / options["aggregation_tokens"] for terms in per_row)


def loss_inputs(luck, *losses):
    rows = token_rows(luck)
    threshold, loss = luck.choice([None, 1.3, 2.0]), luck.choice(losses)
    options = {
        "loss": loss,
        "clip": luck.choice([[0.2, 0.2], [0.2, 0.28], [3e-4, 4e-4]]),
        "advantages": [round(luck.gauss(0, 1), 3) for _ in rows["mask"]],
        "dual_clip": None if loss == "cispo" else luck.choice([None, 1.2, 3.0]),
        "aggregation": luck.choice(["token_mean", "sequence_mean", "sequence_sum"]),
        "aggregation_tokens": 64,
        "tis_threshold": threshold,
        **corrections(luck),
    }
    return rows, options if threshold else {**options, "veto": None}


def policy_loss(luck):
    """Its gradient by central differences (not cispo, which stops one)."""
    rows, options = loss_inputs(luck, "gspo", "ppo")
    names = ("log_probs", "old_log_probs", "rollout_log_probs", "mask")
    step, gradient = 1e-6, []
    for v, row in enumerate(rows["log_probs"]):
        gradient.append([])
        for t, value in enumerate(row):
            sides = []
            for moved in (value + step, value - step):
                changed = [*row[:t], moved, *row[t + 1 :]]
                logprobs = [*rows["log_probs"][:v], changed, *rows["log_probs"][v + 1 :]]
                sides.append(loss_of({**rows, "log_probs": logprobs}, options))
            gradient[-1].append((sides[0] - sides[1]) / (2 * step))
    return {**{name: rows[name] for name in names}, **options}, {
        "loss": loss_of(rows, options),
        "grad_log_probs": gradient,
    }


def total_loss(luck):
    rows, options = loss_inputs(luck, "gspo", "ppo", "cispo")
    estimator, coefficient = luck.choice(["k1", "k2", "k3"]), luck.choice([0.0, 1e-3, 0.1])
    gaps = [
        gap for v in range(len(rows["mask"])) for gap in seen(rows, "log_probs", v, "ref_log_probs")
    ]
    penalty = coefficient * mean(kl_term(gap, estimator) for gap in gaps)
    inputs = {**rows, **options, "kl_coef": coefficient, "estimator": estimator}
    return inputs, loss_of(rows, options) + penalty


def prefix_values(luck):
    """TEMPO, by the definition of V: over all nodes of one prompt with the same prefix."""
    trees, tokens, prompts = [], [], []
    for tree in range(luck.randint(1, 3)):
        for _ in range(luck.randint(1, 6)):
            trees.append(tree)
            tokens.append([luck.randint(1, 2) for _ in range(luck.randint(1, 4))])
            prompts.append(luck.choice(["oak:0", "oak:1", "fern:0"]))
    own = rewards(luck, len(trees))

    def value(v, length):
        through = [
            own[u]
            for u in range(len(own))
            if (trees[u], prompts[u]) == (trees[v], prompts[v])
            and tokens[u][:length] == tokens[v][:length]
            and len(tokens[u]) >= length
        ]
        return mean(through)

    expected = []
    for v, tree in enumerate(trees):
        group = [r for r, t in zip(own, trees, strict=True) if t == tree]
        if len(set(group)) < 2:
            expected.append([0.0] * len(tokens[v]))
            continue
        base, spread = own[v] - mean(group), stdev(group) + 1e-6
        steps = [value(v, t + 1) - value(v, t) for t in range(len(tokens[v]))]
        expected.append([(base + step) / spread for step in steps])
    return {
        "rewards": own, "tree_ids": trees, "tokens": tokens, "prefixes": prompts, "method": "tempo",
    }, expected  # fmt: skip


def by_entropy(luck):
    trees = [tree for tree in range(3) for _ in range(luck.randint(1, 4))]
    scores = {tree: luck.choice([[1.0], [0.0], [0.0, 1.0], [0.5]]) for tree in range(3)}
    own = [luck.choice(scores[tree]) for tree in trees]
    entropies = [[round(luck.random(), 3) for _ in range(luck.randint(1, 4))] for _ in trees]
    alpha, expected = luck.choice([0.1, 0.5]), []
    for r, tree, row in zip(own, trees, entropies, strict=True):
        group = [other for other, t in zip(own, trees, strict=True) if t == tree]
        if set(group) == {1.0}:
            expected.append([alpha * h for h in row])
        elif set(group) == {0.0}:
            expected.append([-alpha * (max(row) - h) for h in row])
        else:
            plain = (r - mean(group)) / (stdev(group) + 1e-6) if len(set(group)) > 1 else 0.0
            expected.append([plain] * len(row))
    return {
        "scores": own, "tree_ids": trees, "entropies": entropies, "alpha": alpha,
        "method": "rl_zvp",
    }, expected  # fmt: skip


def method_loss(luck):
    """PACS, its gradient by central differences."""
    rows = token_rows(luck)
    groups = [luck.choice([1, 1, 1, 1, 2]) for _ in rows["mask"]]
    labels = [float(luck.random() < 0.4) for _ in groups]
    options = {"beta": luck.choice([0.5, 1.0]), "balance": luck.random() < 0.8}

    def contrasts(logprobs):
        moved = {**rows, "log_probs": logprobs}
        drift = [
            options["beta"] * sum(seen(moved, "log_probs", v, "old_log_probs"))
            for v in range(len(groups))
        ]
        others = [
            [drift[u] for u in range(len(groups)) if u != v and groups[u] == groups[v]]
            for v in range(len(groups))
        ]
        return [d - mean(rest) if rest else 0.0 for d, rest in zip(drift, others, strict=True)]

    def loss(logprobs):
        terms = []
        for v, psi in enumerate(contrasts(logprobs)):
            alike = [labels[u] for u in range(len(groups)) if groups[u] == groups[v]]
            if len(alike) < 2:
                continue
            weight = 1.0
            if options["balance"] and len(set(alike)) > 1:
                weight = len(alike) / (2 * alike.count(labels[v]))
            chance = 1 / (1 + math.exp(-psi))
            terms.append(-weight * math.log(chance if labels[v] else 1 - chance))
        return mean(terms) if terms else 0.0

    step, gradient = 1e-6, []
    for v, row in enumerate(rows["log_probs"]):
        gradient.append([])
        for t, value in enumerate(row):
            sides = []
            for moved in (value + step, value - step):
                changed = [*row[:t], moved, *row[t + 1 :]]
                sides.append(loss([*rows["log_probs"][:v], changed, *rows["log_probs"][v + 1 :]]))
            gradient[-1].append((sides[0] - sides[1]) / (2 * step))
    names = ("log_probs", "old_log_probs", "mask")
    return {
        **{name: rows[name] for name in names}, **options, "groups": groups, "scores": labels,
        "method": "pacs",
    }, {
        "loss": loss(rows["log_probs"]),
        "psi": contrasts(rows["log_probs"]),
        "grad_log_probs": gradient,
    }  # fmt: skip


def flow_loss(luck):
    """FlowRL, its gradient by its derivative: the weight is held."""
    rows = token_rows(luck)
    count, beta, (low, high) = len(rows["mask"]), luck.choice([1.5, 15.0]), (0.2, 0.28)
    advantages, log_z = ([round(luck.gauss(0, 1), 3) for _ in range(count)] for _ in range(2))
    losses, slopes, by_token = [], [], []
    for v, mask in enumerate(rows["mask"]):
        gap = log_z[v] + mean(seen(rows, "log_probs", v, "ref_log_probs")) - beta * advantages[v]
        weight = math.exp(sum(seen(rows, "log_probs", v, "old_log_probs")))
        weight = max(1 - low, min(1 + high, weight))
        losses.append(weight * gap**2)
        slopes.append(2 * weight * gap / count)
        by_token.append([m * slopes[-1] / sum(mask) for m in mask])
    names = ("log_probs", "old_log_probs", "ref_log_probs", "mask")
    return {
        **{name: rows[name] for name in names}, "advantages": advantages, "log_z": log_z,
        "beta": beta, "clip": [low, high], "method": "flowrl",
    }, {"loss": mean(losses), "grad_log_probs": by_token, "grad_log_z": slopes}  # fmt: skip


def shaped_reward(luck):
    """LENS, tree by tree."""
    trees = [luck.choice("xyz") for _ in range(luck.randint(1, 12))]
    scores = [luck.choice([0.0, 0.0, 0.5, 1.0]) for _ in trees]
    logprobs = [[round(-luck.expovariate(1), 3) for _ in range(luck.randint(0, 3))] for _ in trees]
    p, alpha = [math.exp(mean(row)) if row else 0.0 for row in logprobs], luck.choice([0.25, 1.0])
    rewards, advantages = list(scores), [0.0] * len(trees)
    for tree in set(trees):
        mine = [v for v, other in enumerate(trees) if other == tree]
        right = [v for v in mine if scores[v] == 1.0]
        bound = 2 * max(p[v] for v in mine)
        if certain := [1 / p[v] for v in right if p[v]]:
            bound = max(len(mine) / sum(certain), bound)
        for v in mine:
            if scores[v] < 1 and p[v]:
                rewards[v] -= (1 - scores[v]) / len(mine) * p[v] / (bound - p[v])
        own = [rewards[v] for v in mine]
        for v in mine:
            gap = rewards[v] - mean(own)
            if not right:
                advantages[v] = alpha * gap
            elif len(set(own)) > 1:
                advantages[v] = gap / (stdev(own) + 1e-6)
    inputs = {"scores": scores, "tree_ids": trees, "log_probs": logprobs, "alpha": alpha}
    return {**inputs, "method": "lens"}, {"rewards": rewards, "advantages": advantages}


def component_advantage(luck):
    """Each part normalised in its tree, their weighted sum over all."""
    trees = [luck.choice("xyz") for _ in range(luck.randint(1, 12))]
    parts = {
        name: [luck.choice([0.0, 1.0, round(luck.random(), 2)]) for _ in trees]
        for name in "abc"[: luck.randint(1, 3)]
    }
    weights = {name: luck.choice([-1.0, 0.25, 1.0, 2.0]) for name in parts}
    sums = [0.0] * len(trees)
    for tree in set(trees):
        mine = [place for place, other in enumerate(trees) if other == tree]
        for name, values in parts.items():
            for place, z in zip(mine, z_of([values[i] for i in mine]), strict=True):
                sums[place] += weights[name] * z
    inputs = {"components": parts, "weights": weights, "tree_ids": trees, "method": "gdpo"}
    return inputs, z_of(sums)


def z_of(values):
    if len(values) < 2 or len(set(values)) == 1:
        return [0.0] * len(values)
    return [(value - mean(values)) / (stdev(values) + 1e-4) for value in values]


def batch_composition(luck):
    groups = [luck.choice("xyz") for _ in range(luck.randint(2, 16))]
    advantages = [luck.choice([0.0, round(luck.gauss(0, 1), 2)]) for _ in groups]
    keep, pairs = luck.choice([0.25, 0.5, 0.9, 1.0]), []
    for group in dict.fromkeys(groups):
        left = [i for i, other in enumerate(groups) if other == group]
        left.sort(key=lambda i: (-advantages[i], i))
        count = len(left) // 2
        for _ in range(max(min(1, count), int(count * keep))):
            pairs.append([left.pop(0), left.pop()])
    weights = [abs(advantages[i]) + abs(advantages[j]) for i, j in pairs]
    chances = [w / sum(weights) if any(weights) else 1 / len(pairs) for w in weights]
    inputs = {"advantages": advantages, "groups": groups, "keep": keep, "method": "shuffle_r1"}
    return inputs, {"pairs": pairs, "probabilities": chances}


def answer_entropy(luck):
    answers = [luck.choice(["a", "b", "c", None]) for _ in range(luck.randint(1, 9))]
    given = [one for one in answers if one]
    shares = [given.count(one) / len(given) for one in set(given)]
    return {"answers": answers}, -sum(share * math.log(share) for share in shares)


def support_sets(luck):
    agents = ["oak", "fern", "elm"][: luck.randint(1, 3)]
    solvers = [luck.sample(agents, luck.randint(0, len(agents))) for _ in range(luck.randint(1, 9))]

    def share(holds):
        return mean(1.0 if holds(one) else 0.0 for one in solvers)

    by = {name: share(lambda one, name=name: one == [name]) for name in agents}
    if len(agents) > 1:
        by["several_agents"] = share(lambda one: len(one) > 1)
    by["no_agent"] = share(lambda one: not one)
    solved = {name: share(lambda one, name=name: name in one) for name in agents}
    return {"agents": agents, "solvers": solvers}, {"solved": solved, "by": by}


MAKERS = {
    "answer_entropy": [answer_entropy],
    "support_sets": [support_sets],
    "prior": [prior], "posterior": [posterior], "backprop": [backprop], "p_widen": [p_widen],
    "p_agent": [p_agent], "ucb_agent": [ucb_agent], "tree_shaping": [tree_shaping],
    "advantage": [advantage, per_agent], "component_advantage": [component_advantage],
    "shaped_reward": [shaped_reward],
    "batch_composition": [batch_composition],
    "group_advantage": [advantage], "overlong": [overlong],
    "program_similarity": [program_similarity],
    "dynamic_filter": [dynamic_filter], "pass_at_k": [pass_at_k], "tree_select": [tree_select],
    "diversity": [diversity], "depth_weight": [depth_weight], "is_weights": [is_weights],
    "gspo_ratio": [gspo_ratio], "kl": [kl], "policy_loss": [policy_loss],
    "method_loss": [method_loss, flow_loss], "token_advantage": [prefix_values, by_entropy],
    "rae": [rae], "rollout_budget": [rollout_budget], "total_loss": [total_loss],
}  # fmt: skip
STATISTICAL = {"p_widen": 2, "p_agent": 2}
"""These cost tens of thousands of draws a case."""


def test_every_kind_but_the_shapes_is_made_up_here():
    assert set(KINDS) - set(MAKERS) == {"tree_shape"}, "TreeQuest is the oracle of shapes"


@pytest.mark.parametrize("kind", MAKERS)
def test_random_cases_meet_their_definitions(kind):
    tolerance = 0.015 if kind in STATISTICAL else 1e-6
    for maker in MAKERS[kind]:
        for seed in range(STATISTICAL.get(kind, CASES)):
            inputs, expected = maker(random.Random(f"{kind} {maker.__name__} {seed}"))
            case = {"kind": kind, "inputs": inputs, "expected": expected, "tolerance": tolerance}
            assert run_case({**case, "name": kind}) == [], (seed, inputs)
