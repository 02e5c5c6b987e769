"""Tags, notes, stars, and the activity of a run."""
