"""Generator of the pages of `docs/reference`, from the code, and of the pages of the scientific
claims and the README's table of figures, from their records.

    python -m docs.generate           # writes what differs
    python -m docs.generate --check   # exit status 1 if something differs

Invariant: a page is a function of the code and these records alone, the same on every machine: no
path, no time, no width of a terminal. A test compares the pages with the output of this package.
"""
