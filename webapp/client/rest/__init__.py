"""Every operation of REST as a typed method, generated from the OpenAPI document.

`Grove.rest` holds them: `grove.rest.fork_run(run_id, step=20)`. What is not given is not sent.
`models` and `operations` are written by `python -m webapp.client.rest.generate`, from the document
of a server or from a file, and never by hand.
"""

from webapp.client.rest.operations import Operations

__all__ = ["Operations"]
