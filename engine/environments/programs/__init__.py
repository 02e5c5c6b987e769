"""What the environment of programs writes: prompts, and what a repair is shown."""
