"""Actors that hold models start as forks of one process per node, which has imported torch.

To import torch and transformers costs an actor seconds of a processor, more than a small model
needs to load. A launcher (launcher.py), which Ray starts in place of the actor's interpreter, asks
the node's server (server.py) for a fork of itself, and becomes that interpreter where no server can
be had. What Ray runs before that, to set the environment, is ours too (setup_worker.py).

Invariants: a process that runs programs never comes from here (`runtime_environment` is for actors
with models only); a fork differs from an ordinary start in nothing that a run depends on.
"""
