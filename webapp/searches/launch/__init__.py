"""Start of a search: the page of its form, its team, defaults and preflight."""
