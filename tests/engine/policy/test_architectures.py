"""Tests that the registry accepts the models that the engine can load."""

from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as known

from webapp.registry.model_files.settings_files import architectures


def test_the_architectures_are_those_of_the_pinned_transformers():
    names = (name if isinstance(name, list | tuple) else [name] for name in known.values())
    assert architectures() == {one for name in names for one in name}
