"""Bounds within which a program's values are kept before they are sent; the server has the same
(`webapp.telemetry.ingest.logged_checks`)."""

LONGEST_NAME = 180
"""Characters of a name, "/" and "~" counted twice."""
MOST_NUMBERS = 2000
MOST_SERIES = 10_000
"""Names of numbers of one run."""
MOST_NAMES = 500
"""Names of other values of one run."""
LARGEST = 1e300
"""Numbers of this size and beyond are kept as infinite."""
LONGEST_TEXT = 65_536
MOST_CELLS = 10_000
MOST_COLUMNS = 100
LONGEST_CELL = 4096
MOST_BINS = 512
MOST_IMAGE_BYTES = 262_144
"""Bytes of the file of a picture."""
MOST_BYTES = 524_288
"""Bytes of one event's payload as JSON."""
MOST_CONFIG_BYTES = 1_048_576
DEEPEST = 20
LONGEST_TAG = 40
MOST_TAGS = 20
LONGEST_NOTES = 50_000
