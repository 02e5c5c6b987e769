"""What models need and what this machine has."""
