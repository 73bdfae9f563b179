"""Local tokenizers: from a folder, from a hub, and never trusted before they agree with the server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from tinyeval.endpoints.tokenizer import PROBES, LocalTokenizer, load_files
from tinyeval.errors import ConfigError, EndpointError


def byte_level(*, bos: bool = True) -> tokenizers.Tokenizer:
    """A byte-level BPE with a few merges; every character that is not ASCII is split."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ġ", "c"), ("Ġc", "at")]
    words = ["<s>", "</s>", *alphabet, "th", "the", "Ġthe", "Ġc", "at", "Ġcat"]
    merges.insert(4, ("a", "t"))
    vocabulary = {word: i for i, word in enumerate(words)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(["<s>", "</s>"])
    if bos:
        tokenizer.post_processor = tokenizers.processors.TemplateProcessing("<s> $A", None, [("<s>", 0)])
    return tokenizer


def folder(path: Path, config: dict[str, Any] | None = None, template: str | None = None, **how: Any) -> str:
    path.mkdir(exist_ok=True)
    byte_level(**how).save(str(path / "tokenizer.json"))
    if config is not None:
        (path / "tokenizer_config.json").write_text(json.dumps(config))
    if template is not None:
        (path / "chat_template.jinja").write_text(template, encoding="utf-8")
    return str(path)


# --- a folder ------------------------------------------------------------------------------------------------


async def test_a_folder_gives_ids_places_and_bytes_of_every_token(tmp_path: Path) -> None:
    local = load_files(folder(tmp_path)).tokenizer
    for text in (*PROBES, " the cat", "厦门大学", "a😀b👍🏽", "", "<s>literal</s>"):
        found = await local.encode(text)
        assert b"".join(found.pieces) == text.encode()
        assert {c for a, b in found.spans for c in range(a, b)} == set(range(len(text)))
        assert len(found.ids) == len(found.spans) == len(found.pieces)
        whole = await local.encode(text, special=True)
        assert (whole.ids, whole.spans) == ([0, *found.ids], [(0, 0), *found.spans])


async def test_each_token_of_a_split_character_has_the_place_of_the_whole(tmp_path: Path) -> None:
    found = await load_files(folder(tmp_path)).tokenizer.encode("a好😀")
    assert found.spans == [(0, 1), *[(1, 2)] * 3, *[(2, 3)] * 4]


async def test_what_the_server_puts_before_a_prompt_is_put_there(tmp_path: Path) -> None:
    plain = load_files(folder(tmp_path, bos=False)).tokenizer
    assert await plain.encode("the cat", special=True) == await plain.encode("the cat")
    local = LocalTokenizer(byte_level(), adds_special=False, bos_id=1)
    assert (await local.encode("the", special=True)).ids == [1, *(await local.encode("the")).ids]
    assert (await local.encode("the", special=True)).spans[0] == (0, 0)


async def test_truncation_and_padding_of_the_file_are_off(tmp_path: Path) -> None:
    tokenizer = byte_level()
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=64)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    local = load_files(str(tmp_path)).tokenizer
    assert len((await local.encode("a" * 50, special=True)).ids) == 51


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ x }}", "{{ x }}"),
        ([{"name": "tool_use", "template": "no"}, {"name": "default", "template": "{{ y }}"}], "{{ y }}"),
        ([{"name": "tool_use", "template": "no"}], None),
        (None, None),
    ],
    ids=["one", "a list with a default", "a list without", "none"],
)
def test_the_template_of_the_configuration_is_read_in_either_form(tmp_path: Path, template: Any, expected: Any) -> None:
    config = {} if template is None else {"chat_template": template}
    assert load_files(folder(tmp_path, config)).chat_template == expected


def test_a_template_file_goes_before_the_configuration(tmp_path: Path) -> None:
    files = load_files(folder(tmp_path, {"chat_template": "old"}, "{{ '你好' }}"))
    assert files.chat_template == "{{ '你好' }}"


def test_special_tokens_are_read_as_a_text_or_as_an_object(tmp_path: Path) -> None:
    files = load_files(folder(tmp_path, {"bos_token": {"content": "<s>", "lstrip": False}, "eos_token": "</s>"}))
    assert (files.bos_token, files.eos_token) == ("<s>", "</s>")
    for config in ({"bos_token": None}, {}, None):
        path = tmp_path / str(config)
        assert load_files(folder(path, config)).bos_token == ""


def test_a_folder_without_a_tokenizer_is_told(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text("{}")
    with pytest.raises(
        ConfigError, match=r"tokenizer = '.*': the folder has no tokenizer.json; give a folder with"
    ) as caught:
        load_files(str(tmp_path))
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("file", ["tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("content", ["", "{", "[]", "version https://git-lfs.github.com/spec/v1\noid sha256:0"])
def test_a_damaged_file_is_told_by_its_name(tmp_path: Path, file: str, content: str) -> None:
    folder(tmp_path, {})
    (tmp_path / file).write_text(content)
    with pytest.raises(ConfigError, match=rf"tokenizer = '.*': {file} can't be read"):
        load_files(str(tmp_path))


# --- agreement with the server -------------------------------------------------------------------------------


async def test_a_tokenizer_of_another_model_stops_the_run_with_the_text_that_shows_it(
    serve: Any, open_model: Any, tmp_path: Path
) -> None:
    with pytest.raises(
        EndpointError, match=r"models\.m: the tokenizer is not that of the served model: 'The quick brown fox"
    ):
        await open_model(await serve(), tokenizer=folder(tmp_path))


@pytest.fixture
async def same_words(serve: Any, fake: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A fake TGI that serves the byte-level model of these tests."""
    tokenizer = byte_level()

    def tokenize(text: str, *, special: bool = True) -> list[Any]:
        encoded = tokenizer.encode(text, add_special_tokens=special)
        before = [0, *(len(text[: i + 1].encode()) for i in range(len(text)))]
        places = [(before[a], before[b]) for a, b in encoded.offsets]
        return [fake.Token(i, tokenizer.decode([i]), a, b) for i, (a, b) in zip(encoded.ids, places, strict=True)]

    monkeypatch.setattr(fake, "tokenize", tokenize)
    return await serve(template=False)


async def test_a_tokenizer_that_agrees_counts_without_the_server(
    same_words: Any, open_model: Any, tmp_path: Path
) -> None:
    endpoint = await open_model(same_words, tokenizer=folder(tmp_path))
    asked = same_words.requests["/tokenize"]
    assert asked == len(PROBES)
    text = "the cat 厦门 😀"
    assert len((await endpoint.encode_prompt(text)).ids) == len(
        (await endpoint.server_tokenizer.encode(text, special=True)).ids
    )
    assert same_words.requests["/tokenize"] == asked + 1


async def test_the_served_revision_is_that_of_the_tokenizer_only_if_it_is_the_served_model(
    serve: Any, open_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve(model_id="org/model", model_sha="5" * 40)
    asked = []

    def load(name: str, revision: str | None = None) -> Any:
        asked.append((name, revision))
        raise ConfigError("enough")

    monkeypatch.setattr("tinyeval.endpoints.detect.load_files", load)
    for name in ("org/model", "org/its-base"):
        with pytest.raises(ConfigError):
            await open_model(server, tokenizer=name)
    assert asked == [("org/model", "5" * 40), ("org/its-base", None)]


async def test_a_named_tokenizer_that_adds_another_beginning_is_not_trusted(
    same_words: Any, open_model: Any, tmp_path: Path
) -> None:
    with pytest.raises(EndpointError, match="not that of the served model"):
        await open_model(same_words, tokenizer=folder(tmp_path, bos=False))


async def test_the_template_beside_a_named_tokenizer_is_rendered_here_and_its_beginning_left_to_the_server(
    same_words: Any, open_model: Any, tmp_path: Path
) -> None:
    template = "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant]"
    endpoint = await open_model(same_words, tokenizer=folder(tmp_path, {"bos_token": "<s>"}, template))
    assert endpoint.has_chat_template
    prompt = await endpoint.render_chat([{"role": "user", "content": "the cat"}])
    assert prompt == "[user] the cat\n[assistant]"
    assert (await endpoint.encode_prompt(prompt)).ids.count(0) == 1
    assert same_words.requests["/chat_tokenize"] == 0


# --- a hub ---------------------------------------------------------------------------------------------------

PROGRAM = """
import asyncio, json, sys
from tinyeval.endpoints.tokenizer import load_files
from tinyeval.errors import ConfigError

for name, revision in json.loads(sys.argv[1]):
    try:
        files = load_files(name, revision)
        found = asyncio.run(files.tokenizer.encode("the cat", special=True)).ids
        print(json.dumps({"ids": found, "template": files.chat_template, "bos": files.bos_token}))
    except ConfigError as e:
        print(json.dumps({"error": str(e)}))
"""


def from_hub(url: str, home: Path, *names: tuple[str, str | None], **environment: str) -> list[dict[str, Any]]:
    """Loads in a process of its own: the hub's address is read when its library is imported."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HF_") and not k.lower().endswith("_proxy")}
    hf = {"HF_HOME": str(home), "HF_ENDPOINT": url, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    arguments = [sys.executable, "-c", PROGRAM, json.dumps(names)]
    done = subprocess.run(arguments, env=kept | hf | environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_a_hub_id_is_fetched_once_and_then_needs_no_hub(hub: Any, tmp_path: Path, closed_url: str) -> None:
    source = Path(folder(tmp_path / "source", {"bos_token": "<s>", "chat_template": "{{ x }}"}))
    files = {file.name: file.read_bytes() for file in source.iterdir()}
    commit = "c0ffee" + "0" * 34
    hub.put("org/whole", files)
    hub.put("org/bare", {"tokenizer.json": files["tokenizer.json"]})
    hub.put("org/weights", {"model.safetensors": b"0"})
    hub.put("org/gated", files)
    hub.gated.add("org/gated")
    expected = [0, *byte_level().encode("the cat", add_special_tokens=False).ids]
    whole = {"ids": expected, "template": "{{ x }}", "bos": "<s>"}
    bare = {"ids": expected, "template": None, "bos": ""}
    wanted = [("org/whole", None), ("org/whole", commit), ("org/bare", None)]
    others = [("org/weights", None), ("org/nobody", None), ("org/gated", None), ("org/whole", "no-such-branch")]

    found = from_hub(hub.url, tmp_path / "hf", *wanted, *others, ("not/a/model", None))
    assert found[:3] == [whole, whole, bare]
    missing, nobody, gated, revision, malformed = (f["error"] for f in found[3:])
    assert (
        "no such folder, and the hub has no such file; give a folder with tokenizer.json or a hub id org/repo"
        in missing
    )
    for name, said in (
        ("org/nobody", nobody),
        ("org/gated", gated),
        ("org/whole", revision),
        ("not/a/model", malformed),
    ):
        assert f"tokenizer = '{name}'" in said
        assert "the hub refuses" in said
        assert "\n" not in said
    assert "HF_TOKEN" in gated

    assert from_hub(closed_url, tmp_path / "hf", *wanted) == [whole, whole, bare]
    offline = from_hub(closed_url, tmp_path / "hf", ("org/bare", None), ("org/never-seen", None), HF_HUB_OFFLINE="1")
    assert offline[0] == bare
    assert "tokenizer.json is not in the cache and the hub can't be reached" in offline[1]["error"]
