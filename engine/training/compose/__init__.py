"""Composers: from the rows of a batch to the updates that a policy makes from them.

A composer runs between a policy's buffer and its learner. It may repeat rows, leave some out, add
those that it kept from earlier steps, and make several updates. A new one is one module in
`methods`, named as here, and one line of this registry; `training.compose` then accepts its name.
"""

from __future__ import annotations

from engine.config.methods import Methods
from engine.training.compose.composer import Composer, composer_of
from engine.training.compose.methods import all as whole_batch
from engine.training.compose.methods import luffy, shuffle

COMPOSERS: Methods[Composer] = Methods(
    "composers",
    composer_of,
    whole_batch,
    luffy,
    shuffle,
)
