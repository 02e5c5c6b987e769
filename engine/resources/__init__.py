"""Resources: shapes of models, memory estimates, requirements of a run."""
