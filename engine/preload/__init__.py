"""Preloading: one process per node that has imported torch, and from which model actors fork.

Importing torch and transformers costs an actor seconds of CPU time, more than loading a small
model. A launcher (launcher.py), which Ray starts in place of the actor's interpreter, requests a
fork from the node's server (server.py), and becomes that interpreter if no server is available.
The program that Ray runs before that, to set the environment, is replaced too (setup_worker.py).

Invariants: a process that runs generated programs is never a fork of the server
(`runtime_environment` is for actors with models only); a fork differs from an ordinary start in
nothing that a run depends on.
"""
