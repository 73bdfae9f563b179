"""What `import tinyeval` offers, and that it costs next to nothing."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

import tinyeval
from tinyeval import version

HEAVY = {
    "aiohttp",
    "asyncio",
    "huggingface_hub",
    "jieba",
    "jinja2",
    "jsonschema_rs",
    "msgspec",
    "numpy",
    "rich",
    "tokenizers",
}
HEAVY |= {"typer", "uvloop"}


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", tinyeval.__all__)
def test_every_public_name_can_be_used_and_says_what_it_is(name: str) -> None:
    assert getattr(tinyeval, name).__doc__


def test_the_public_names_are_sorted_and_each_once() -> None:
    assert list(tinyeval.__all__) == sorted(set(tinyeval.__all__), key=lambda n: (n.islower(), n))


def test_a_star_import_brings_exactly_the_public_names() -> None:
    found = json.loads(python("before = set(globals())\nfrom tinyeval import *\nimport json\n"
                              "print(json.dumps(sorted(set(globals()) - before - {'before', 'json'})))"))  # fmt: skip
    assert found == sorted(tinyeval.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'tinyeval' has no attribute 'evaluate'"):
        _ = tinyeval.evaluate  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ImportError):
        importlib.import_module("tinyeval.evaluate")


def test_importing_the_package_imports_nothing_but_itself_and_a_little_of_the_standard_library() -> None:
    code = (
        "import sys; before = set(sys.modules); import tinyeval; print(*sorted(set(sys.modules) - before), sep='\\n')"
    )
    added = python(code).split()
    assert {m for m in added if m.startswith("tinyeval")} == {"tinyeval", "tinyeval.version"}
    assert not HEAVY & {m.partition(".")[0] for m in added}
    assert len(added) < 40


def test_records_and_errors_need_neither_network_nor_terminal() -> None:
    code = "import sys, tinyeval; tinyeval.Doc; tinyeval.Registry; tinyeval.metrics; print(*sys.modules, sep='\\n')"
    loaded = {m.partition(".")[0] for m in python(code).split()}
    assert not {"aiohttp", "tokenizers", "rich", "typer", "jieba", "uvloop", "huggingface_hub"} & loaded


def test_the_version_is_told() -> None:
    assert tinyeval.__version__ == version.VERSION
    done = subprocess.run([sys.executable, "-m", "tinyeval", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"tinyeval {version.VERSION}\n"
