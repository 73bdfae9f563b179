"""The tokenizer inside a GGUF file, so that a llama.cpp server's prompts are counted and cut locally.

A GGUF begins with its metadata, and the metadata holds the whole tokenizer: tokens, merges, token types and
the name of a pre-tokenizer (`tokenizer.ggml.pre`). `read_metadata` reads that part and never the tensors;
`tokenizer_from_gguf` builds a `tokenizers.Tokenizer` whose ids are those of the server's `/tokenize` with
`add_special: false, parse_special: true`. What it cannot build exactly it refuses with `GgufError`, and the
caller falls back to `/tokenize`.

Sources of fact: the GGUF specification (ggml, `docs/gguf.md`); llama.cpp, `src/llama-vocab.cpp` (names and
expressions of pre-tokenizers, special tokens) and `src/unicode.cpp` (how the expressions are read there).
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tokenizers import Tokenizer


class GgufError(ValueError):
    """The file is not a GGUF that can be read, or its tokenizer is not one that can be rebuilt exactly."""


@dataclass(frozen=True)
class GgufTokenizer:
    """A served model's tokenizer, and what its server adds around a prompt.

    Attributes:
        tokenizer: Adds no special tokens by itself; special tokens written in the text are read as such.
            Offsets are characters of the original text; a token that is part of a character has the offsets
            of the whole character. A byte that the vocabulary cannot spell (SmolLM2: U+0004 and some other
            control characters) has no token, as on the server.
        add_bos: Whether the server puts `bos_token` before a prompt given as text.
        add_eos: Whether it puts `eos_token` after one.
        bos_token: The text of the begin-of-sequence token; None when the file names none.
        bos_id: Its id.
        eos_token: The text of the end-of-sequence token; None when the file names none.
        eos_id: Its id.
        chat_template: The Jinja source of the chat template; None when the file has none.
    """

    tokenizer: Tokenizer
    add_bos: bool
    add_eos: bool
    bos_token: str | None
    bos_id: int | None
    eos_token: str | None
    eos_id: int | None
    chat_template: str | None


def read_metadata(path: str | Path) -> dict[str, object]:
    """Read the key/value pairs at the head of a GGUF file (versions 2 and 3, little-endian).

    Args:
        path: The file; of a model in several files, the first.

    Returns:
        The values by key, in the file's order: int, float, bool, str, or a list of one of them.

    Raises:
        GgufError: The file is not a GGUF, is cut off inside its metadata, or uses a version or a value type
            that this reader does not know.
    """
    with Path(path).open("rb") as file:
        if file.read(4) != b"GGUF":
            raise GgufError(f"{path} is not a GGUF file: it does not begin with the letters GGUF.")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _Reader(data).metadata()
            except struct.error:
                message = f"{path} ends inside its metadata, at byte {len(data)}: copy or download it again."
                raise GgufError(message) from None
            except GgufError as error:
                raise GgufError(f"{path} {error}") from None


def tokenizer_from_gguf(source: str | Path | Mapping[str, object]) -> GgufTokenizer:
    """Rebuild the tokenizer of a GGUF model.

    Args:
        source: The file, or its metadata as `read_metadata` returns it.

    Raises:
        GgufError: The file cannot be read, or its tokenizer is not a byte-level BPE with one of the known
            pre-tokenizers.
    """
    metadata = read_metadata(source) if isinstance(source, str | Path) else source
    model, kind = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre", "default")
    if model != "gpt2":
        raise _unknown(f"tokenizer kind {model!r} is not byte-level BPE ('gpt2')")
    family = next((family for family in _FAMILIES if kind in family.kinds), None)
    if family is None:
        raise _unknown(f"pre-tokenizer kind {kind!r} is not one of those known here")
    tokens = cast("list[str]", metadata.get("tokenizer.ggml.tokens") or [])
    if not tokens:
        raise _unknown("GGUF file holds no vocabulary ('tokenizer.ggml.tokens')")

    def named(which: str) -> tuple[str | None, int | None]:
        index = metadata.get(f"tokenizer.ggml.{which}_token_id")
        return (tokens[index], index) if isinstance(index, int) and index < len(tokens) else (None, None)

    (bos_token, bos_id), (eos_token, eos_id) = named("bos"), named("eos")
    template = metadata.get("tokenizer.chat_template")
    return GgufTokenizer(
        tokenizer=_byte_level_bpe(tokens, metadata, family),
        add_bos=bos_id is not None and bool(metadata.get("tokenizer.ggml.add_bos_token", family.adds_bos)),
        add_eos=eos_id is not None and bool(metadata.get("tokenizer.ggml.add_eos_token", False)),
        bos_token=bos_token,
        bos_id=bos_id,
        eos_token=eos_token,
        eos_id=eos_id,
        chat_template=template if isinstance(template, str) else None,
    )


# --- reading ------------------------------------------------------------------------------------------------

_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class _Reader:
    """A position in the bytes of a GGUF; a read beyond their end raises `struct.error`."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 4

    def metadata(self) -> dict[str, object]:
        (version,) = self.unpack("I")
        if version not in (2, 3):
            raise GgufError(f"has GGUF version {version}; versions 2 and 3, little-endian, can be read.")
        _, n_pairs = self.unpack("QQ")
        return {self.strings(1)[0]: self.value(self.unpack("I")[0]) for _ in range(n_pairs)}

    def unpack(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from(f"<{layout}", self.data, self.at)
        self.at += struct.calcsize(f"<{layout}")
        return values

    def value(self, kind: int) -> object:
        if kind == _ARRAY:
            element, count = self.unpack("IQ")
            # A damaged count must not be believed: every element takes at least a byte.
            if count > len(self.data) - self.at:
                raise struct.error
            return self.strings(count) if element == _STRING else list(self.scalars(element, count))
        return self.strings(1)[0] if kind == _STRING else self.scalars(kind, 1)[0]

    def scalars(self, kind: int, count: int) -> tuple[int, ...]:
        # An array of arrays, which the format allows, ends here too: llama.cpp reads none.
        if kind not in _SCALARS:
            raise GgufError(f"has a value of type {kind}, which is not known here, at byte {self.at}.")
        return self.unpack(f"{count}{_SCALARS[kind]}")

    def strings(self, count: int) -> list[str]:
        # Vocabularies are read here, 300,000 strings in some files: local names, one pass.
        data, at, length = self.data, self.at, struct.Struct("<Q")
        found: list[str] = []
        for _ in range(count):
            start = at + 8
            at = start + length.unpack_from(data, at)[0]
            if at > len(data):
                raise struct.error
            found.append(data[start:at].decode("utf-8", "replace"))
        self.at = at
        return found


# --- building -----------------------------------------------------------------------------------------------

_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4

# llama.cpp takes these for control tokens whatever type the file gives them.
_CONTROL_TEXTS = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<eos>",
    "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
    "<end_of_turn>", "<end_of_utterance>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[",
}  # fmt: skip


def _unknown(reason: str) -> GgufError:
    return GgufError(f"The {reason}; the server's /tokenize will be used instead.")


def _byte_level_bpe(tokens: list[str], metadata: Mapping[str, object], family: _Family) -> Tokenizer:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers  # ~50 ms

    # Of a merge listed twice the first counts, as in llama.cpp; BPE alone would take the last.
    merges = dict.fromkeys(cast("list[str]", metadata.get("tokenizer.ggml.merges") or []))
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    vocabulary = {text: index for index, text in enumerate(tokens)}
    try:
        bpe = models.BPE(vocab=vocabulary, merges=pairs, ignore_merges=family.prefers_whole_words)
    except Exception as error:  # noqa: BLE001  (tokenizers raises bare Exception)
        raise _unknown(f"GGUF file's merges do not fit its vocabulary ({error})") from None
    tokenizer = Tokenizer(bpe)
    splits = [pre_tokenizers.Split(Regex(split), "isolated") for split in family.splits]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    types = cast("list[int]", metadata.get("tokenizer.ggml.token_type") or [1] * len(tokens))
    added = [
        AddedToken(text, special=kind != _USER_DEFINED, normalized=False)
        for text, kind in zip(tokens, types, strict=False)
        if kind in (_UNKNOWN, _CONTROL, _USER_DEFINED) or text in _CONTROL_TEXTS
    ]
    tokenizer.add_tokens(added)  # pyright: ignore[reportUnknownMemberType]
    return tokenizer


# --- the pre-tokenizers of llama.cpp ------------------------------------------------------------------------
# The expressions are applied one after the other, each to the pieces that the one before left; what an
# expression does not match stays a piece. Where llama.cpp's reading differs from the expression it prints,
# the reading is written here. Each family is compared with a server in tests/endpoints/test_gguf_server.py; over all
# code points only some letters and signs that came with Unicode 16 (2024) differ, by the age of the tables.


@dataclass(frozen=True)
class _Family:
    """Pre-tokenizer names that split alike; with `prefers_whole_words` a word that is a token stays whole."""

    kinds: frozenset[str]
    splits: tuple[str, ...]
    prefers_whole_words: bool = False
    adds_bos: bool = False


_SHORT = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_SPACE = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = rf"{_SHORT}|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}|{_SPACE}"
_QWEN2 = rf"{_SHORT}|{_WORD}|\p{{N}}|{_SIGNS}|{_SPACE}"
_QWEN35 = _QWEN2.replace(r"\p{L}+", r"[\p{L}\p{M}]+").replace(r"[^\s\p{L}", r"[^\s\p{L}\p{M}")
# llama.cpp tells capitals from small letters in ASCII only: any other letter may stand on either side.
_CAPITAL, _SMALL = r"[\p{L}&&[^a-z]]", r"[\p{L}&&[^A-Z]]"
_CASED = rf"[^\r\n\p{{L}}\p{{N}}]?(?:{_CAPITAL}*{_SMALL}+|{_CAPITAL}+{_SMALL}*)"
_SLASHED = rf" ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACE}"
_DEEPSEEK3 = (
    r"[!-/:-~&&[^A-Za-z]][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACE}"
)
_KANA = "[\u4e00-\u9fa5\u3040-\u30ff]+"
_HAN_HANGUL = "[[\u0800-\u9fa5\uac00-\ud7ff]&&[^\\s]]+"
_DEEPSEEK_LETTERS = (
    "A-Za-z\xb5\xc0-\xd6\xd8-\xf6\xf8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376"
    "\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-"
    "\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b"
    "\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59"
    "\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3"
    "\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d"
    "\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00"
    "-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787"
    "\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f"
    "\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-"
    "\U000118df\U0001e900-\U0001e943"
)


def _family(kinds: str, *splits: str, whole: bool = False, bos: bool = False) -> _Family:
    return _Family(frozenset(kinds.split()), splits, whole, bos)


_FAMILIES = (
    _family("default", r"[\p{P}$+<=>^~|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]"),
    _family("gpt-2 phi-2 mpt olmo jais trillion granite-docling gigachat a.x-4.0 mellum exaone4", _GPT2),
    _family("smollm starcoder refact command-r codeshell exaone minerva-7b mellum2", r"\p{N}", _GPT2),
    _family("falcon", r"[\p{P}$+<=>^~|`]+", _GPT2, "[0-9][0-9][0-9]"),
    _family("llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral lfm2", _LLAMA3, whole=True, bos=True),
    _family("dbrx smaug-bpe glm4 chatglm-bpe", _LLAMA3),
    _family("qwen2 deepseek-r1-qwen kormo megrez stablelm2 hunyuan solar-open grok-2", _QWEN2),
    _family("qwen35", _QWEN35),
    _family("deepseek-v3 hunyuan-dense joyai-llm", r"\p{N}{1,3}", _KANA, _DEEPSEEK3),
    _family("deepseek-coder", r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _HAN_HANGUL, r"\p{N}"),
    _family(
        "deepseek-llm",
        r"[\r\n]",
        rf"\s?[{_DEEPSEEK_LETTERS}]+",
        r"\s?[!-/:-~！-／：-～‘-‟、。]+",
        r"\s+\z",
        _HAN_HANGUL,
        r"\p{N}+",
    ),
    _family("tekken", rf"{_CASED}|\p{{N}}|{_SLASHED}", whole=True, bos=True),
    _family("gpt-4o llama4 kanana2 minimax-m2", rf"{_CASED}{_SHORT}?|\p{{N}}{{1,3}}|{_SLASHED}"),
)
