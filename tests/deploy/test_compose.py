"""The Compose files: valid by the specification, and serving models the way an evaluation needs them."""

from __future__ import annotations

import copy
import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from tinyeval import config

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "deploy/compose.yaml"
DOCKERFILE = ROOT / "deploy/evaluator.Dockerfile"
EXAMPLE = ROOT / "examples/two-served-models/tinyeval.toml"

# The flags of TGI's launcher that matter to an evaluation (its docs/source/reference/launcher.md); each can
# be given as the environment variable of the same name in upper snake case.
LAUNCHER_FLAGS = """
    --model-id --revision --dtype --kv-cache-dtype --quantize --trust-remote-code --tokenizer-config-path
    --max-concurrent-requests --max-stop-sequences --max-top-n-tokens --max-best-of --max-client-batch-size
    --max-input-tokens --max-total-tokens --max-batch-prefill-tokens --max-batch-total-tokens --payload-limit
    --enable-prefill-logprobs --disable-grammar-support --speculate --usage-stats --validation-workers
    --num-shard --sharded --cuda-memory-fraction --cuda-graphs --port --graceful-termination-timeout
"""
KNOWN_SETTINGS = {flag[2:].replace("-", "_").upper() for flag in re.findall(r"--\S+", LAUNCHER_FLAGS)}
# Read by the server or the hub client, without a flag.
KNOWN_SETTINGS |= {"HF_TOKEN", "HF_HUB_OFFLINE", "PREFIX_CACHING", "PREFILL_CHUNKING"}


def interpolate(value: Any) -> Any:
    """`${NAME:-default}` becomes its default, as Compose does it in an empty environment."""
    if isinstance(value, dict):
        return {k: interpolate(v) for k, v in value.items()}
    if isinstance(value, list):
        return [interpolate(v) for v in value]
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value) if isinstance(value, str) else value


def seconds(duration: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(s|m)", duration).groups()
    return int(number) * {"s": 1, "m": 60}[unit]


def gpus(service: dict[str, Any]) -> list[str]:
    (device,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert device["driver"] == "nvidia"
    assert device["capabilities"] == ["gpu"]
    return device["device_ids"]


def published(service: dict[str, Any]) -> tuple[str, str, str]:
    """Host address, host port, container port."""
    (port,) = service["ports"]
    return tuple(port.split(":"))


def instructions(dockerfile: Path) -> list[tuple[str, str]]:
    text = re.sub(r"^\s*#.*\n", "", dockerfile.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


def reaches_the_builder(path: str) -> bool:
    """Whether .dockerignore lets a path through: the last pattern that matches it or a parent decides."""
    sent = True
    parents = [path, *(str(p) for p in Path(path).parents)]
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!").replace(".", r"\.")
        pattern = re.sub(r"(?<!\*)\*(?!\*)", "[^/]*", pattern).replace("**/", "(.*/)?")
        if any(re.fullmatch(pattern, p) for p in parents):
            sent = line.startswith("!")
    return sent


RAW = yaml.safe_load(COMPOSE.read_text())
SERVICES = interpolate(RAW["services"])
SERVERS = ["tgi", "tgi-b"]
each_server = pytest.mark.parametrize("name", SERVERS)


# Validity


@pytest.fixture(scope="module")
def specification() -> jsonschema_rs.Validator:
    """The Compose specification's own JSON schema, as the package check-jsonschema carries it."""
    package = importlib.metadata.distribution("check-jsonschema")
    path = Path(package.locate_file("check_jsonschema/builtin_schemas/vendor/compose-spec.json"))
    return jsonschema_rs.validator_for(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", ["compose.yaml", "deploy/compose.yaml"])
def test_a_compose_file_follows_the_specification(specification: jsonschema_rs.Validator, path: str):
    text = yaml.safe_load((ROOT / path).read_text())
    assert [f"{list(e.instance_path)}: {e.message}" for e in specification.iter_errors(text)] == []


@pytest.mark.parametrize(
    "spoil",
    [
        lambda s: s["tgi"].update(stop_grace_perod="120s"),
        lambda s: s["tgi"]["healthcheck"].update(start_perod="30m"),
        lambda s: s["tgi"]["deploy"]["resources"]["reservations"]["devices"][0].pop("capabilities"),
        lambda s: s["evaluator"]["depends_on"]["tgi"].update(condition="healthy"),
        lambda s: s["tgi"].update(ports={"8080": "80"}),
    ],
)
def test_a_mistake_would_be_found(specification: jsonschema_rs.Validator, spoil: Callable[[Any], object]):
    spoilt = copy.deepcopy(RAW)
    spoil(spoilt["services"])
    assert not specification.is_valid(spoilt)


def test_the_root_file_only_includes_the_other():
    assert yaml.safe_load((ROOT / "compose.yaml").read_text()) == {"include": ["deploy/compose.yaml"]}


def docker_compose() -> list[str] | None:
    """The command of a Docker Compose that knows `include` and optional env files; no engine is needed."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]):
            done = subprocess.run([*command, "version", "--short"], capture_output=True, text=True)
            version = re.match(r"v?(\d+)\.(\d+)", done.stdout)
            if done.returncode == 0 and version and (int(version[1]), int(version[2])) >= (2, 24):
                return command
    return None


@pytest.mark.skipif(docker_compose() is None, reason="no Docker Compose >= 2.24 here")
@pytest.mark.parametrize(
    ("profiles", "services"),
    [([], {"tgi"}), (["two"], {"tgi", "tgi-b"}), (["two", "evaluator"], {"tgi", "tgi-b", "evaluator"})],
)
def test_docker_compose_accepts_the_files_from_the_root(profiles: list[str], services: set[str]):
    options = [part for profile in profiles for part in ("--profile", profile)]
    command = [*docker_compose(), *options, "config", "--format", "json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)["services"]) == services


# The servers


@each_server
def test_a_server_gets_only_settings_that_tgi_knows(name: str):
    assert set(SERVICES[name]["environment"]) - KNOWN_SETTINGS == set()
    assert "command" not in SERVICES[name], "the entry point splits arguments at spaces"


@each_server
def test_a_server_is_set_up_for_evaluation(name: str):
    settings = SERVICES[name]["environment"]
    assert [k for k, v in settings.items() if isinstance(v, bool)] == [], "YAML read a word as a truth value"
    assert settings["ENABLE_PREFILL_LOGPROBS"] == "true"
    assert settings["USAGE_STATS"] == "off"
    assert settings["MAX_STOP_SEQUENCES"] == "16"
    assert settings["MAX_TOP_N_TOKENS"] == "20"
    assert int(settings["MAX_CONCURRENT_REQUESTS"]) >= 512
    assert int(settings["VALIDATION_WORKERS"]) >= 4
    assert {"SPECULATE", "TRUST_REMOTE_CODE", "DISABLE_GRAMMAR_SUPPORT"} & set(settings) == set()


@each_server
def test_a_server_takes_the_longest_prompt_it_promises(name: str):
    settings = {k: int(v) for k, v in SERVICES[name]["environment"].items() if v and v.isdecimal()}
    assert settings["MAX_INPUT_TOKENS"] + 1024 <= settings["MAX_TOTAL_TOKENS"], "1,024 are planned for an answer"
    # Tokens of text seldom have more than eight characters, and JSON may escape each to twelve bytes.
    assert settings["PAYLOAD_LIMIT"] > max(2_000_000, settings["MAX_INPUT_TOKENS"] * 8 * 12)


@each_server
def test_prefix_caching_and_chunking_can_be_switched_off_from_outside(name: str):
    settings = SERVICES[name]["environment"]
    assert [settings["PREFIX_CACHING"], settings["PREFILL_CHUNKING"]] == [None, None]


@each_server
def test_a_server_runs_one_pinned_version(name: str):
    image = r"ghcr\.io/huggingface/text-generation-inference:3\.3\.7(@sha256:[0-9a-f]{64})?"
    assert re.fullmatch(image, SERVICES[name]["image"])


@each_server
def test_a_slow_start_or_a_long_prefill_does_not_make_a_server_unhealthy(name: str):
    health = SERVICES[name]["healthcheck"]
    assert health["test"] == ["CMD", "curl", "-f", "http://localhost:80/health"]
    assert seconds(health["timeout"]) >= 30
    assert seconds(health["start_period"]) >= 600
    assert health["retries"] >= 3


@each_server
def test_a_server_finishes_what_it_is_asked_before_it_stops(name: str):
    assert seconds(SERVICES[name]["stop_grace_period"]) > 90
    assert SERVICES[name]["restart"] == "unless-stopped"


@each_server
def test_a_server_is_reached_from_this_machine_only(name: str):
    assert published(SERVICES[name])[0] == "127.0.0.1"
    assert "network_mode" not in SERVICES[name]


@each_server
def test_a_server_keeps_its_weights_and_has_shared_memory(name: str):
    (volume,) = SERVICES[name]["volumes"]
    source, target = volume.split(":")
    assert target == "/data"
    assert source in RAW["volumes"]
    assert SERVICES[name]["shm_size"] == "1g"


@each_server
def test_a_server_has_as_many_gpus_as_shards(name: str):
    assert len(gpus(SERVICES[name])) == int(SERVICES[name]["environment"]["NUM_SHARD"])


def test_each_server_has_a_gpu_of_its_own():
    assert [gpus(SERVICES[name]) for name in SERVERS] == [["0"], ["1"]]
    assert [gpus(RAW["services"][name]) for name in SERVERS] == [["${TGI_GPU:-0}"], ["${TGI_B_GPU:-1}"]]


def test_the_second_server_differs_only_in_model_port_gpu_and_profile():
    first, second = SERVICES["tgi"], SERVICES["tgi-b"]
    different = {k for k in first.keys() | second.keys() if first.get(k) != second.get(k)}
    assert different == {"environment", "ports", "deploy", "profiles"}
    settings = first["environment"].items() ^ second["environment"].items()
    assert {k for k, _ in settings} == {"MODEL_ID"}
    assert published(first)[::2] == published(second)[::2]


def test_one_service_starts_unless_a_profile_asks_for_more():
    assert [name for name, service in SERVICES.items() if "profiles" not in service] == ["tgi"]


def test_models_and_revisions_are_chosen_by_the_environment():
    chosen = {name: RAW["services"][name]["environment"] for name in SERVERS}
    assert chosen["tgi"]["MODEL_ID"] == "${TGI_MODEL:-Qwen/Qwen2.5-7B-Instruct}"
    assert chosen["tgi-b"]["MODEL_ID"] == "${TGI_B_MODEL:-Qwen/Qwen2.5-1.5B-Instruct}"
    assert [s["REVISION"] for s in chosen.values()] == ["${TGI_REVISION:-main}", "${TGI_B_REVISION:-main}"]


def test_secrets_are_passed_on_and_never_written_down():
    for service in SERVICES.values():
        settings = service["environment"]
        secrets = {k: v for k, v in settings.items() if re.search("TOKEN$|KEY|SECRET|PASSWORD", k)}
        # Not "${HF_TOKEN:-}": the hub refuses the empty token that this would set.
        assert secrets == {"HF_TOKEN": None}
    for path in (COMPOSE, DOCKERFILE, EXAMPLE):
        assert not re.search(r"\b(hf_|sk-)\w{8,}", path.read_text())


# The evaluator


def test_the_evaluator_waits_for_a_healthy_server_and_asks_it():
    evaluator = SERVICES["evaluator"]
    assert evaluator["depends_on"] == {"tgi": {"condition": "service_healthy"}}
    command = evaluator["command"]
    models = config.named_models([command[command.index("-m") + 1]])
    assert [m.url for m in models.values()] == [f"http://tgi:{published(SERVICES['tgi'])[2]}"]


def test_the_evaluator_leaves_its_results_on_the_host():
    (runs,) = [v for v in SERVICES["evaluator"]["volumes"] if isinstance(v, dict)]
    command = SERVICES["evaluator"]["command"]
    assert (COMPOSE.parent / runs["source"]).resolve() == ROOT / "runs"
    workdir = dict(instructions(DOCKERFILE))["WORKDIR"]
    assert Path(f"{workdir}/{command[command.index('-o') + 1]}").parent == Path(runs["target"])
    assert f"../examples:{workdir}/examples:ro" in SERVICES["evaluator"]["volumes"]


def test_the_evaluator_is_not_root():
    lines = instructions(DOCKERFILE)
    assert SERVICES["evaluator"]["user"] == "1000:1000"
    assert dict(lines)["USER"] == "evaluator"
    assert any(k == "RUN" and "--uid 1000" in v for k, v in lines)


def test_the_evaluator_is_built_on_one_pinned_python():
    build = SERVICES["evaluator"]["build"]
    assert (COMPOSE.parent / build["context"]).resolve() == ROOT
    assert ROOT / build["dockerfile"] == DOCKERFILE
    lines = instructions(DOCKERFILE)
    assert re.fullmatch(r"PYTHON=3\.12\.\d+-slim-\w+", dict(lines)["ARG"])
    assert {v.split(" AS ")[0] for k, v in lines if k == "FROM"} == {"python:${PYTHON}"}


def copied_sources() -> list[str]:
    copies = [v.split() for k, v in instructions(DOCKERFILE) if k == "COPY" and "--from" not in v]
    return [source for *sources, _ in copies for source in sources]


def test_only_what_is_copied_reaches_the_builder():
    assert [s for s in copied_sources() if not reaches_the_builder(s)] == []
    assert reaches_the_builder("evaluator/tinyeval/config.py")
    kept_back = [".env", ".git/config", ".venv/bin/python", "runs/1/run.json", "deploy/compose.yaml"]
    kept_back += ["tests/data/a.jsonl", "tasks/.env", "evaluator/tinyeval/__pycache__/config.pyc"]
    assert [path for path in kept_back if reaches_the_builder(path)] == []


@pytest.mark.slow
def test_what_is_copied_is_enough_to_install(tmp_path: Path):
    source, wheels = tmp_path / "source", tmp_path / "wheels"
    for name in copied_sources():
        original, target = ROOT / name, source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if original.is_dir():
            shutil.copytree(original, target)
        else:
            shutil.copy(original, target)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        "--wheel-dir",
        str(wheels),
    ]
    done = subprocess.run([*pip, str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = wheels.iterdir()
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert {"tinyeval/__init__.py", "tinyserve/__init__.py"} <= packed


# The example


def test_the_example_asks_the_servers_that_compose_starts():
    example = config.load(EXAMPLE)
    urls = ["http://{}:{}".format(*published(SERVICES[name])) for name in SERVERS]
    assert [m.url for m in example.models.values()] == urls
    assert {m.api for m in example.models.values()} == {"tgi"}
    assert example.tasks == ["demo"]
    assert not Path(example.output).is_absolute()


def test_the_example_says_what_it_needs_and_what_was_not_tried():
    text = EXAMPLE.with_name("README.md").read_text()
    assert "docker compose --profile two up" in text
    assert "tinyeval run examples/two-served-models/tinyeval.toml" in text
    assert "not been run on a GPU" in text
