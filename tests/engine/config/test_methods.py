"""Tests of the registries: one table, options of methods beside them, and what the site reads."""

import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from engine.config.credit import CreditConfig
from engine.config.errors import ConfigError
from engine.config.method_settings import option_fields
from engine.config.methods import REGISTRIES, registry, registry_at
from engine.config.option_fields import options_fault
from engine.config.schema import RunConfig, parse_config
from engine.recipes import load_recipe
from webapp.experiments.run_settings.override_schema import Overrides, checked
from webapp.experiments.run_settings.settings_schema import setting_groups


def modules_of(one):
    """Modules of a registry's folder by name: `methods` below its package, or the package."""
    package = import_module(one.package)
    below = {each.name for each in pkgutil.iter_modules(package.__path__)}
    folder = import_module(f"{one.package}.methods") if "methods" in below else package
    return {
        each.name: import_module(f"{folder.__name__}.{each.name}")
        for each in pkgutil.iter_modules(folder.__path__)
    }


@pytest.mark.parametrize("one", REGISTRIES, ids=lambda one: one.kind)
def test_every_module_of_a_method_has_its_line(one):
    def is_method(module):
        try:
            one.methods._adapted(module)
        except ValueError:
            return False
        return True

    modules = modules_of(one)
    assert {name for name in modules if is_method(modules[name])} == set(one.methods.own)


def test_every_registry_s_setting_exists_and_defaults_to_a_value_it_accepts():
    config = load_recipe("mars2")
    for one in REGISTRIES:
        value = getattr(getattr(config, one.section), one.setting)
        assert registry_at(one.path) is one and set(one.selected(value)) <= set(one.names())
        assert one.many or one.selected(value)


def options_of_methods():
    return [
        (one.kind, name, options)
        for one in REGISTRIES
        for name in one.methods.own
        if (options := one.methods.options(name))
    ]


def test_options_have_bounds_and_help_and_hold_no_text():
    assert options_of_methods()
    for kind, name, options in options_of_methods():
        assert not options_fault(options), (kind, name)
        assert options.model_config["frozen"] and options.__doc__


def test_the_site_reads_all_options_without_torch():
    code = """
        import sys
        from engine.config.schema import RunConfig
        from engine.config.methods import REGISTRIES
        schema = RunConfig.model_json_schema()
        assert all(one.names() for one in REGISTRIES)
        print(*{"torch", "ray", "vllm", "transformers"} & set(sys.modules))
    """
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", "\n".join(map(str.strip, code.splitlines()))],
                          cwd=root, capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout.strip() == ""


def test_options_of_the_selected_method_are_recorded_and_those_of_others_are_not():
    adora = load_recipe("demo", {"credit.advantage": "adora"})
    assert adora.model_dump(mode="json")["credit"]["adora"] == {"weight": 0.1}
    assert adora.credit.options("advantage").weight == 0.1
    assert parse_config(adora.model_dump(mode="json")) == adora
    assert RunConfig.model_validate_json(adora.model_dump_json()) == adora
    plain = load_recipe("demo")
    assert "adora" not in plain.model_dump(mode="json")["credit"]
    assert plain.credit.options("advantage") is None


def test_a_list_of_methods_has_the_options_of_each_and_refuses_unknown_names():
    gauges = {"evaluation.gauges": ["support", "diversity"], "evaluation.support.steps": 5}
    config = load_recipe("demo", gauges)
    record = config.model_dump(mode="json")["evaluation"]
    assert (record["support"], record["diversity"]) == ({"steps": 5}, {"k": 4})
    assert config.evaluation.options("gauges", "support").steps == 5
    assert parse_config(config.model_dump(mode="json")) == config
    assert not load_recipe("demo").evaluation.gauges
    schema = RunConfig.model_json_schema()["$defs"]["EvaluationConfig"]["properties"]["gauges"]
    assert schema["items"]["enum"] == registry("gauges").names()
    fields = {one.path: one for group in setting_groups(config) for one in group.settings}
    assert fields["evaluation.gauges"].value == '["support", "diversity"]'
    assert fields["evaluation.gauges"].boxes == registry("gauges").names()
    assert not fields["loss.policy"].boxes
    assert fields["evaluation.gauges"].range == "a list of diversity, success, support"
    unknown = {"evaluation.gauges": ["support", "nothing"]}
    for refuse in (lambda: load_recipe("demo", unknown), lambda: checked(Overrides(unknown))):
        with pytest.raises(ConfigError, match=r"evaluation\.gauges\.1 = 'nothing': choose one of"):
            refuse()
    assert checked(Overrides(gauges)) == gauges
    with pytest.raises(ConfigError, match="names must differ"):
        load_recipe("demo", {"evaluation.gauges": ["support", "support"]})


def test_options_may_be_given_before_their_method_is_selected():
    config = load_recipe("demo", {"credit.adora.weight": 0.5})
    assert config.credit.options("advantage") is None
    again = config.model_dump(mode="json")
    again["credit"]["advantage"] = "adora"
    assert parse_config(again).credit.options("advantage").weight == 0.5


def test_a_section_by_itself_has_options_too():
    assert CreditConfig(advantage="adora").options("advantage").weight == 0.1
    assert CreditConfig(advantage="adora", adora={"weight": 1}).options("advantage").weight == 1


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("credit.adora.weight", 2, "less than or equal to 1"),
        ("credit.adora.wait", 1, "unknown setting"),
        ("credit.adora", 3, "valid dictionary"),
        ("credit.mars2.weight", 1, "unknown setting"),
        ("loss.adora.weight", 1, "unknown setting"),
        ("credit.nothing.weight", 1, "unknown setting"),
    ],
)
def test_a_wrong_option_is_refused_with_its_path(path, value, reason):
    with pytest.raises(ConfigError) as caught:
        load_recipe("demo", {path: value})
    (problem,) = caught.value.problems
    given = path if "unknown" not in reason or path.startswith("credit.adora") else path[:-7]
    assert (problem["path"], reason in problem["reason"]) == (given, True), problem
    # REST checks each path by itself.
    with pytest.raises(ConfigError) as caught:
        checked(Overrides({path: value}))
    assert caught.value.problems[0]["path"] == path


def test_a_loss_whose_columns_no_advantage_makes_is_refused():
    with pytest.raises(ConfigError, match=r"loss\.policy = 'zvp': needs zero_variance .*grpo"):
        load_recipe("grpo", {"loss.policy": "zvp"})
    assert load_recipe("grpo", {"loss.policy": "zvp", "credit.advantage": "rl_zvp"})
    loss = load_recipe("rl-zvp").loss
    assert (loss.row_columns, loss.needs) == (["zero_variance"], {"entropies", "zero_variance"})
    assert not loss.reads_reference and load_recipe("demo").loss.reads_reference


def test_errors_of_a_section_and_of_its_options_are_reported_together():
    with pytest.raises(ConfigError) as caught:
        load_recipe("demo", {"credit.adora.weight": -1, "credit.shaping_gamma": -1})
    paths = {problem["path"] for problem in caught.value.problems}
    assert paths == {"credit.adora.weight", "credit.shaping_gamma"}


def test_schema_form_and_rest_have_every_option_of_the_table():
    schema = RunConfig.model_json_schema()["$defs"]["CreditConfig"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["advantage"]["enum"] == registry("advantages").names()
    (weight,) = schema["properties"]["adora"]["properties"].values()
    assert (weight["minimum"], weight["maximum"], weight["default"]) == (0, 1, 0.1)
    settings = {
        one.path: one for group in setting_groups(load_recipe("demo")) for one in group.settings
    }
    field = settings["credit.adora.weight"]
    assert (field.label, field.kind, field.value, field.range) == (
        "adora: weight", "number", "0.1", "from 0 to 1",
    )  # fmt: skip
    assert "right answers" in field.help
    overrides = str(Overrides.model_json_schema())
    for section in {one.section for one in REGISTRIES if one.section in ("credit", "loss")}:
        for name, info in option_fields(RunConfig.model_fields[section].annotation).items():
            for option in info.annotation.model_fields:
                assert f"{section}.{name}.{option}" in settings
                assert f"{section}\\\\.{name}\\\\.{option}" in overrides
    assert checked(Overrides({"credit.adora.weight": 0.5})) == {"credit.adora.weight": 0.5}
