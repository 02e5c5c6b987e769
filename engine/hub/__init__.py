"""Models and data sets of a Hugging Face hub, named `hf:ORG/NAME@REVISION`.

Off unless GROVE_HUB or HF_ENDPOINT is set. Requests, tokens (HF_TOKEN) and the cache (HF_HOME) are
those of the official client, `huggingface_hub`. Invariants: only files of the listed names are
downloaded, never code or pickles; a branch or tag is resolved to its commit once, and the commit is
what a run's settings store; no message holds a token.
"""
