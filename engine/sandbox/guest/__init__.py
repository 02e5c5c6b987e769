"""Code that runs inside the sandbox; imports the standard library and this folder alone."""
