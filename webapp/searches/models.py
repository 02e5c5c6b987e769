"""Models of searches at test time.

Invariant: a search is a run. State, lease, events, shares and activity are the run's; `Search` only
has what a training run lacks: the one problem, complete, as it was when the search was created.
"""

from django.db import models

from webapp.experiments.models import InRunQuerySet, Run


class Search(models.Model):
    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="search")
    problem = models.JSONField()
    """The problem as `engine.problems.records` writes it, with private tests: never shown whole."""

    objects = InRunQuerySet.as_manager()

    def __str__(self) -> str:
        return str(self.run)
