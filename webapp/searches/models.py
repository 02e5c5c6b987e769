"""Searches at test time.

Invariant: a search is a run. State, lease, events, shares and who did what are the run's own; here
stands only what a run that trains does not have: the one problem, whole, as it was when the search
was made.
"""

from django.db import models

from webapp.experiments.models import InRunQuerySet, Run


class Search(models.Model):
    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="search")
    problem = models.JSONField()
    """As `engine.problems.records` writes it, private tests too: never shown whole."""

    objects = InRunQuerySet.as_manager()

    def __str__(self) -> str:
        return str(self.run)
