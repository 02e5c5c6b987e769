"""Tests that a model directory that does not load raises an error with the file at fault."""

import json
import re
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, LlamaConfig, LlamaForCausalLM
from transformers.activations import ACT2FN
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from engine.config import model_settings
from engine.config.agents import AgentConfig
from engine.config.model_settings import SettingsFault
from engine.config.model_settings.tokens import check_numbers
from engine.policy.models.load import (
    ModelError,
    check_agent,
    check_model_directory,
    load_policy,
    model_warnings,
)
from engine.policy.models.shard_loading import empty_model, fill, tensor_files
from tests.helpers.policies import tiny_policy


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return tiny_policy(tmp_path_factory.mktemp("models") / "sound")


@pytest.fixture
def model(sound, tmp_path):
    return shutil.copytree(sound, tmp_path / "model")


def test_a_sound_directory_loads(model):
    policy = load_policy(str(model))
    assert policy.end_ids == (policy.tokenizer.eos_token_id,)
    assert policy.pad_id == policy.tokenizer.pad_token_id


@pytest.mark.parametrize(
    "file", ["config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"]
)
def test_a_missing_file_is_named(model, file):
    (model / file).unlink()
    with pytest.raises(ModelError, match=file):
        check_model_directory(str(model))


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_damaged_file_is_named(model, file):
    (model / file).write_bytes(b"\x00 not what it says")
    with pytest.raises(ModelError, match=file):
        check_model_directory(str(model))


def test_a_cut_off_weight_file_is_named(model):
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        check_model_directory(str(model))


def test_weights_that_are_not_those_of_the_config_are_refused(model):
    config = json.loads((model / "config.json").read_text())
    config["hidden_size"] = 64
    (model / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        load_policy(str(model))


def renamed(prefix):
    return lambda tensors: {f"{prefix}{name}": tensor for name, tensor in tensors.items()}


def less(*names):
    return lambda tensors: {n: t for n, t in tensors.items() if not n.startswith(names)}


LAYER = "model.layers.1."
LAYER_2 = "model.layers.2."
EMBEDDING = "model.embed_tokens.weight"
DOWN = "model.layers.0.mlp.down_proj.weight"
MISFITS = {
    "a tensor is missing": (less(DOWN), f"lacks 1 tensor that config.json describes: {DOWN}"),
    "a layer less": (less(LAYER), f"lacks 9 tensors that .*: {LAYER}.*, .*, .*, \\.\\.\\."),
    "a layer more": (
        lambda all: all | {n.replace(LAYER, LAYER_2): t + 0 for n, t in all.items() if LAYER in n},
        f"holds 9 tensors that .*: {LAYER_2}.*, .*, .*, \\.\\.\\.",
    ),
    "another's head": (lambda all: all | {"score.weight": torch.ones(2)}, "holds 1 tensor .*: sc"),
    "compiled": (renamed("_orig_mod."), "begin with '_orig_mod.', which torch.compile"),
    "parallel": (renamed("module."), "begin with 'module.', which DataParallel"),
    "in another module": (renamed("model."), "begin with 'model.', .*model.model.embed_tokens"),
    "quantised": (
        lambda all: {n: t.to(torch.int8) for n, t in all.items()},
        f"holds 20 tensors of I8, which are no weights, or quantised ones: {EMBEDDING}, .*, .*, "),
    "a truth among floats": (
        lambda all: all | {DOWN: all[DOWN].to(torch.bool)}, f"1 tensor of BOOL, .* ones: {DOWN}"),
    "complex numbers": (
        lambda all: all | {DOWN: all[DOWN].to(torch.complex64)}, "1 tensor of C64, which are no"),
    "its head for its embedding": (
        lambda all: {n.replace(EMBEDDING, "lm_head.weight"): t for n, t in all.items()},
        f"lacks 1 tensor that config.json describes: {EMBEDDING}"),
    "a narrow tensor": (
        lambda all: all | {DOWN: all[DOWN][:, :-1].contiguous()},
        rf"1 tensor of another shape: {DOWN} of \[32, 63\] instead of \[32, 64\]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MISFITS)
def test_weights_that_do_not_fit_the_config_are_refused_by_name(model, what):
    change, message = MISFITS[what]
    save_file(change(load_file(model / "model.safetensors")), model / "model.safetensors")
    for check in (check_model_directory, load_policy):
        with pytest.raises(ModelError, match=rf"model\.safetensors: .*{message}.*; .*\w"):
            check(str(model))


def test_an_output_beside_the_embedding_that_it_is_tied_to_has_to_be_equal(model):
    tensors = load_file(model / "model.safetensors")
    for more in (0, 1):
        output = {"lm_head.weight": tensors[EMBEDDING] + more}
        save_file(tensors | output, model / "model.safetensors")
        if more == 0:
            load_policy(str(model))
    with pytest.raises(ModelError, match=r"differs from its embedding, .*tie_word_embeddings to"):
        load_policy(str(model))
    edit(model, "config.json", tie_word_embeddings=False)
    assert torch.equal(load_policy(str(model)).model.lm_head.weight, output["lm_head.weight"])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.float8_e4m3fn])
def test_floats_of_every_width_are_loaded_as_they_are(model, dtype):
    tensors = {n: t.to(dtype) for n, t in load_file(model / "model.safetensors").items()}
    save_file(tensors, model / "model.safetensors")
    loaded = load_policy(str(model)).model.state_dict()
    assert all(torch.equal(loaded[name], tensor.float()) for name, tensor in tensors.items())


def split(model, twice=()):
    """Distributes the tensors over two files; those of `twice` are in both."""
    tensors, index = load_file(model / "model.safetensors"), {}
    (model / "model.safetensors").unlink()
    for number in (1, 2):
        file = f"model-{number:05}-of-00002.safetensors"
        part = {n: t for i, (n, t) in enumerate(tensors.items()) if i % 2 == number - 1}
        index |= dict.fromkeys(part, file)
        save_file(part | {name: tensors[name] + 1 for name in twice}, model / file)
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    return tensors


def test_weights_in_several_files_are_those_of_one(model):
    expected = split(model)
    loaded = load_policy(str(model)).model.state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in expected.items())


FILES = {
    "a tensor in two files": (
        lambda model: split(model, twice=[DOWN]),
        rf"of-00002\.safetensors: tensor '{DOWN}' is in another file too; save it again"),
    "one file besides": (
        lambda model: save_file(split(model), model / "model.safetensors"),
        r"model\.safetensors is given alongside weights in several files .*; leave one of the two"),
    "no index": (
        lambda model: split(model) and (model / "model.safetensors.index.json").unlink(),
        r"index\.json is missing: it maps each tensor to its file"),
    "a missing file": (
        lambda model: split(model) and (model / "model-00002-of-00002.safetensors").unlink(),
        r"model-00002-of-00002\.safetensors is missing"),
    "a torn file": (
        lambda model: split(model)
        and (model / "model-00002-of-00002.safetensors").write_bytes(b"\x88\1\0\0"),
        r"model-00002-of-00002\.safetensors is damaged: .*; copy it again"),
}  # fmt: skip


@pytest.mark.parametrize("what", FILES)
def test_files_of_weights_that_are_not_one_model_are_refused(model, what):
    damage, message = FILES[what]
    damage(model)
    with pytest.raises(ModelError, match=message):
        check_model_directory(str(model))


@pytest.mark.parametrize(
    "what, change, message",
    [
        ("missing", less("gpt_neox.layers.1.mlp.dense_h_to_4h.bias"), "lacks 1 tensor"),
        ("surplus", lambda all: all | {"score.weight": torch.ones(2)}, "1 tensor .*score.weight"),
        ("untied", less("embed_out"), "lacks 1 tensor .*embed_out|lacks 1 tensor .*lm_head"),
    ],
)
def test_models_of_other_families_are_compared_with_what_transformers_expects(
    model, what, change, message
):
    vocabulary = json.loads((model / "config.json").read_text())["vocab_size"]
    config = GPTNeoXConfig(vocab_size=vocabulary, hidden_size=16, num_hidden_layers=2,
                           num_attention_heads=2, intermediate_size=8)  # fmt: skip
    GPTNeoXForCausalLM(config).save_pretrained(model)
    tensors = load_file(model / "model.safetensors")
    old = {f"gpt_neox.layers.{n}.attention.rotary_emb.inv_freq": torch.ones(2) for n in range(2)}
    save_file(tensors | old, model / "model.safetensors")
    load_policy(str(model))
    save_file(change(tensors), model / "model.safetensors")
    with pytest.raises(ModelError, match=rf"model\.safetensors: .*{message}"):
        load_policy(str(model))


def test_a_bare_model_whose_output_is_its_embedding_loads(model):
    expected = load_policy(str(model)).model.state_dict()
    tensors = load_file(model / "model.safetensors")
    assert "lm_head.weight" not in tensors
    bare = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
    save_file(bare, model / "model.safetensors")
    loaded = load_policy(str(model)).model.state_dict()
    assert all(torch.equal(loaded[name], expected[name]) for name in expected)


def test_a_tokenizer_of_another_model_is_refused(model, tmp_path):
    other = tiny_policy(tmp_path / "other", vocabulary=600)
    shutil.copy(other / "tokenizer.json", model / "tokenizer.json")
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        load_policy(str(model))


PICTURE = {"id": 400, "content": "<picture>", "single_word": False, "lstrip": False,
           "rstrip": False, "normalized": False, "special": True}  # fmt: skip


def add_tokens(model, tokens, **settings):
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    tokenizer["added_tokens"] += tokens
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    config = json.loads((model / "tokenizer_config.json").read_text())
    (model / "tokenizer_config.json").write_text(json.dumps(config | settings))


def test_added_tokens_beyond_the_vocabulary_are_left_out_with_a_warning(model):
    """Text-only Gemma 3 has one of pictures, whose id is the size of its vocabulary."""
    vocabulary = json.loads((model / "config.json").read_text())["vocab_size"]
    before = load_policy(str(model)).tokenizer
    first = PICTURE | {"id": vocabulary}
    assert model_warnings([AgentConfig(name="oak", model=str(model))]) == []
    add_tokens(model, [first, PICTURE | {"id": vocabulary + 1, "content": "<sound>"}],
               image_token="<picture>", extra_special_tokens=["<sound>"])  # fmt: skip
    check_model_directory(str(model))
    policy = load_policy(str(model))
    assert len(policy.tokenizer) <= vocabulary
    for text in ("a <picture> and a <sound>", "def f(x):"):
        ids = policy.tokenizer(text).input_ids
        assert max(ids) < vocabulary and policy.tokenizer.decode(ids) == text
        assert ids == before(text).input_ids
    (line,) = model_warnings([AgentConfig(name="oak", model=str(model))])
    assert f"vocabulary of {vocabulary:,} are left out: '<picture>' ({vocabulary:,})" in line
    policy.tokenizer.save_pretrained(model / "saved")
    saved = json.loads((model / "saved" / "tokenizer.json").read_text())
    assert all(one["id"] < vocabulary for one in saved["added_tokens"])


@pytest.mark.parametrize(
    "count, settings, message",
    [(65, {}, r"r\.json: has a token of id 464, .*not a pair"),
     (1, {"eos_token": "<picture 0>"}, r"r_config\.json: eos_token has the id 400, and config")],
)  # fmt: skip
def test_tokens_that_a_model_needs_and_many_beyond_its_vocabulary_are_refused(
    model, count, settings, message
):
    assert json.loads((model / "config.json").read_text())["vocab_size"] == 400
    many = [PICTURE | {"id": 400 + n, "content": f"<picture {n}>"} for n in range(count)]
    add_tokens(model, many, **settings)
    with pytest.raises(ModelError, match=f"tokenize{message}"):
        load_policy(str(model))


NUMBERINGS = (
    [(6, "x")], [(7, "x")], [(2, "x")], [(1, "b")], [(2, "b")], [(6, "x"), (6, "y")],
    [(6, "x"), (7, "y")], [(7, "x"), (6, "y")], [(6, "x"), (6, "x")], [(0, "a"), (6, "x")],
    [(6, "x"), (1, "b"), (7, "y")], [(5, "x")], [(6, "x"), (9, "y")],
)  # fmt: skip


@pytest.mark.parametrize("added", NUMBERINGS, ids=str)
@pytest.mark.parametrize("kind", ["WordLevel", "Unigram"])
def test_added_tokens_that_the_library_would_give_another_id_are_refused(kind, added):
    """The library says nothing, and the model would read other rows of its embedding."""
    words = list("abcdef")
    vocab = [[w, -1.0] for w in words] if kind == "Unigram" else {w: i for i, w in enumerate(words)}
    model = {"type": kind, "vocab": vocab, **({"unk_id": 0} if kind == "Unigram" else {})}
    model |= {} if kind == "Unigram" else {"unk_token": "a"}
    tokens = [PICTURE | {"id": number, "content": text} for number, text in added]
    tokenizer = {"version": "1.0", "added_tokens": tokens, "model": model}
    read = Tokenizer.from_str(json.dumps(tokenizer))
    if all(read.token_to_id(text) == number for number, text in added):
        check_numbers(tokenizer, 20)
        return
    number, text = next(one for one in added if read.token_to_id(one[1]) != one[0])
    expected = f"'{text}' has the id {number}, but is read as {read.token_to_id(text)}"
    with pytest.raises(SettingsFault, match=expected):
        check_numbers(tokenizer, 20)


def test_settings_that_say_two_things_are_refused_with_their_file(model):
    config = (model / "config.json").read_text()
    (model / "config.json").write_text('{"num_hidden_layers": 1,' + config.lstrip()[1:])
    with pytest.raises(ModelError, match=r"config\.json gives num_hidden_layers twice; leave one"):
        load_policy(str(model))
    named = json.loads(config)["architectures"]
    other = {"architectures": ["MistralForCausalLM"]}
    assert named == ["LlamaForCausalLM"]
    (model / "config.json").write_text(json.dumps(json.loads(config) | other))
    with pytest.raises(ModelError, match=r"'MistralForCausalLM'.*model_type = 'llama' is that of"):
        load_policy(str(model))


@pytest.mark.parametrize(
    "file", ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
             "chat_template.jinja"]
)  # fmt: skip
def test_a_pointer_of_git_lfs_is_named_with_its_remedy(model, file):
    (model / file).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    pattern = rf"{file} is a pointer of git-lfs, .*`git lfs pull`"
    with pytest.raises(ModelError, match=pattern):
        check_model_directory(str(model))
    if file.endswith("jinja"):
        agent = AgentConfig(name="oak", model="starter:oak", chat_template=str(model / file))
        with pytest.raises(ModelError, match=rf"agents\.oak\.chat_template = .*{pattern}"):
            check_agent(agent)


def edit(model, file, **settings):
    path = model / file
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "chat_template.jinja"])
def test_a_byte_order_mark_is_named(model, file):
    (model / file).write_bytes(b"\xef\xbb\xbf" + (model / file).read_bytes())
    message = rf"{file} begins with a byte order mark; save it in UTF-8 without one"
    with pytest.raises(ModelError, match=message):
        check_model_directory(str(model))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"eos_token": None}, "names no eos_token; answers would never end"),
        ({"eos_token": ""}, "names no eos_token"),
        ({"eos_token": "<zap>"}, "eos_token: '<zap>' is no token of tokenizer.json; give one of"),
        ({"pad_token": "<zap>"}, "pad_token: '<zap>' is no token .*vocabulary of 400 has no row"),
        ({"extra_special_tokens": ["<zap>"]}, "extra_special_tokens: '<zap>' is no token"),
        ({"added_tokens_decoder": {"400": {"content": "<zap>"}}}, "added_tokens_decoder: '<zap>'"),
    ],
    ids=str,
)
def test_tokens_that_the_vocabulary_lacks_are_refused_by_name(model, settings, message):
    edit(model, "tokenizer_config.json", **settings)
    with pytest.raises(ModelError, match=rf"tokenizer_config\.json: {message}"):
        check_model_directory(str(model))


def test_a_token_that_only_the_settings_name_gets_a_row_that_is_free(model):
    config = LlamaConfig.from_pretrained(model)
    config.vocab_size += 1
    LlamaForCausalLM(config).save_pretrained(model)
    edit(model, "tokenizer_config.json", pad_token="<zap>")
    assert load_policy(str(model)).pad_id == 400
    edit(model, "tokenizer_config.json", bos_token="<zip>")
    with pytest.raises(ModelError, match=r"_token: '<z[ia]p>' is no token"):
        load_policy(str(model))


@pytest.mark.parametrize(
    "given",
    [
        {"temperature": 0.6, "top_p": 0.9},
        {"temperature": 0},
        {"do_sample": False, "temperature": 0.6, "top_k": 20},
        {"pad_token_id": -1},
        {"num_return_sequences": 5},
        {"max_new_tokens": 0, "cache_implementation": "zap"},
        {"suppress_tokens": 3},
        {"eos_token_id": [1, -1, 400, 10**12]},
    ],
    ids=str,
)
def test_a_model_is_saved_whatever_sampling_its_files_state(model, given, tmp_path):
    edit(model, "generation_config.json", **given)
    expected = load_policy(str(model))
    assert expected.end_ids == (expected.tokenizer.eos_token_id,)
    expected.model.save_pretrained(tmp_path / "saved")
    saved = json.loads((tmp_path / "saved" / "generation_config.json").read_text())
    assert saved["eos_token_id"] in (1, [1], given.get("eos_token_id"))
    if "top_p" in given:  # what it states is kept
        assert saved["temperature"] == 0.6 and saved["top_p"] == 0.9 and saved["do_sample"] is True
    (model / "generation_config.json").unlink()
    load_policy(str(model)).model.save_pretrained(tmp_path / "again")


@pytest.mark.parametrize("file", ["generation_config.json", "config.json"])
@pytest.mark.parametrize("ids", [[[1]], {"1": 1}, 1.5, True, "1"], ids=str)
def test_an_end_token_that_is_no_id_is_refused(model, file, ids):
    edit(model, file, eos_token_id=ids)
    with pytest.raises(ModelError, match=rf"{file}: eos_token_id = .* must be .*; \w"):
        load_policy(str(model))


@pytest.mark.parametrize("file", ["generation_config.json", "config.json"])
@pytest.mark.parametrize("ids", [10**6, [10**6], [10**6, 10**7]], ids=str)
def test_an_end_token_beyond_the_vocabulary_is_refused(model, file, ids):
    edit(model, file, eos_token_id=ids)
    with pytest.raises(
        ModelError, match=rf"{file}: eos_token_id = 1,000,000.* is beyond config.json's vocab.*; gi"
    ):
        load_policy(str(model))


FUNCTIONS = {
    "hidden_act": ({"hidden_act": "zap"}, "hidden_act = 'zap' is not an activation"),
    "rope_type": (
        {"rope_parameters": {"rope_type": "zap", "rope_theta": 1e4}},
        "rope_parameters.rope_type = 'zap' is not a rotary embedding",
    ),
    "type": (
        {"rope_scaling": {"type": "zap", "factor": 2.0}},
        "rope_scaling.type = 'zap' is not a rotary embedding",
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_transformers_does_not_have_is_refused(model, name):
    given, reason = FUNCTIONS[name]
    edit(model, "config.json", **given)
    with pytest.raises(ModelError, match=rf"config.json: {re.escape(reason)}"):
        load_policy(str(model))


def test_the_functions_that_are_known_are_those_of_transformers():
    assert set(ACT2FN) == model_settings.ACTIVATIONS
    own = {"default", "axial", "mrope", "su"}  # of no table: names of models' own code
    assert set(ROPE_INIT_FUNCTIONS) | own == model_settings.ROPES


@pytest.mark.parametrize(
    "given", [None, "", 3, {"default": "x"}, [{"name": "tools", "template": "{{ messages }}"}]]
)
def test_a_template_that_is_none_for_conversations_is_missing(model, given):
    text = (model / "chat_template.jinja").read_text()
    (model / "chat_template.jinja").unlink()
    edit(model, "tokenizer_config.json", chat_template=given)
    with pytest.raises(ModelError, match=r"chat_template\.jinja is missing"):
        check_model_directory(str(model))
    several = [{"name": "tools", "template": "x"}, {"name": "default", "template": text}]
    edit(model, "tokenizer_config.json", chat_template=several)
    check_model_directory(str(model))


def test_a_path_that_is_no_directory_and_an_unknown_starter_are_refused(tmp_path):
    with pytest.raises(ModelError, match="not a directory"):
        check_model_directory(str(tmp_path / "nowhere"))
    with pytest.raises(ModelError, match="oak, fern"):
        check_model_directory("starter:birch")


@pytest.mark.parametrize(
    "files", [[], {"a": 1}, {"a": None, "b": "x"}, {"a": "../x"}, {"a": "x" * 256}]
)
def test_a_list_of_weight_files_that_is_none_is_refused(model, files):
    (model / "model.safetensors").unlink()
    index = model / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": files}))
    with pytest.raises(ModelError, match=r"index\.json: its weight_map"):
        check_model_directory(str(model))


def test_endless_brackets_and_the_home_of_nobody_are_refused(model):
    (model / "config.json").write_text("[" * 5000)
    with pytest.raises(ModelError, match=r"config\.json is not valid JSON"):
        check_model_directory(str(model))
    with pytest.raises(ModelError, match="home directory"):
        check_model_directory("~nobody-here/x")


def test_a_model_that_is_filled_tensor_by_tensor_is_the_one_that_is_loaded(model):
    for reference in (str(model), "starter:oak", "starter:fern"):
        directory = check_model_directory(reference)
        built = empty_model(directory, torch.float32)
        assert {weight.device.type for weight in built.parameters()} == {"meta"}
        fill(built, tensor_files(directory), "cpu")
        loaded = load_policy(reference).model
        actual, expected = (
            dict(m.named_parameters(remove_duplicate=False)) | dict(m.named_buffers())
            for m in (built, loaded)
        )
        assert actual.keys() == expected.keys()
        assert all(torch.equal(actual[name], expected[name]) for name in actual)
        assert len(list(built.parameters())) == len(list(loaded.parameters())), "tied as it was"


def test_weights_that_cannot_be_loaded_tensor_by_tensor_are_reported_beforehand(model):
    weights = load_file(model / "model.safetensors")
    first, *_ = weights
    save_file({f"old.{name}": tensor for name, tensor in weights.items()},
              model / "model.safetensors")  # fmt: skip
    assert tensor_files(model) is None
    save_file(weights | {first: weights[first][:-1].clone()}, model / "model.safetensors")
    with pytest.raises(ValueError, match=rf"{first} has shape .*config\.json"):
        fill(empty_model(model, torch.float32), tensor_files(model), "cpu")
