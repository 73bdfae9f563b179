"""tinyeval.toml: from text to typed settings; every error names file, key, value and remedy."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from tinyeval.errors import ConfigError, UsageError, nearest

T = TypeVar("T")

Api = Literal["tgi", "llamacpp", "local"]
"""Server dialects. `local` is the embedded llama.cpp server, started and stopped with the run."""

Positive = Annotated[int, Meta(ge=1, le=1 << 30)]


class Generation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How answers are sampled; the default is greedy, the same answer every time."""

    temperature: Annotated[float, Meta(ge=0, le=100)] = 0.0
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    top_k: Annotated[int, Meta(ge=0)] = 0
    repetition_penalty: Annotated[float, Meta(gt=0, le=100)] = 1.0


class ModelConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One served model.

    Attributes:
        url: where it is served; not needed for `local`.
        api: the server's dialect; found out when left out.
        tokenizer: a hub id or a folder with tokenizer.json; left out, the server itself tokenizes
            (or, for `local`, the tokenizer inside the GGUF file is used).
        api_key: sent as a bearer token to this url only; `${NAME}` takes it from the environment.
        chat: render prompts with the model's chat template; left out: if the server has one.
        concurrency: requests in flight, or "auto": what the server says it can take.
        max_length: tokens of prompt and answer together; left out: the server's limit.
        timeout: seconds of silence after which a request is given up and asked again.
        model: `local` only: a GGUF file, or a hub id `org/repo` or `org/repo/file.gguf`.
        revision: `local` only: the revision of the hub id.
        generation: sampling settings.
    """

    url: str | list[str] | None = None
    api: Api | None = None
    tokenizer: str | None = None
    api_key: str | None = None
    chat: bool | None = None
    concurrency: Positive | Literal["auto"] = "auto"
    max_length: Positive | None = None
    timeout: Annotated[float, Meta(gt=0, le=604800)] = 600.0
    model: str | None = None
    revision: str | None = None
    generation: Generation = Generation()


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one run does.

    Attributes:
        tasks: names, files or `custom_zh=FILE`.
        output: the folder that holds the folders of runs.
        limit: at most so many Docs a task.
        seed: seeds everything that is drawn.
        models: name to served model; empty means the embedded one.
        judge: the served model that gives the verdicts of the metric `judge`.
    """

    tasks: list[str] = msgspec.field(default_factory=lambda: ["demo"])
    output: str = "runs"
    limit: Positive | None = None
    seed: Annotated[int, Meta(ge=0)] = 0
    models: dict[str, ModelConfig] = {}
    judge: ModelConfig | None = None


EMBEDDED = {"smollm2-135m": ModelConfig(api="local")}
"""The model that is evaluated when none is named."""

_TAKEN = ("docs", "run.json", "results.json", "usage.json")
"""What else stands in the folder of a run beside the folders of models."""


def load(path: Path | None) -> Config:
    """Reads a configuration file.

    Args:
        path: the file; None takes `tinyeval.toml` of the current folder, or the defaults if there is none.

    Raises:
        ConfigError: the file is missing, no TOML, or says something impossible.
    """
    if path is None:
        path = Path("tinyeval.toml")
        if not path.exists():
            return Config(models=EMBEDDED)
    try:
        raw = tomllib.loads(read_text(path, ConfigError))
    except tomllib.TOMLDecodeError as e:
        raise ConfigError(f"{path} is not valid TOML: {e}.") from e
    tables = raw.pop("models", {})
    if not isinstance(tables, dict):
        raise ConfigError(f"{path}: models = {tables!r}: expected a table a model: [models.NAME] and its keys.")
    for name, table in cast("dict[str, Any]", tables).items():
        if not isinstance(table, dict):  # its value stays unsaid: it may be a key
            raise ConfigError(f"{path}: models.{name} is no table: expected [models.NAME] and its keys.")
    config = decode(raw, Config, str(path))
    base = path.parent
    judge = config.judge
    if judge:
        _check_model(judge, f"{path}: judge", "judge")
        judge = msgspec.structs.replace(judge, **_relative(judge, base))
    models: dict[str, ModelConfig] = {}
    for name, table in cast("dict[str, Any]", tables).items():
        model = decode(table, ModelConfig, str(path), f"models.{name}")
        _check_model(model, f"{path}: models.{name}", name)
        models[name] = msgspec.structs.replace(model, **_relative(model, base))
    tasks = [_task_path(t, base) for t in config.tasks]
    return msgspec.structs.replace(config, models=models or EMBEDDED, tasks=tasks, judge=judge)


def checked(config: Config) -> Config:
    """Settings that were made in a program, checked as if they had been read from a file.

    Raises:
        ConfigError: they say something impossible.
    """
    raw = msgspec.to_builtins(config)
    models = raw.pop("models")
    decode(raw, Config, "the settings")
    for name, model in config.models.items():
        decode(models[name], ModelConfig, "the settings", f"models.{name}")
        _check_model(model, f"models.{name}", name)
    if config.judge:
        _check_model(config.judge, "judge", "judge")
    return config


def absolute(config: Config) -> Config:
    """Settings that mean the same from any folder: the files they name with their whole paths."""
    here = Path.cwd()
    models = {n: msgspec.structs.replace(m, **_relative(m, here)) for n, m in config.models.items()}
    judge = msgspec.structs.replace(config.judge, **_relative(config.judge, here)) if config.judge else None
    tasks = [_task_path(t, here) for t in config.tasks]
    return msgspec.structs.replace(config, models=models, tasks=tasks, judge=judge)


def read_text(path: Path, error: type[UsageError]) -> str:
    """A file's text without its byte order mark.

    Raises:
        UsageError: of the kind `error`: it is missing, unreadable or not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = e.object.count(b"\n", 0, e.start) + 1
        wrong = f"not UTF-8 (byte 0x{e.object[e.start]:02x} at offset {e.start})"
        if e.object.startswith((b"\x1f\x8b", b"PK")):
            raise error(f"{path}: {wrong}: it is a packed file; unpack it.") from e
        encoding = "UTF-16" if e.object.startswith((b"\xff\xfe", b"\xfe\xff")) else "GB18030"
        raise error(f"{path}, line {line}: {wrong}; convert it, for example: iconv -f {encoding} -t UTF-8.") from e
    except OSError as e:
        raise error(f"{path} can't be read: {e.strerror}; name a file that exists.") from e


def named_models(options: list[str]) -> dict[str, ModelConfig]:
    """`-m NAME=URL` options to models.

    Raises:
        ConfigError: an option is not of that form, or a name comes twice.
    """
    models: dict[str, ModelConfig] = {}
    for option in options:
        name, _, url = option.partition("=")
        if not url or not name:
            raise ConfigError(f"-m {option}: expected NAME=URL, for example -m qwen=http://127.0.0.1:8080.")
        if name in models:
            raise ConfigError(f"-m {option}: the name {name!r} is given twice; each model needs its own.")
        models[name] = ModelConfig(url=url)
        _check_model(models[name], f"-m {option}", name)
    return models


def single_url(model: ModelConfig, where: str) -> str:
    """The one url of a served model.

    Raises:
        ConfigError: there is none, or several.
    """
    urls = [model.url] if isinstance(model.url, str) else model.url or []
    if len(urls) != 1:
        raise ConfigError(f"{where}: url = {model.url!r}: expected one URL (replicas are not supported yet).")
    return urls[0]


def expand(value: str, where: str) -> str:
    """Replaces `${NAME}` by the environment's value.

    Raises:
        ConfigError: the variable is not set.
    """

    def look_up(match: re.Match[str]) -> str:
        name = match[1]
        if name not in os.environ:
            raise ConfigError(f"{where}: the environment variable {name} is not set; export it first.")
        return os.environ[name]

    return re.sub(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", look_up, value)


def public(model: ModelConfig) -> dict[str, Any]:
    """A model's settings as they may be written down: an API key only as a reference to the environment."""
    out: dict[str, Any] = {k: v for k, v in msgspec.to_builtins(model).items() if v is not None}
    if model.api_key and not re.fullmatch(r"\$\{\w+\}", model.api_key):
        del out["api_key"]
    return out


def decode(raw: Any, kind: type[T], where: str, prefix: str = "", error: type[UsageError] = ConfigError) -> T:
    """Raw TOML or JSON data to a typed record.

    Args:
        raw: the data.
        kind: a msgspec Struct.
        where: the file, for the error.
        prefix: the key under which `raw` stands in the file.
        error: the kind of error for this file.

    Raises:
        UsageError: of the kind `error`: names `where`, the key, the value found and what was expected.
    """
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as e:
        message, _, place = str(e).partition(" - at ")
        keys = ["*" if k == "..." else k for k in re.findall(r"\w+|\.\.\.", place)]
        key = ".".join([prefix, *keys]).strip(".")
        unknown, missing = (re.search(rf"{what} field `(.+)`", message) for what in ("unknown", "required"))
        if unknown:
            names = _fields_at(kind, keys)
            full = f"{key}.{unknown[1]}".strip(".")
            hint = nearest(unknown[1], names)
            raise error(f"{where}: unknown key {full!r}{hint}. Known here: {', '.join(names)}.") from e
        if missing:
            full = f"{key}.{missing[1]}".strip(".")
            raise error(f"{where}: the key {full!r} is missing.") from e
        expected = (message[:1].lower() + message[1:]).replace("`", "")
        expected = expected.replace("object", "table").replace(" | null", "")
        if options := _options_at(kind, keys) if message.startswith("Invalid enum value") else []:
            expected = f"expected {' or '.join(options)}"
        value = "***" if keys[-1:] == ["api_key"] else repr(_value_at(raw, keys))
        raise error(f"{where}: {f'{key} = ' if key else ''}{value}: {expected}.") from e


def _value_at(raw: Any, keys: list[str]) -> Any:
    """The value that `keys` lead to; `*`, one of several unnamed ones, leads no further."""
    for key in keys[: keys.index("*")] if "*" in keys else keys:
        raw = raw[int(key) if key.isdigit() else key]
    return raw


def _fields_at(kind: Any, keys: list[str]) -> list[str]:
    """The field names of the Struct that `keys` lead to."""
    kind = _kind_at(kind, keys)
    return [f.name for f in msgspec.structs.fields(kind)] if _is_struct(kind) else []


def _options_at(kind: Any, keys: list[str]) -> list[str]:
    """What may stand where `keys` lead to, when it is one of a few words."""
    kind = _kind_at(kind, keys)
    words = [repr(w) for option in (kind, *get_args(kind)) if get_origin(option) is Literal for w in get_args(option)]
    return words + ["a number"] * (Positive in get_args(kind))


def _kind_at(kind: Any, keys: list[str]) -> Any:
    for key in keys:
        fields = msgspec.structs.fields(kind) if _is_struct(kind) else ()
        kind = next((f.type for f in fields if f.name == key), kind)
        kind = next((option for option in (kind, *get_args(kind)) if _is_struct(option)), kind)
    return kind


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _check_model(model: ModelConfig, where: str, name: str) -> None:
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ConfigError(f"{where}: the name {name!r} must be letters, digits, '.', '_' or '-': it names a folder.")
    if name in _TAKEN:
        raise ConfigError(f"{where}: the name {name!r} is taken by a run's own files; choose another.")
    if model.api == "local":
        if model.url is not None:
            raise ConfigError(f'{where}: url and api = "local" exclude each other: the embedded server has no url.')
        if model.api_key is not None:
            raise ConfigError(f'{where}: api_key does not go with api = "local": the embedded server makes its own.')
        return
    if model.url is None:
        raise ConfigError(f'{where}: url is missing; name the server, or say api = "local" for the embedded one.')
    url = single_url(model, where)
    try:
        parts = urlsplit(url)
        right = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and not re.search(r"\s", url)
    except ValueError:  # a port that is no number, a bracket too few
        parts, right = None, False
    if not right or parts is None:
        raise ConfigError(f"{where}: url = {url!r}: expected http://HOST:PORT or https://HOST.")
    if parts.username is not None:
        where = where.replace(url, "…")
        raise ConfigError(f"{where}: url has a name or a password in it, which would be written down; set api_key.")
    for key in ("model", "revision"):
        if getattr(model, key) is not None:
            raise ConfigError(f'{where}: {key} only goes with api = "local"; the server at url has chosen its model.')


def _relative(model: ModelConfig, base: Path) -> dict[str, str]:
    """Paths inside a configuration file are relative to it."""
    named = {key: value for key in ("tokenizer", "model") if (value := cast("str | None", getattr(model, key)))}
    return {key: str(base / value) for key, value in named.items() if _is(Path.exists, base / value)}


def _task_path(task: str, base: Path) -> str:
    """The files of a task definition, or of a list of them, from `base`."""
    name, eq, file = task.rpartition("=")
    if file and _is(Path.is_file, base / file):
        return f"{name}{eq}{base / file}"
    return ",".join(_task_path(part.strip(), base) for part in task.split(",")) if "," in task else task


def _is(question: Callable[[Path], bool], path: Path) -> bool:
    try:
        return question(path)
    except OSError:  # too long for a file's name
        return False
