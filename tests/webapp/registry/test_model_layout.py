"""Tests of refused models, and the reasons: false headers, files of another kind, code."""

import io
import json
import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.helpers.builders import a_model_folder, parameters_of
from webapp.registry.model_files.layout import check_model, digest_of, files_of, refuse_names
from webapp.registry.model_files.numbers import refuse_not_finite
from webapp.registry.model_files.safetensors import WeightsError, read_tensors

F32 = {"dtype": "F32", "shape": [2]}


def a_file(header, data=b"\0" * 8, length=None):
    """The bytes of a safetensors file, as consistent as its arguments."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def read(content):
    return read_tensors(io.BytesIO(content), len(content), "model.safetensors")


def a_zip():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("data.pkl", b"x" * 100)
    return buffer.getvalue()


def zip_of_many_members():
    """A zip whose end record says that its sizes are elsewhere (zip64), as for many members."""
    archive = a_zip()
    at = archive.rindex(b"PK\x05\x06")
    size, offset = struct.unpack_from("<II", archive, at + 12)
    record = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, size, offset)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, at, 1)
    ones = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 65535, 65535, 2**32 - 1, 2**32 - 1, 0)
    made = archive[:at] + record + locator + ones
    assert zipfile.ZipFile(io.BytesIO(b"before" + made)).namelist() == ["data.pkl"]
    return made


def polyglot(archive):
    return a_file(
        {"a": {"dtype": "U8", "shape": [len(archive)], "data_offsets": [0, len(archive)]}}, archive
    )


def test_a_whole_file_is_read():
    result = read(a_file({"__metadata__": {"format": "pt"}, "a": {**F32, "data_offsets": [0, 8]}}))
    assert result["a"].shape == (2,) and result["a"].parameters == 2


@pytest.mark.parametrize("low", range(256))
def test_a_header_may_have_any_length(low):
    """Its length begins the file: 0x80 begins a pickle, 0x1f 0x8b a gzip file."""
    tensor = {"a": {**F32, "data_offsets": [0, 8]}}
    text = json.dumps(tensor).encode()
    for second in range(1, 7):  # 2 to 5 follow 0x80 in a pickle
        content = a_file(text.ljust(256 * second + low))
        assert content[:2] == bytes([low, second]) and read(content).keys() == {"a"}


@pytest.mark.parametrize("start", [b"\x1f\x8b\0\0", b"\x80\x02\0\0", b"\x80\x05\0\0", b"MZ\0\0"])
def test_a_header_whose_length_begins_as_another_kind_is_read(start):
    text = json.dumps({"a": {**F32, "data_offsets": [0, 8]}}).encode()
    content = a_file(text.ljust(int.from_bytes(start, "little")))
    assert content.startswith(start) and read(content).keys() == {"a"}


@pytest.mark.parametrize("protocol", range(2, 6))
def test_pickles_of_every_protocol_are_named(protocol):
    for thing in ({"a": 1}, {}, [{"a": 1}], "{" * 100, b"{" * 100):
        with pytest.raises(WeightsError, match="this is a pickle"):
            read(pickle.dumps(thing, protocol))


ATTACKS = {
    "a header of 10 GB": (a_file(b"{}", length=10 * 2**30), "claims 10,737,418,240 bytes, 32,000"),
    "a header longer than the file": (a_file(b"{}", length=100), "claims 100 bytes of a 18 byte"),
    "no header": (b"\0" * 20, "no safetensors"),
    "an empty file": (b"", "no safetensors"),
    "a pickle": (pickle.dumps({"a": 1}), "this is a pickle"),
    "a torch file": (a_zip(), "this is a zip archive"),
    "a zip at its end": (polyglot(a_zip()), "a zip archive as well"),
    "a larger zip at its end": (polyglot(zip_of_many_members()), "a zip archive as well"),
    "an old pickle": (pickle.dumps({"a": 1}, protocol=0), "header claims"),
    "numbers without end": (
        a_file(b'{"a":{"dtype":"F32","shape":[' + b"9" * 20_000 + b"]}}"), "cannot be read"),
    "a shape beyond all": (
        a_file({"a": {"dtype": "F32", "shape": [2**200], "data_offsets": [0, 8]}}), "shape must"),
    "a shape that is no number": (
        a_file(b'{"a":{"dtype":"F32","shape":[Infinity],"data_offsets":[0,8]}}'), "no JSON"),
    "the same key in other signs": (
        a_file(rb'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"\u0061":{}}'),
        "'a' is given twice",
    ),
    "half a character": (a_file({"\ud800": {**F32, "data_offsets": [0, 8]}}), "printable"),
    "a git-lfs pointer": (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of git-lfs"),
    "no JSON": (a_file(b"{x}"), "cannot be read"),
    "no text": (a_file(b'{"\xff": 1}'), "cannot be read"),
    "a list": (a_file([]), "no object"),
    "depth": (a_file(b"[" * 100_000), "cannot be read"),
    "NaN": (a_file(b'{"a": NaN}'), "NaN is no JSON"),
    "the same key twice": (
        a_file(b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{}}'),
        "'a' is given twice",
    ),
    "the same field twice": (
        a_file(b'{"a":{"dtype":"F32","shape":[2],"shape":[1],"data_offsets":[0,8]}}'),
        "'shape' is given twice",
    ),
    "overlap": (
        a_file({"a": {**F32, "data_offsets": [0, 8]}, "b": {**F32, "data_offsets": [4, 12]}},
               b"\0" * 12),
        "'b' overlaps the one before it",
    ),
    "a hole": (
        a_file({"a": {**F32, "data_offsets": [0, 8]}, "b": {**F32, "data_offsets": [12, 20]}},
               b"\0" * 20),
        "'b' leaves a hole",
    ),
    "a hole at the start": (a_file({"a": {**F32, "data_offsets": [8, 16]}}), "leaves a hole"),
    "negative offsets": (a_file({"a": {**F32, "data_offsets": [-8, 0]}}), "two whole numbers"),
    "offsets backwards": (a_file({"a": {**F32, "data_offsets": [8, 0]}}), "the smaller first"),
    "offsets of truth": (a_file({"a": {**F32, "data_offsets": [False, 8]}}), "two whole numbers"),
    "a negative shape": (
        a_file({"a": {"dtype": "F32", "shape": [-1, -2], "data_offsets": [0, 8]}}), "shape must"),
    "an endless shape": (
        a_file({"a": {"dtype": "F32", "shape": [2**62] * 16, "data_offsets": [0, 8]}}),
        "does not take",
    ),
    "too many dimensions": (
        a_file({"a": {"dtype": "F32", "shape": [1] * 17, "data_offsets": [0, 8]}}), "at most 16"),
    "a dtype of ours": (
        a_file({"a": {"dtype": "object", "shape": [2], "data_offsets": [0, 8]}}), "'object' is"),
    "half a byte": (
        a_file({"a": {"dtype": "F4", "shape": [3], "data_offsets": [0, 1]}}, b"\0"), "does not"),
    "another field": (
        a_file({"a": {**F32, "data_offsets": [0, 8], "url": "x"}}), "nothing else"),
    "cut off": (a_file({"a": {**F32, "data_offsets": [0, 8]}}, b"\0" * 4), "8 bytes of tensors"),
    "more than declared": (a_file({"a": {**F32, "data_offsets": [0, 8]}}, b"\0" * 9), "9 present"),
    "metadata with numbers": (a_file({"__metadata__": {"a": 1}}, b""), "texts only"),
    "a name with a NUL": (a_file({"a\0": {**F32, "data_offsets": [0, 8]}}), "printable"),
}  # fmt: skip


@pytest.mark.parametrize("what", ATTACKS)
def test_weights_that_lie_are_refused_with_file_and_reason(what):
    content, reason = ATTACKS[what]
    with pytest.raises(WeightsError, match=r"^model\.safetensors: ") as refusal:
        read(content)
    assert reason in str(refusal.value) and refusal.value.remedy


def test_a_header_that_claims_gigabytes_takes_no_memory():
    tracemalloc.start()
    with pytest.raises(WeightsError):
        read(a_file(b"{}", length=10 * 2**30))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize("shards", [1, 3])
def test_a_model_in_the_layout_is_taken(tmp_path, shards):
    layout = check_model(files_of(a_model_folder(tmp_path / "m", shards)))
    assert layout.architecture == "LlamaForCausalLM" and layout.parameters == parameters_of(shards)
    assert len(layout.weights) == shards


def edited(name, **changes):
    def edit(folder):
        data = json.loads((folder / name).read_text())
        data.update(changes)
        (folder / name).write_text(json.dumps(data))

    return edit


def put(name, content=b"{}"):
    return lambda folder: (folder / name).write_bytes(content)


def without(name):
    return lambda folder: (folder / name).unlink()


def both(*damages):
    return lambda folder: [damage(folder) for damage in damages]


def marked(name):
    def damage(folder):
        (folder / name).write_bytes(b"\xef\xbb\xbf" + (folder / name).read_bytes())

    return damage


MULTIPLYING = b"{{ 'a' * 3160000000 }}"
FIRST, SECOND = "model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors"
MAP = "model.safetensors.index.json"
DAMAGES = {
    "no config": (1, without("config.json"), "config.json: is missing"),
    "no tokenizer": (1, without("tokenizer.json"), "tokenizer.json: is missing"),
    "no template": (1, without("chat_template.jinja"), "chat_template.jinja: is missing"),
    "no weights": (1, without("model.safetensors"), "model.safetensors: is missing"),
    "code": (1, put("modeling_oak.py"), "code of a model is never run"),
    "pickled weights": (1, put("pytorch_model.bin"), "safetensors only"),
    "a foreign file": (1, put("notes.exe"), "is no file of a model"),
    "code by auto_map": (
        1, edited("config.json", auto_map={"AutoModelForCausalLM": "a.B"}), "auto_map runs"),
    "code further down": (
        1, edited("config.json", text_config={"x": [{"trust_remote_code": True}]}), "trust_remote"),
    "code of a hub": (
        1, edited("config.json", attn_implementation="somebody/kernels"), "another repo"),
    "code of a hub for a part": (
        1, edited("config.json", attn_implementation={"": "somebody/kernels"}), "another repo"),
    "code of a hub further down": (
        1, edited("config.json", text_config={"_attn_implementation": ["a/b"]}), "another repo"),
    "code of a hub by its inner name": (
        1, edited("config.json", _attn_implementation_internal="a/b"), "another repo"),
    "weights from elsewhere": (
        1, edited("config.json", transformers_weights="../2/model.safetensors"), "another file"),
    "code of the tokenizer": (
        1, edited("tokenizer_config.json", auto_map={"AutoTokenizer": ["x.Y", None]}), "auto_map"),
    "a tokenizer from elsewhere": (
        1, edited("tokenizer_config.json", tokenizer_class="a/b.C"), "plain name"),
    "a file of the server as a vocabulary": (
        1, edited("tokenizer_config.json", tokenizer_class="BertTokenizer", vocab="/etc/passwd",
                  fast_tokenizer_files=["tokenizer.4.0.0.json"]),
        "tokenizer_config.json: vocab = '/etc/passwd' is no key that is known"),
    "a file of the server by the other name": (
        1, edited("tokenizer_config.json", fast_tokenizer_files=["tokenizer.4.0.0.json"]),
        "fast_tokenizer_files = ['tokenizer.4.0.0.json'] names a file"),
    "a file of the server as special tokens": (
        1, put("special_tokens_map.json", b'{"vocab_file": "/etc/passwd"}'),
        "special_tokens_map.json: vocab_file = '/etc/passwd' names a file"),
    "a key of nobody": (1, edited("config.json", shade="oak"), "shade = 'oak' is no key that is"),
    "a path for a name": (
        1, edited("config.json", hidden_act="../x"), "hidden_act = '../x' must be a plain name"),
    "a path for a number": (
        1, edited("config.json", pretraining_tp="/x"), "pretraining_tp = '/x' must be a number"),
    "settings of another's writing": (
        1, put("generation_config.json", b'{"compile_config": {"backend": "a.b"}}'),
        "generation_config.json: compile_config = {'backend': 'a.b'} names a file or a place"),
    "layers without weights": (
        1, edited("config.json", num_hidden_layers=10**9),
        "num_hidden_layers = 1,000,000,000 is far beyond 11 tensors in the weights"),
    "a width without weights": (
        1, edited("config.json", hidden_size=2**20), "and the files hold 2,088"),
    "positions without weights": (
        1, edited("config.json", n_positions=2**31), "n_positions = 2,147,483,648 is far beyond"),
    "a special token of a book": (
        1, edited("tokenizer_config.json", eos_token="x" * 1001), "1,001 characters, 1,000 at"),
    "an added token of a book": (
        1, edited("tokenizer.json", added_tokens=[{"id": 1, "content": "x" * 1001}]),
        "tokenizer.json: added_tokens: the token 'xxxx"),
    "more special tokens than words": (
        1, edited("tokenizer_config.json", additional_special_tokens=["x"] * 100_001),
        "additional_special_tokens holds 100,001 tokens, 100,000 at most are accepted"),
    "a template that multiplies": (
        1, put("chat_template.jinja", MULTIPLYING), "chat_template.jinja: `*` makes 3,160,000,000"),
    "a template of the settings that multiplies": (
        1, edited("tokenizer_config.json", chat_template=MULTIPLYING.decode()),
        "tokenizer_config.json: `*` makes"),
    "a tokenizer that multiplies": (
        1, edited("tokenizer.json", normalizer={"type": "Sequence", "normalizers": [
            {"type": "Replace", "pattern": {"String": a}, "content": b * 1000}
            for a, b in ("ab", "bc", "cd")]}),
        "tokenizer.json: normalizer makes up to 1,000 characters of one"),
    "an unknown architecture": (
        1, edited("config.json", architectures=["Evil"]), "'Evil' is no supported"),
    "quantised": (1, edited("config.json", quantization_config={}), "quantised"),
    "an absurd size": (1, edited("config.json", hidden_size=-1), "hidden_size = -1"),
    "a vocabulary too small": (
        1, edited("config.json", vocab_size=10), "embed_tokens.weight of [1024, 2] instead of"),
    "no end token": (
        1, edited("tokenizer_config.json", eos_token=None), "tokenizer_config.json: names no eos_"),
    "an end token that is none": (
        1, edited("tokenizer_config.json", eos_token="<zap>"),
        "eos_token: '<zap>' is no token of tokenizer.json"),
    "a further token without a row": (
        1, edited("tokenizer_config.json", additional_special_tokens=["<zap>"]),
        "additional_special_tokens: '<zap>' is no token of tokenizer.json"),
    "an end token beyond the vocabulary": (
        1, both(edited("tokenizer_config.json", eos_token="<picture>"),
                lambda folder: token_beyond(folder)),
        "tokenizer_config.json: eos_token has the id 1,024, and config.json a vocabulary of"),
    "an id of an end token beyond the vocabulary": (
        1, edited("config.json", eos_token_id=1024),
        "config.json: eos_token_id = 1,024 is beyond config.json's vocabulary of 1,024; give the"),
    "an id of an end token to generate beyond the vocabulary": (
        1, put("generation_config.json", b'{"eos_token_id": [1024, 5000]}'),
        "generation_config.json: eos_token_id = 1,024, 5,000 is beyond config.json's vocabulary"),
    "an activation that nobody has": (
        1, edited("config.json", hidden_act="zap"), "hidden_act = 'zap' is not an activation"),
    "a rotary embedding that nobody has": (
        1, edited("config.json", rope_parameters={"rope_type": "zap"}),
        "rope_parameters.rope_type = 'zap' is not a rotary embedding that transformers has"),
    "a list for the id of a token": (
        1, edited("config.json", eos_token_id=[[1]]), "eos_token_id = [[1]] must be the id of a"),
    "a list for the id of a token to generate": (
        1, put("generation_config.json", b'{"eos_token_id": {"1": 2}}'),
        "generation_config.json: eos_token_id = {'1': 2} must be the id of a token"),
    "config with a mark": (
        1, marked("config.json"), "config.json: begins with a byte order mark; save it in UTF-8"),
    "a tokenizer with a mark": (
        1, marked("tokenizer.json"), "tokenizer.json: begins with a byte order mark"),
    "a template with a mark": (
        1, marked("chat_template.jinja"), "chat_template.jinja: begins with a byte order mark"),
    "a template of another use alone": (
        1, both(without("chat_template.jinja"), edited(
            "tokenizer_config.json", chat_template=[{"name": "tools", "template": "x"}])),
        "chat_template.jinja: is missing"),
    "a tokenizer of a larger model": (
        1, edited("tokenizer.json", model={"type": "WordLevel", "vocab": {"a": 1024}}),
        "has a token of id 1,024, config.json a vocabulary of 1,024"),
    "many tokens beyond the vocabulary": (
        1, edited("tokenizer.json", added_tokens=[
            {"id": 1024 + n, "content": f"<{n}>"} for n in range(65)]),
        "has a token of id 1,088, config.json a vocabulary of 1,024"),
    "two tokens of one id": (
        1, lambda folder: token_beyond(folder, 3),
        "tokenizer.json: added_tokens: '<picture>' has the id 3, but is read as 1,024; give the"),
    "a tokenizer with NaN": (
        1, edited("tokenizer.json", scale=float("nan")), "is no JSON: it holds NaN"),
    "NaN in the config": (
        1, edited("config.json", layer_norm_epsilon=float("nan")),
        "config.json: layer_norm_epsilon = nan must be a finite number"),
    "an infinity in the config": (
        1, edited("config.json", rope_scaling={"rope_type": "linear", "factor": float("inf")}),
        "config.json: rope_scaling.factor = inf must be a finite number"),
    "a key of the config twice": (
        1, put("config.json", b'{"vocab_size": 1, "hidden_size": 2, "vocab_size": 3}'),
        "config.json: gives vocab_size twice; leave one of the two out"),
    "a key twice further down": (
        1, put("generation_config.json", b'{"a": [{"top_k": 2, "top_k": 3}]}'),
        "generation_config.json: gives top_k twice"),
    "another kind of tokenizer": (
        1, edited("tokenizer.json", model={"type": "Pickle"}), "model.type must be one of"),
    "config is no JSON": (1, put("config.json", b"{"), "config.json: is no JSON"),
    "config is a list": (1, put("config.json", b"[]"), "config.json: holds no JSON object"),
    "config of depth": (1, put("config.json", b"[" * 500_000), "config.json: is no JSON"),
    "config of a long number": (
        1, put("config.json", b'{"rope": [{"theta": -' + b"7" * 1_000_000 + b"}]}"),
        "config.json: is no JSON: holds a number of 1,000,000 digits (10,000 at most) in "
        "rope[0].theta"),
    "config too big": (1, put("config.json", b" " * 2_000_001), "config.json: has 2,000,001 bytes"),
    "both kinds of weights": (3, put("model.safetensors"), "in several files"),
    "a shard is missing": (3, without(SECOND), f"{SECOND}: is missing"),
    "a foreign shard": (3, put("model-00001-of-00009.safetensors"), "does not belong"),
    "no index": (3, without(MAP), f"{MAP}: is missing"),
    "an index out of the folder": (
        3, edited(MAP, weight_map={"layer.0": "../../etc/passwd"}), "not among the weight files"),
    "an index without a tensor": (
        3, edited(MAP, weight_map={"model.norm.weight": FIRST}), "lacks"),
    "an index with another's tensor": (
        3, edited(MAP, weight_map={"layer.7": SECOND}), "does not hold it"),
    "a pickle as a shard": (3, put(SECOND, pickle.dumps([1])), f"{SECOND}: this is a pickle"),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGES)
def test_a_folder_that_is_no_model_is_refused_with_file_and_reason(tmp_path, what):
    shards, damage, reason = DAMAGES[what]
    folder = a_model_folder(tmp_path / "m", shards)
    damage(folder)
    with pytest.raises(WeightsError) as refusal:
        check_model(files_of(folder))
    assert reason in str(refusal.value)


def token_beyond(folder, number=1024, **changes):
    token = {"id": number, "content": "<picture>", "special": True} | changes
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    edited("tokenizer.json", added_tokens=[*tokenizer["added_tokens"], token])(folder)


def test_a_token_beyond_the_vocabulary_is_accepted_with_a_warning(tmp_path):
    folder = a_model_folder(tmp_path / "m")
    assert check_model(files_of(folder)).warnings == ()
    token_beyond(folder)
    (line,) = check_model(files_of(folder)).warnings
    assert line.startswith("tokenizer.json: tokens beyond config.json's vocabulary of 1,024 are")
    assert "'<picture>' (1,024)" in line


@pytest.mark.parametrize(
    "text",
    ["{% for", "{{ zap() }}", "{{ raise_exception('no') }}", "{{ messages[0].role }}", "{# #}"],
)
def test_a_template_that_always_fails_is_stored_with_a_warning(tmp_path, text):
    """A run may have a template of its own (`agents.NAME.chat_template`)."""
    folder = a_model_folder(tmp_path / "m")
    (folder / "chat_template.jinja").write_text(text)
    (line,) = check_model(files_of(folder)).warnings
    assert line.startswith("chat_template.jinja: the chat template fails for every conversation: ")
    (folder / "chat_template.jinja").unlink()
    edited("tokenizer_config.json", chat_template=text)(folder)
    (line,) = check_model(files_of(folder)).warnings
    assert line.startswith("tokenizer_config.json: the chat template fails for every")


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "model.safetensors", "chat_template.jinja"]
)
def test_a_pointer_of_git_lfs_is_named_with_its_remedy(tmp_path, name):
    folder = a_model_folder(tmp_path / "m")
    (folder / name).write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    with pytest.raises(WeightsError, match=rf"{name}: is a pointer of git-lfs.*`git lfs pull`"):
        check_model(files_of(folder))


@pytest.mark.parametrize("digits", [(6, 6), (5, 6)])
def test_shards_of_six_digits_are_a_model(tmp_path, digits):
    folder, (of, total) = a_model_folder(tmp_path / "m", 2), digits
    names = {f"model-{n:05}-of-00002.safetensors": f"model-{n:0{of}}-of-{2:0{total}}.safetensors"
             for n in (1, 2)}  # fmt: skip
    index = json.loads((folder / MAP).read_text())["weight_map"]
    for old, new in names.items():
        (folder / old).rename(folder / new)
    edited(MAP, weight_map={key: names[name] for key, name in index.items()})(folder)
    assert check_model(files_of(folder)).weights == tuple(sorted(names.values()))


def resaved(change):
    def damage(folder):
        weights = folder / "model.safetensors"
        save_file(change(load_file(weights)), weights)

    return damage


NORM = "model.layers.0.input_layernorm.weight"
MISFITS = {
    "a tensor is missing": (
        resaved(lambda all: {n: t for n, t in all.items() if n != NORM}),
        f"lacks 1 tensor that config.json describes: {NORM}; give the config.json"),
    "a surplus tensor": (
        resaved(lambda all: all | {"score.weight": all[NORM]}), "describe: score.weight; give"),
    "a layer less": (edited("config.json", num_hidden_layers=2), "lacks 9 tensors"),
    "a layer more": (edited("config.json", num_hidden_layers=0), "num_hidden_layers = 0"),
    "quantised weights": (
        resaved(lambda all: {n: t.astype("int8") for n, t in all.items()}),
        "holds 11 tensors of I8, which are no weights, or quantised ones: model.embed_tokens"),
    "a truth among floats": (
        resaved(lambda all: all | {NORM: all[NORM] > 0}),
        f"1 tensor of BOOL, which are no weights, or quantised ones: {NORM}"),
    "another shape": (
        resaved(lambda all: all | {NORM: all[NORM][:1]}), f"{NORM} of [1] instead of [2]"),
    "a compiled module": (
        resaved(lambda all: {f"_orig_mod.{n}": t for n, t in all.items()}), "'_orig_mod.'"),
}  # fmt: skip


@pytest.mark.parametrize("what", MISFITS)
def test_weights_that_are_not_those_of_the_config_are_refused_by_name(tmp_path, what):
    damage, reason = MISFITS[what]
    folder = a_model_folder(tmp_path / "m")
    damage(folder)
    with pytest.raises(WeightsError) as refusal:
        check_model(files_of(folder))
    assert reason in str(refusal.value)


EMBEDDING = "model.embed_tokens.weight"
WIDTHS = {"F64": 2**64 - 2**52, "F32": 0x7FC00000, "F16": 0xFC00, "BF16": 0xFF80, "F8_E5M2": 0x7E,
          "F8_E4M3": 0xFF}  # fmt: skip


def planted(dtype, bits, place=5):
    """A file of one tensor of ones with these bits in place of one of them."""
    kind = {"F64": "<u8", "F32": "<u4"}.get(dtype, "<u1" if dtype.startswith("F8") else "<u2")
    numbers = np.zeros((4, 3), kind)
    numbers.flat[place] = bits
    entry = {"dtype": dtype, "shape": [4, 3], "data_offsets": [0, numbers.nbytes]}
    return a_file({"w": entry}, numbers.tobytes())


@pytest.mark.parametrize("dtype", WIDTHS)
def test_numbers_that_are_not_finite_are_found_in_every_width(dtype):
    for bits, refused in ((WIDTHS[dtype], True), (1, False)):
        content = planted(dtype, bits)
        file = io.BytesIO(content)
        tensors = read_tensors(file, len(content), "x")
        if not refused:
            assert refuse_not_finite(file, tensors, "x") == tensors["w"].size
            continue
        with pytest.raises(WeightsError, match=r"tensor 'w' holds NaN or an infinity at \[1, 2\]"):
            refuse_not_finite(file, tensors, "x")
        assert refuse_not_finite(file, tensors, "x", most=tensors["w"].size - 1) == 0


def test_numbers_beyond_float32_are_refused_and_the_largest_of_every_width_are_not():
    def bits(number):
        return int(np.float64(number).view(np.uint64))

    largest = float(np.finfo(np.float32).max)
    cases = [("F64", bits(1e300), True), ("F64", bits(-(2.0**128)), True),
             ("F64", bits(largest), False), ("F64", bits(-largest), False),
             ("F32", 0xFF7FFFFF, False), ("F16", 0x7BFF, False), ("BF16", 0x7F7F, False),
             ("F8_E5M2", 0x7B, False), ("F8_E4M3", 0x7E, False)]  # fmt: skip
    for dtype, number, refused in cases:
        content = planted(dtype, number)
        file = io.BytesIO(content)
        tensors = read_tensors(file, len(content), "x")
        if refused:
            with pytest.raises(WeightsError, match=r"\[1, 2\], or a number beyond float32; save"):
                refuse_not_finite(file, tensors, "x")
        else:
            refuse_not_finite(file, tensors, "x")


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused_by_tensor_and_file(tmp_path, shards, number):
    folder = a_model_folder(tmp_path / "m", shards)
    files = sorted(folder.glob("*.safetensors"))
    weights = load_file(files[-1])
    name = f"model.layers.{shards - 1}.mlp.down_proj.weight"
    weights[name][1, 2] = number
    save_file(weights, files[-1])
    with pytest.raises(WeightsError) as refusal:
        check_model(files_of(folder))
    assert f"{files[-1].name}: tensor '{name}' holds NaN or an infinity at [1, 2]; save" in str(
        refusal.value
    )


def test_an_output_that_differs_from_the_embedding_it_is_tied_to_is_refused(tmp_path):
    folder = a_model_folder(tmp_path / "m")
    weights = load_file(folder / "model.safetensors")
    weights[EMBEDDING][0] = 0.0
    for more in (-0.0, 1.0):
        output = weights[EMBEDDING].copy()
        output[0] = more
        save_file(weights | {"lm_head.weight": output}, folder / "model.safetensors")
        if not more:
            check_model(files_of(folder))
    with pytest.raises(WeightsError, match=r"model\.safetensors: holds an output that differs"):
        check_model(files_of(folder))
    edited("config.json", tie_word_embeddings=False)(folder)
    check_model(files_of(folder))


def test_shards_that_lack_a_tensor_are_refused_with_their_index(tmp_path):
    folder = a_model_folder(tmp_path / "m", 3)
    part = load_file(folder / SECOND)
    del part["model.layers.1.mlp.up_proj.weight"]
    save_file(part, folder / SECOND)
    index = json.loads((folder / MAP).read_text())
    del index["weight_map"]["model.layers.1.mlp.up_proj.weight"]
    (folder / MAP).write_text(json.dumps(index))
    with pytest.raises(WeightsError, match=r"index\.json: lacks 1 tensor .*layers\.1\.mlp\.up"):
        check_model(files_of(folder))


@pytest.mark.parametrize(
    "name",
    ["../config.json", "/etc/passwd", "a/config.json", "config.json\0", "CONFIG.JSON", "", ".",
     "model-00001-of-00002.safetensors/../x", "model-00001-of-00002.safetensors\n", "a\\b",
     "m\u043edel.safetensors", "config\uff0ejson", "C:config.json",
     "model-\u0660\u0660\u0660\u0660\u0661-of-00001.safetensors"],
)  # fmt: skip
def test_a_name_that_is_not_on_the_list_is_refused(name):
    with pytest.raises(WeightsError, match="leave it out"):
        refuse_names([name])


def test_two_tensors_of_one_name_in_two_files_are_refused(tmp_path):
    folder = a_model_folder(tmp_path / "m", 2)
    first, second = sorted(folder.glob("model-*.safetensors"))
    second.write_bytes(first.read_bytes())
    index = {"weight_map": dict.fromkeys(load_file(first), first.name)}
    (folder / MAP).write_text(json.dumps(index))
    with pytest.raises(WeightsError, match="is in another file too"):
        check_model(files_of(folder))


def test_models_of_other_weights_have_other_digests():
    one = {"model.safetensors": "a" * 64, "config.json": "b" * 64}
    assert digest_of(one) == "a" * 64
    shards = {f"model-0000{n}-of-00002.safetensors": "a" * 64 for n in (1, 2)}
    swapped = {**shards, "model-00002-of-00002.safetensors": "c" * 64}
    assert digest_of(shards) != digest_of(swapped) != digest_of(one)
