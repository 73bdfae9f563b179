"""tinyeval.toml: what it says, and what a wrong one is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tinyeval.config import EMBEDDED, Config, ModelConfig, decode, expand, load, named_models, public
from tinyeval.errors import ConfigError, RunError

MODEL = '[models.qwen]\nurl = "http://127.0.0.1:8080"\n'


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "tinyeval.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refusal(tmp_path: Path, text: str | bytes) -> str:
    """The sentence that a configuration is refused with, without the folder."""
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as e:
        load(path)
    (sentence,) = str(e.value).splitlines()
    return sentence.replace(f"{tmp_path}/", "")


def test_no_file_means_the_demo_on_the_embedded_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load(None) == Config(tasks=["demo"], output="runs", models=EMBEDDED)
    written(tmp_path, 'tasks = ["demo|qa_zh"]')
    assert load(None) == Config(tasks=["demo|qa_zh"], models=EMBEDDED)


def test_every_key_has_its_place(tmp_path: Path) -> None:
    text = """
        tasks = ["demo"]
        output = "out"
        limit = 5
        seed = 7
        [models.qwen]
        url = "https://gpu1:8080/prefix"
        api = "tgi"
        tokenizer = "Qwen/Qwen2.5-7B-Instruct"
        api_key = "${QWEN_KEY}"
        chat = true
        concurrency = 16
        max_length = 4096
        timeout = 30
        [models.qwen.generation]
        temperature = 0.7
        top_p = 0.9
        top_k = 40
        repetition_penalty = 1.1
        [models.small]
        api = "local"
        model = "org/repo/file.gguf"
        revision = "main"
    """
    config = load(written(tmp_path, text))
    assert (config.output, config.limit, config.seed) == ("out", 5, 7)
    assert list(config.models) == ["qwen", "small"]
    assert config.models["qwen"].generation.top_k == 40
    assert config.models["qwen"].timeout == 30.0
    assert config.models["small"] == ModelConfig(api="local", model="org/repo/file.gguf", revision="main")


def test_a_byte_order_mark_does_not_matter(tmp_path: Path) -> None:
    assert load(written(tmp_path, b"\xef\xbb\xbf" + b"limit = 3")).limit == 3


def test_paths_inside_a_file_are_relative_to_it(tmp_path: Path) -> None:
    for name in ("own.toml", "rows.json", "m.gguf"):
        (tmp_path / name).touch()
    tasks = 'tasks = ["own.toml", "custom_zh=rows.json", "demo", "custom_en=elsewhere.json"]\n'
    config = load(written(tmp_path, tasks + '[models.m]\napi = "local"\nmodel = "m.gguf"'))
    assert config.tasks == [
        str(tmp_path / "own.toml"), f"custom_zh={tmp_path / 'rows.json'}", "demo", "custom_en=elsewhere.json",
    ]  # fmt: skip
    assert config.models["m"].model == str(tmp_path / "m.gguf")


def test_a_list_of_names_longer_than_a_files_name_may_be_is_a_list_of_names(tmp_path: Path) -> None:
    names = ",".join(["demo|qa_zh"] * 60)
    assert load(written(tmp_path, f'tasks = ["{names}"]')).tasks == [names]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tasks = [", "tinyeval.toml is not valid TOML: Invalid value (at end of document)."),
        ('tasks = "demo"', "tinyeval.toml: tasks = 'demo': expected array, got str."),
        ('tasks = ["demo", 5]', "tinyeval.toml: tasks.1 = 5: expected str, got int."),
        (
            'task = ["demo"]',
            "tinyeval.toml: unknown key 'task' (did you mean 'tasks'?). Known here: tasks, output, limit",
        ),
        ("limit = 0", "tinyeval.toml: limit = 0: expected int >= 1."),
        ("limit = 2.5", "tinyeval.toml: limit = 2.5: expected int, got float."),
        ('seed = "x"', "tinyeval.toml: seed = 'x': expected int, got str."),
        ("output = 5", "tinyeval.toml: output = 5: expected str, got int."),
        ("models = 5", "tinyeval.toml: models = 5: expected a table a model: [models.NAME] and its keys."),
        ('[models]\nurl = "http://h"', "tinyeval.toml: models.url is no table: expected [models.NAME] and its keys."),
        (MODEL + 'ap1 = "tgi"', "tinyeval.toml: unknown key 'models.qwen.ap1' (did you mean 'api'"),
        (MODEL + 'api = "grpc"', "tinyeval.toml: models.qwen.api = 'grpc': expected 'tgi' or 'llamacpp' or 'local'."),
        (MODEL + "chat = 1", "tinyeval.toml: models.qwen.chat = 1: expected bool, got int."),
        (
            MODEL + 'concurrency = "many"',
            "tinyeval.toml: models.qwen.concurrency = 'many': expected 'auto' or a number.",
        ),
        (MODEL + "concurrency = 0", "tinyeval.toml: models.qwen.concurrency = 0: expected int >= 1."),
        (MODEL + "timeout = 0", "tinyeval.toml: models.qwen.timeout = 0: expected float > 0.0."),
        (MODEL + "max_length = 1.5", "tinyeval.toml: models.qwen.max_length = 1.5: expected int, got float."),
        (MODEL + "generation = 5", "tinyeval.toml: models.qwen.generation = 5: expected table, got int."),
        (
            MODEL + '[models.qwen.generation]\ntemperature = "hot"',
            "tinyeval.toml: models.qwen.generation.temperature = 'hot': expected float, got str.",
        ),
        (
            MODEL + "[models.qwen.generation]\ntemperature = -1",
            "tinyeval.toml: models.qwen.generation.temperature = -1: expected float >= 0.0.",
        ),
        (
            MODEL + "[models.qwen.generation]\ntop_p = 1.5",
            "tinyeval.toml: models.qwen.generation.top_p = 1.5: expected float <= 1.0.",
        ),
        (
            MODEL + "[models.qwen.generation]\ntemprature = 0.5",
            "tinyeval.toml: unknown key 'models.qwen.generation.temprature' (did you mean 'temperature'?). "
            "Known here: temperature, top_p, top_k, repetition_penalty.",
        ),
        ("[models.qwen]\n", 'tinyeval.toml: models.qwen: url is missing; name the server, or say api = "local"'),
        ("[models.qwen]\nurl = 5", "tinyeval.toml: models.qwen.url = 5: expected str | array, got int."),
        (
            '[models.qwen]\nurl = "h:80"',
            "tinyeval.toml: models.qwen: url = 'h:80': expected http://HOST:PORT or https://HOST.",
        ),
        ("[models.qwen]\nurl = []", "tinyeval.toml: models.qwen: url = []: expected one URL"),
        (
            '[models.qwen]\nurl = ["http://a", "http://b"]',
            "tinyeval.toml: models.qwen: url = ['http://a', 'http://b']: expected one URL (replicas are not supported",
        ),
        (MODEL + 'model = "x.gguf"', 'tinyeval.toml: models.qwen: model only goes with api = "local"'),
        (MODEL + 'revision = "x"', 'tinyeval.toml: models.qwen: revision only goes with api = "local"'),
        (MODEL + 'api = "local"', 'tinyeval.toml: models.qwen: url and api = "local" exclude each other'),
        ('[models."a b"]\nurl = "http://h"', "tinyeval.toml: models.a b: the name 'a b' must be letters, digits,"),
        ('[models.".."]\nurl = "http://h"', "tinyeval.toml: models...: the name '..' must be letters, digits,"),
        (
            '[models.docs]\nurl = "http://h"',
            "tinyeval.toml: models.docs: the name 'docs' is taken by a run's own files",
        ),
        (
            b"limit = 1\n# " + "设置".encode("gb18030"),
            "tinyeval.toml, line 2: not UTF-8 (byte 0xc9 at offset 12); convert it, for example: iconv",
        ),
    ],
)
def test_a_mistake_is_told_with_file_key_value_and_expectation(
    tmp_path: Path, text: str | bytes, expected: str
) -> None:
    assert refusal(tmp_path, text).startswith(expected)


def test_a_missing_file_or_a_folder_in_its_place_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"nowhere\.toml can't be read: No such file or directory; name a file that exists\."
    ):
        load(tmp_path / "nowhere.toml")
    with pytest.raises(ConfigError, match="can't be read: Is a directory"):
        load(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        MODEL + 'api_key = ["sk-secret"]',
        MODEL + 'api_key = { key = "sk-secret" }',
        '[models]\napi_key = "sk-secret"\nurl = "http://h"',
        MODEL + 'api_key = "sk-secret"\napi = "grpc"',
        MODEL + 'api_key = "sk-secret"\nchat = 1',
        MODEL + 'apikey = "sk-secret"',
        '[models.qwen]\napi_key = "sk-secret"',
    ],
)
def test_a_key_is_not_told_whatever_is_wrong(tmp_path: Path, text: str) -> None:
    assert "sk-secret" not in refusal(tmp_path, text)


def test_options_name_models() -> None:
    assert named_models(["a=http://h:1", "b=https://h/p?q=1", "c=http://[::1]:80"]) == {
        "a": ModelConfig(url="http://h:1"),
        "b": ModelConfig(url="https://h/p?q=1"),
        "c": ModelConfig(url="http://[::1]:80"),
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["qwen"], "-m qwen: expected NAME=URL, for example -m qwen=http://127.0.0.1:8080."),
        (["http://127.0.0.1:8080"], "-m http://127.0.0.1:8080: expected NAME=URL"),
        (["=http://h"], "-m =http://h: expected NAME=URL"),
        (["qwen="], "-m qwen=: expected NAME=URL"),
        (["qwen=127.0.0.1:8080"], "-m qwen=127.0.0.1:8080: url = '127.0.0.1:8080': expected http://HOST:PORT"),
        (["qwen=ftp://h"], "url = 'ftp://h': expected http://HOST:PORT or https://HOST."),
        (["qwen=http://"], "url = 'http://': expected http://HOST:PORT"),
        (["qwen=http://h:port"], "url = 'http://h:port': expected http://HOST:PORT"),
        (["qwen=http://h:99999"], "url = 'http://h:99999': expected http://HOST:PORT"),
        (["qwen=http://[::1"], "url = 'http://[::1': expected http://HOST:PORT"),
        (["qwen=http://h:1/a b"], "url = 'http://h:1/a b': expected http://HOST:PORT"),
        (
            ["qwen=http://ann:sk-secret@h"],
            "-m qwen=…: url has a name or a password in it, which would be written down; set api_key.",
        ),
        (["org/qwen=http://h"], "the name 'org/qwen' must be letters, digits, '.', '_' or '-': it names a folder."),
        (["a=http://h", "a=http://i"], "-m a=http://i: the name 'a' is given twice; each model needs its own."),
        (["usage.json=http://h"], "the name 'usage.json' is taken by a run's own files; choose another."),
    ],
)
def test_an_option_of_another_form_is_told(options: list[str], expected: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(expected)):
        named_models(options)


def test_a_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "x${B}$y")
    assert expand("Bearer-${A_KEY}-$A_KEY", "models.q.api_key") == "Bearer-x${B}$y-$A_KEY"
    monkeypatch.delenv("B_KEY", raising=False)
    with pytest.raises(
        ConfigError, match=r"models\.q\.api_key: the environment variable B_KEY is not set; export it first\."
    ):
        expand("${A_KEY}${B_KEY}", "models.q.api_key")


def test_what_is_written_down_has_a_key_only_as_a_reference() -> None:
    model = ModelConfig(url="http://h", api_key="${KEY}", concurrency=2)
    assert public(model)["api_key"] == "${KEY}"
    for literal in ("sk-secret", "${KEY}sk-secret", "sk-${KEY}"):
        assert "api_key" not in public(ModelConfig(url="http://h", api_key=literal))
    assert decode(public(model), ModelConfig, "run.json") == model


def test_a_mistake_in_a_written_configuration_is_told_like_any_other() -> None:
    with pytest.raises(
        RunError, match=re.escape("run.json: models.*.url = {'q': {'url': 5}}: expected str | array, got int")
    ):
        decode({"models": {"q": {"url": 5}}}, Config, "run.json", error=RunError)
