"""The ids of `tinyeval.endpoints.gguf` are those of real llama.cpp servers, for every kind of pre-tokenizer."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from tinyeval.endpoints import gguf
from tinyeval.endpoints.gguf import GgufTokenizer, tokenizer_from_gguf

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not importlib.util.find_spec("xllamacpp"), reason="xllamacpp is not installed"),
]

SERVE = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_parallel, params.port = sys.argv[1], 256, 1, 0
params.hostnames, params.cpuparams.n_threads, params.warmup = ["127.0.0.1"], 1, False
server = xllamacpp.Server(params)
print("listening at", server.listening_address, flush=True)
sys.stdin.read()
"""


@contextmanager
def serving(path: Path) -> Iterator[Callable[..., list[int]]]:
    """A llama.cpp server with the model at `path`; yields its /tokenize."""
    command = [sys.executable, "-c", SERVE, str(path)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as process:
        try:
            lines = iter(process.stdout or ())
            url = next((line.split()[-1] for line in lines if line.startswith("listening at ")), None)
            assert url, f"no server for {path}"

            def tokenize(text: str, add_special: bool = False) -> list[int]:
                body = {"content": text, "add_special": add_special, "parse_special": True}
                request = urllib.request.Request(f"{url}/tokenize", json.dumps(body).encode())
                with urllib.request.urlopen(request, timeout=60) as response:
                    return json.load(response)["tokens"]

            yield tokenize
        finally:
            process.terminate()


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False).ids


def test_ids_equal_the_servers_for_smollm2(smollm: GgufTokenizer, texts: Any, smollm_path: Path) -> None:
    assert len(set(texts.ALL)) >= 300
    assert len(texts.LONG.encode()) >= 20_000
    with serving(smollm_path) as tokenize:
        for text in texts.ALL:
            expected = tokenize(text)
            assert ids(smollm.tokenizer, text) == expected
            assert smollm.tokenizer.decode(expected, skip_special_tokens=False) == text
        for text in ("a\x04b", "\x04", "x\U0004fffdy"):
            assert ids(smollm.tokenizer, text) == tokenize(text), "what no token spells is dropped on both sides"


@pytest.mark.parametrize("family", gguf._FAMILIES, ids=lambda family: min(family.kinds))
def test_ids_equal_the_servers_for_every_kind_of_pre_tokenizer(
    family: gguf._Family, tmp_path: Path, gguf_writer: Any, texts: Any
) -> None:
    for kind in sorted(family.kinds):
        path = gguf_writer.write(tmp_path / "m.gguf", gguf_writer.revealing_metadata(kind), width=32)
        tokenizer = tokenizer_from_gguf(path).tokenizer
        with serving(path) as tokenize:
            first = kind == min(family.kinds)
            for text in [*texts.ALL, *texts.random_texts(400, seed=11)] if first else texts.WRITTEN:
                assert ids(tokenizer, text) == tokenize(text), (kind, text)


@pytest.mark.parametrize("kind", ["qwen2", "llama-bpe"])
def test_ids_equal_the_servers_with_added_tokens_and_unreachable_words(
    kind: str, tmp_path: Path, gguf_writer: Any, texts: Any
) -> None:
    more = [("<think>", 4), ("  ", 4), ("    ", 4), ("<tool x>", 3), ("<unk>", 2), ("</s>", 1), ("<plain>", 1), ("", 1)]
    metadata = gguf_writer.tiny_metadata(*more, ("Ġunreachable", 1), ("[PAD9]", 5), pre=kind)
    path = gguf_writer.write(tmp_path / "m.gguf", metadata, width=32)
    built = tokenizer_from_gguf(path)
    extra = ["<think>", "a <think>\n\n</think>", "  ", "   ", "     x", "<tool x></s><unk><plain>[PAD9][EMPTY_1]"]
    with serving(path) as tokenize:
        for text in [*texts.WRITTEN, *extra, "an unreachable word", gguf_writer.SAMPLE]:
            expected = tokenize(text)
            assert ids(built.tokenizer, text) == expected
            assert tokenize(text, add_special=True) == [built.bos_id] * built.add_bos + expected
