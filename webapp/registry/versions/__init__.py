"""What a version's page shows: card, lineage, metrics, comparison."""
