"""Names, options and configurations that are wrong get a sentence and status 2."""

from __future__ import annotations

from typing import Any

import pytest

MODEL = '[models.qwen]\nurl = "http://127.0.0.1:1"\n'


@pytest.mark.parametrize(
    ("files", "arguments", "expected"),
    [
        # Names
        ({}, "-t demo|qa_zn", "no task is named 'demo|qa_zn' (did you mean 'demo|qa_zh' or 'demo|qa_en'"),
        ({}, "-t mine.toml", "mine.toml can't be read: No such file or directory; name a file that exists."),
        ({}, "-t custom_zh=mine.json", "custom_zh=mine.json: the file mine.json does not exist."),
        ({}, "-m qwen", "-m qwen: expected NAME=URL, for example -m qwen=http://127.0.0.1:8080."),
        ({}, "-m http://127.0.0.1:8080", "-m http://127.0.0.1:8080: expected NAME=URL"),
        ({}, "-m q=127.0.0.1:8080", "-m q=127.0.0.1:8080: url = '127.0.0.1:8080': expected http://HOST:PORT"),
        (
            {},
            "--resume . --limit 3",
            "--resume takes the settings of the run it names; leave the other settings out.",
        ),
        # The configuration
        ({}, "nowhere.toml", "nowhere.toml can't be read: No such file or directory; name a file that exists."),
        ({"tinyeval.toml": "tasks = [\n"}, "", "tinyeval.toml is not valid TOML: Invalid value (at "),
        (
            {"c.toml": "a\n"},
            "c.toml",
            "c.toml is not valid TOML: Expected '=' after a key in a key/value pair (at line 1,",
        ),
        (
            {"c.toml": 'taks = ["demo"]'},
            "c.toml",
            "c.toml: unknown key 'taks' (did you mean 'tasks'?). Known here: tasks,",
        ),
        ({"c.toml": 'limit = "all"'}, "c.toml", "c.toml: limit = 'all': expected int, got str."),
        (
            {"c.toml": MODEL + '[models.qwen.generation]\ntemperature = "low"'},
            "c.toml",
            "c.toml: models.qwen.generation.temperature = 'low': expected float, got str.",
        ),
        (
            {"c.toml": MODEL + "[models.qwen.generation]\ntemperatur = 0.5"},
            "c.toml",
            "c.toml: unknown key 'models.qwen.generation.temperatur' (did you mean 'temperature'?).",
        ),
        ({"c.toml": MODEL + 'api = "http"'}, "c.toml", "c.toml: models.qwen.api = 'http': expected 'tgi' or"),
        (
            {"c.toml": b"limit = 1\n# " + "配置".encode("gb18030")},
            "c.toml",
            "c.toml, line 2: not UTF-8 (byte 0xc5 at offset 12); convert it",
        ),
        ({"c.toml": "tasks = []"}, "c.toml", "no task is named: set tasks in the configuration, or use -t."),
    ],
)
def test_a_mistake_in_the_settings_is_one_sentence_with_status_2_and_changes_nothing(
    refused: Any, files: dict[str, str | bytes], arguments: str, expected: str
) -> None:
    refused(files, arguments, expected)


def test_an_unset_environment_variable_is_told_with_key_and_name(
    tinyeval: Any, write: Any, qa: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    write(qa | {"c.toml": MODEL + 'api_key = "${NO_SUCH_KEY}"'})
    outcome = tinyeval("run", "c.toml", "-t", "qa.toml")
    sentence = "tinyeval: models.qwen.api_key: the environment variable NO_SUCH_KEY is not set; export it first.\n"
    assert outcome == (2, "", sentence)
