"""What an installation brings along: counted from the metadata of what is installed, without a network."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
MOST_DISTRIBUTIONS = 50
MOST_MEGABYTES = 380


def closure(name: str) -> dict[str, Distribution]:
    """A distribution and all that its base installation requires on this machine."""
    found: dict[str, Distribution] = {}
    todo: list[tuple[str, frozenset[str]]] = [(name, frozenset())]
    while todo:
        wanted, extras = todo.pop()
        if wanted in found and not extras:
            continue
        found[wanted] = distribution(wanted)
        for text in found[wanted].requires or []:
            requirement = Requirement(text)
            if requirement.marker is None or any(requirement.marker.evaluate({"extra": e}) for e in ("", *extras)):
                name = canonicalize_name(requirement.name)
                if name not in found or requirement.extras:
                    todo.append((name, frozenset(requirement.extras)))
    return found


def test_the_base_installation_stays_light() -> None:
    found = closure("tinyeval")
    size = sum(
        path.stat().st_size
        for d in found.values()
        for file in d.files or []
        if (path := Path(str(d.locate_file(file)))).is_file()
    )
    print(f"{len(found)} distributions, {size / 1e6:.0f} MB")
    assert len(found) <= MOST_DISTRIBUTIONS, sorted(found)
    assert size <= MOST_MEGABYTES * 1e6
    assert not {"torch", "transformers", "datasets", "xllamacpp"} & set(found)


@pytest.mark.slow
def test_the_wheel_holds_the_evaluator_the_embedded_server_and_the_task_library(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("tinyeval-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path / "unpacked")
    for file in (
        "tinyeval/cli/run.py",
        "tinyeval/py.typed",
        "tinyserve/__main__.py",
        "tinyeval/task_library/groups.toml",
    ):
        assert file in names
    assert not any(n.startswith(("tests/", "benchmarks/")) for n in names)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import tinyeval;"
        "assert tinyeval.__file__.startswith(sys.argv[1]), tinyeval.__file__;"
        "print(len(tinyeval.Registry().get_task_dict(['demo'])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "unpacked")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "7"


def test_help_loads_nothing_that_only_a_run_needs() -> None:
    code = (
        "import sys; from tinyeval.cli import main; sys.argv = ['tinyeval', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = ('aiohttp', 'tokenizers', 'jieba', 'huggingface_hub', 'uvloop', 'jinja2')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")
