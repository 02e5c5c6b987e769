"""Example of a package of methods: docs/extending.md shows its modules."""
