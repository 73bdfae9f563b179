"""llama.cpp's C++ HTTP server, started inside this process and proved healthy."""

import contextlib
import errno
import importlib
import json
import os
import platform
import socket
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinyserve.errors import ServeError

PROMPT_CACHE_MIB = 64
"""llama.cpp's own default of 8,192 lets the memory grow without end on a small machine."""
SPARE_HTTP_THREADS = 8
"""Beyond two a slot, so that /health and /tokenize answer while every slot is busy and others queue."""
HEALTH_SECONDS = 30.0


@dataclass(frozen=True)
class Settings:
    """How to serve.

    Attributes:
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        slots: Requests served at once.
        context: Tokens a slot holds, prompt and answer together.
        threads: Threads that compute.
        alias: The model's name in the server's answers.
        api_key: What a request must bring as its bearer token; None asks for nothing.
    """

    host: str
    port: int
    slots: int
    context: int
    threads: int
    alias: str
    api_key: str | None


def default_threads() -> int:
    """One thread fewer than this process may use cores: ggml waits spinning, and starves with no core to spare."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, cores - 1)


def load_library() -> Any:
    """Import `xllamacpp`, which has no type stubs.

    Raises:
        ServeError: It is not installed, or this machine cannot run it.
    """
    with contextlib.suppress(OSError):  # only Linux has the file
        require_cpu(platform.machine(), Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace"))
    try:
        return importlib.import_module("xllamacpp")
    except ModuleNotFoundError as fault:
        if fault.name != "xllamacpp":
            raise ServeError(f"xllamacpp is broken ({fault}): install it again") from None
        raise ServeError("the package xllamacpp is not installed: pip install 'tinyeval[local]'") from None
    except (ImportError, OSError) as fault:
        raise ServeError(
            f"xllamacpp does not load on this machine ({' '.join(str(fault).split())}): "
            "serve the model elsewhere and name its url"
        ) from None


def require_cpu(machine: str, cpuinfo: str) -> None:
    """Refuse an x86 processor that the wheel's code would crash on with an illegal instruction.

    Args:
        machine: The architecture, as `platform.machine()` names it.
        cpuinfo: The text of Linux's /proc/cpuinfo.
    """
    flags = set(cpuinfo.partition("flags")[2].partition("\n")[0].split())
    missing = [name for name in ("avx2", "fma", "f16c") if name not in flags]
    if machine in ("x86_64", "AMD64") and flags and missing:
        raise ServeError(
            f"this processor lacks {', '.join(missing)}, which xllamacpp needs: "
            "serve the model elsewhere and name its url"
        )


def require_free(host: str, port: int) -> None:
    """Refuse an address that cannot be listened on, with the system's reason; llama.cpp only logs its own."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            if os.name == "posix":  # as the server does; on Windows the option would hide a listener
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as fault:
        if fault.errno == errno.EADDRINUSE:
            raise ServeError(f"port {port} on {host} is taken: choose another --port, or 0 for a free one") from None
        raise ServeError(f"cannot listen on {host} port {port}: {fault.strerror or fault}") from None


def start(library: Any, model: Path, settings: Settings) -> Any:
    """Load the model and listen; returns the running server, which serves until the process ends.

    Holds the interpreter's lock until the model is loaded: 0.3 to 1 s for the small default.
    """
    p = library.CommonParams()
    p.model.path = str(model)
    p.model_alias = {settings.alias}
    p.hostnames = [settings.host]
    p.port = settings.port
    p.api_keys = [settings.api_key] if settings.api_key else []
    p.cors_origins = "localhost"  # a web page from elsewhere has no business here; the default is everyone
    p.n_parallel = settings.slots
    p.n_ctx = settings.slots * settings.context  # llama.cpp's is the total
    p.kv_unified = False  # a full context for every slot, whatever the others hold
    p.cpuparams.n_threads = settings.threads
    p.cpuparams_batch.n_threads = settings.threads
    p.n_threads_http = 2 * settings.slots + SPARE_HTTP_THREADS
    p.cache_ram_mib = PROMPT_CACHE_MIB
    # Same prompt, same answer, whatever shares the batch or lies in the prompt cache. With F16 keys and values
    # ggml takes other kernels for one row than for many, and log-probabilities moved by up to 0.1 with what else
    # was in flight; BF16 has one kernel (differences: none in 48 answers; long prompts are read 1.5 times slower).
    p.flash_attn_type = library.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
    p.cache_type_k = p.cache_type_v = library.ggml_type.GGML_TYPE_BF16
    p.fit_params = False  # it loads the model twice to shrink what does not fit
    p.ui = False
    p.verbosity = 1  # errors: a full prompt cache alone warns several times a request
    try:
        return library.Server(p)
    except RuntimeError:  # "Failed to init server": the reason is only in its log
        raise ServeError(
            f"llama.cpp could not serve {model} (its log above says why): the file may be cut short, "
            "of an unknown architecture, or too large for this machine with these --slots and --context"
        ) from None


def url_of(server: Any) -> str:
    """The server's URL as this machine reaches it."""
    url: str = server.listening_address
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def served_context(url: str, api_key: str | None) -> int:
    """Wait until the server says that it is healthy; returns the tokens a slot really holds.

    That is `Settings.context` rounded up to a multiple of 256, or what the model was trained for if less.
    """
    deadline = time.monotonic() + HEALTH_SECONDS
    while True:
        try:
            _get(f"{url}/health", api_key)
            return int(_get(f"{url}/props", api_key)["default_generation_settings"]["n_ctx"])
        except (OSError, ValueError) as fault:  # URLError and HTTPError are OSErrors
            if time.monotonic() > deadline:
                raise ServeError(f"the server at {url} is loaded but not healthy: {fault}") from None
            time.sleep(0.05)


def _get(url: str, api_key: str | None) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy would not find this machine
    with opener.open(urllib.request.Request(url, headers=headers), timeout=5) as answer:
        return json.load(answer)
