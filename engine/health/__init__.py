"""Health of a run: rules that read its events and warn of training that goes wrong.

A new rule is one module in `rules`, one line of this registry and its name in
`engine.events.states.HEALTH_RULES`; its docstring says what it sees, its thresholds are constants
with their reasons. `engine.health.monitor` decides when a warning
opens and closes, `engine.events.watched_log` writes it into the run's log as an event `health`.
"""

from __future__ import annotations

from engine.health.rule import Rule
from engine.health.rules import (
    answer_loops,
    entropy_collapse,
    entropy_runaway,
    equal_groups,
    everything_clipped,
    gradient_spike,
    held_out_falls,
    idle_agent,
    mismatch,
    no_programs,
    nothing_clipped,
    repeated_answers,
    slow_step,
    truncated_answers,
    unshaped,
)

RULES: dict[str, Rule] = {
    "entropy_collapse": entropy_collapse,
    "entropy_runaway": entropy_runaway,
    "equal_groups": equal_groups,
    "nothing_clipped": nothing_clipped,
    "everything_clipped": everything_clipped,
    "mismatch": mismatch,
    "gradient_spike": gradient_spike,
    "held_out_falls": held_out_falls,
    "unshaped": unshaped,
    "repeated_answers": repeated_answers,
    "answer_loops": answer_loops,
    "truncated_answers": truncated_answers,
    "no_programs": no_programs,
    "slow_step": slow_step,
    "idle_agent": idle_agent,
}
