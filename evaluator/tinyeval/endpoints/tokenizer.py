"""Local tokenizers: from a folder or the hub (`tokenizer.json`), and out of a GGUF file."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from tinyeval.endpoints.protocol import Encoding, Tokenizer
from tinyeval.errors import ConfigError, EndpointError

if TYPE_CHECKING:
    import tokenizers

PROBES = (
    "The quick brown fox jumps over the lazy dog.",
    "  two spaces,\ttab,\n\nblank line, CRLF\r\n",
    "人民币57081.86元，厦门大学。",
    "naïve café — “quotes” … 😀👍🏽",
    "def f(x):\n    return x**2  # 3.14159",
)
"""Strings on which a local tokenizer must agree with the server before it is trusted."""


class LocalTokenizer:
    """A `tokenizers.Tokenizer` that counts like the served model.

    Args:
        tokenizer: it.
        adds_special: whether encoding with `special` goes through the tokenizer's own post-processor; else
            `bos_id` is put in front.
        bos_id: the id that the server puts before a prompt, if it does.
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer, *, adds_special: bool, bos_id: int | None = None) -> None:
        self._tokenizer = tokenizer
        self._adds_special = adds_special
        self._bos_id = bos_id

    async def encode(self, text: str, *, special: bool = False) -> Encoding:
        """See Tokenizer."""
        encoded = self._tokenizer.encode(text, add_special_tokens=special and self._adds_special)
        ids, spans = list(encoded.ids), list(encoded.offsets)
        if special and self._bos_id is not None:
            ids, spans = [self._bos_id, *ids], [(0, 0), *spans]
        return Encoding(ids, spans, [self._piece(i) for i in ids])

    def _piece(self, token_id: int) -> bytes:
        return _byte_piece(self._tokenizer.id_to_token(token_id) or "")


class Files(msgspec.Struct, frozen=True):
    """What a tokenizer folder holds.

    Attributes:
        tokenizer: the tokenizer.
        chat_template: the model's template, if any.
        bos_token: text of the token that begins a prompt, or "".
        eos_token: text of the token that ends an answer, or "".
    """

    tokenizer: LocalTokenizer
    chat_template: str | None
    bos_token: str
    eos_token: str


def load_files(name: str, revision: str | None = None) -> Files:
    """The tokenizer and chat template of a folder or a hub id.

    Args:
        name: a folder with tokenizer.json, or `org/repo`.
        revision: of the hub id.

    Raises:
        ConfigError: neither has one.
    """
    import tokenizers

    folder = Path(name)
    find = functools.partial(_from_folder, folder) if folder.is_dir() else functools.partial(_from_hub, name, revision)
    path = find("tokenizer.json")
    if path is None:
        where = (
            "the folder has no tokenizer.json" if folder.is_dir() else "no such folder, and the hub has no such file"
        )
        raise ConfigError(f"tokenizer = {name!r}: {where}; give a folder with tokenizer.json or a hub id org/repo.")
    config_path, template_path = find("tokenizer_config.json"), find("chat_template.jinja")
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except Exception as e:  # the library raises nothing more special
        raise ConfigError(f"tokenizer = {name!r}: tokenizer.json can't be read: {e}.") from e
    try:
        config = msgspec.json.decode(config_path.read_bytes(), type=dict[str, Any]) if config_path else {}
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        raise ConfigError(f"tokenizer = {name!r}: tokenizer_config.json can't be read: {e}.") from e
    tokenizer.no_truncation()
    tokenizer.no_padding()
    template = template_path.read_text("utf-8") if template_path else config.get("chat_template")
    if isinstance(template, list):
        named = {t["name"]: t["template"] for t in cast("list[dict[str, str]]", template)}
        template = named.get("default")
    return Files(
        tokenizer=LocalTokenizer(tokenizer, adds_special=True),
        chat_template=template,
        bos_token=_token_text(config.get("bos_token")),
        eos_token=_token_text(config.get("eos_token")),
    )


async def check_agreement(local: Tokenizer, server: Tokenizer, where: str) -> None:
    """Compares a local tokenizer with the server's.

    Raises:
        EndpointError: they differ; the message has the first text on which they do.
    """
    for text in PROBES:
        ours, theirs = (await local.encode(text, special=True)).ids, (await server.encode(text, special=True)).ids
        if ours != theirs:
            raise EndpointError(
                f"{where}: the tokenizer is not that of the served model: {text!r} has the tokens {ours[:8]}… here "
                f"and {theirs[:8]}… on the server. Name the served model's own tokenizer and revision, or none."
            )


def _from_folder(folder: Path, file: str) -> Path | None:
    return folder / file if (folder / file).is_file() else None


def _from_hub(name: str, revision: str | None, file: str) -> Path | None:
    import huggingface_hub
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        if file != "tokenizer.json":  # found first: the commit is known, and perhaps that it lacks this file
            known = huggingface_hub.try_to_load_from_cache(name, file, revision=revision)
            if known is not None and not isinstance(known, str):
                return None
        download = cast("Any", huggingface_hub).hf_hub_download  # its overloads name types without stubs
        return Path(download(name, file, revision=revision))
    except LocalEntryNotFoundError as e:
        raise ConfigError(
            f"tokenizer = {name!r}: {file} is not in the cache and the hub can't be reached; "
            "leave tokenizer out to let the server tokenize, or name a folder."
        ) from e
    except EntryNotFoundError:
        return None
    except (HfHubHTTPError, HFValidationError) as e:
        reason = str(e).strip().splitlines()[0]
        raise ConfigError(f"tokenizer = {name!r}: the hub refuses: {reason} (is HF_TOKEN set, if it is gated?)") from e


def _token_text(token: Any) -> str:
    """Special tokens are written as a text or as an object with `content`."""
    return token.get("content", "") if isinstance(token, dict) else token or ""  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


@functools.lru_cache(maxsize=65536)
def _byte_piece(token: str) -> bytes:
    """The bytes of a byte-level BPE token; other tokens are their own text."""
    table = _byte_table()
    if all(c in table for c in token):
        return bytes(table[c] for c in token)
    return token.encode("utf-8", "surrogatepass")


@functools.cache
def _byte_table() -> dict[str, int]:
    """GPT-2's byte-to-character table, reversed: printable bytes stand for themselves, the rest from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}
