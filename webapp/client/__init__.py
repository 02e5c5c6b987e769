"""The Python client of Grove's REST, and the `grove` command over it. Imports no Django.

from webapp.client import Grove

with Grove("http://localhost:8000", token) as grove:
    run = grove.create_run(project=1, recipe="demo")
    for event in grove.watch(run.id):
        print(event.seq, event.kind)
"""

from webapp.client.client import Grove
from webapp.client.types import Event, IngestStatus, Project, Refused, Run, Workspace

__all__ = ["Event", "Grove", "IngestStatus", "Project", "Refused", "Run", "Workspace"]
