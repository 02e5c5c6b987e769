"""Database engine of the site (`ENGINE`): Django's Postgres with a pool that notices an outage."""
