"""Writes GGUF files: any metadata, small vocabularies made of it, and models of zeros that a server can load."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers


def packed(value: Any) -> tuple[int, bytes]:
    """A metadata value as its GGUF type and bytes."""
    match value:
        case bool():
            return 7, struct.pack("<?", value)
        case int():
            return 4, struct.pack("<I", value)
        case float():
            return 6, struct.pack("<f", value)
        case str():
            return 8, struct.pack("<Q", len(value.encode())) + value.encode()
        case [int(), *_]:
            return 9, struct.pack(f"<IQ{len(value)}i", 5, len(value), *value)
        case _:
            items = [packed(item) for item in value]
            return 9, struct.pack("<IQ", items[0][0], len(items)) + b"".join(item for _, item in items)


def write(path: Path, metadata: dict[str, Any], version: int = 3, width: int = 0) -> Path:
    """Write a GGUF file; with a `width`, of a llama with one layer of zeros that a server can load."""
    shapes: dict[str, tuple[int, ...]] = {}
    if width:
        square, row = (width, width), (width,)
        shapes = {"token_embd": (width, len(metadata["tokenizer.ggml.tokens"])), "output_norm": row}
        shapes |= {f"blk.0.{name}_norm": row for name in ("attn", "ffn")}
        shapes |= {f"blk.0.attn_{name}": square for name in ("q", "k", "v", "output")}
        shapes |= {f"blk.0.ffn_{name}": square for name in ("gate", "up", "down")}
        architecture = {"block_count": 1, "context_length": 256, "embedding_length": width}
        architecture |= {"feed_forward_length": width, "attention.head_count": 1, "rope.dimension_count": width}
        architecture |= {"attention.layer_norm_rms_epsilon": 1e-5}
        metadata = {"general.architecture": "llama"} | {f"llama.{k}": v for k, v in architecture.items()} | metadata
    out = bytearray(b"GGUF" + struct.pack("<IQQ", version, len(shapes), len(metadata)))
    for key, value in metadata.items():
        kind, data = packed(value)
        out += packed(key)[1] + struct.pack("<I", kind) + data
    offset = 0
    for name, shape in shapes.items():
        out += packed(f"{name}.weight")[1] + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        out += struct.pack("<IQ", 0, offset)
        offset += -(-math.prod(shape) * 4 // 32) * 32
    out += bytes(-len(out) % 32 + offset)
    path.write_bytes(out)
    return path


SAMPLE = "The cat's whiskers WON'T they're 12 345 don't\n\n  return x == y;\t// déjà vu 中文字 中文 हिन्दी 한국어 🙂🙂 "
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"  # as in Qwen2's own tokenizer.json
)


def tiny_reference() -> Tokenizer:
    """A small byte-level BPE, trained by `tokenizers`, that splits as Qwen2 does and spells every byte."""
    tokenizer = Tokenizer(models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    split = pre_tokenizers.Split(Regex(QWEN2), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"], show_progress=False
    )
    tokenizer.train_from_iterator([SAMPLE] * 3, trainer)
    return tokenizer


REFERENCE = tiny_reference()


def tiny_metadata(*more: tuple[str, int], **changes: Any) -> dict[str, Any]:
    """The metadata of `REFERENCE`; `more` are further tokens with their types, `changes` are metadata."""
    model = json.loads(REFERENCE.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    types = [3] + [1] * (len(tokens) - 1)
    values: dict[str, Any] = {
        "model": "gpt2",
        "pre": "qwen2",
        "tokens": tokens + [text for text, _ in more],
        "token_type": types + [kind for _, kind in more],
        "merges": [" ".join(pair) for pair in model["merges"]],
        "bos_token_id": 0,
        "eos_token_id": 0,
    }
    return {f"tokenizer.ggml.{key}": value for key, value in (values | changes).items()}


def revealing_metadata(kind: str) -> dict[str, Any]:
    """A vocabulary whose merges join any two neighbouring characters, so that the ids show every split."""
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    spell = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str
    signs = [spell(sign)[0][0] for sign in "aA1.~ \n"]
    last = [spell(chr(0x80 + i))[0][0][1] for i in range(64)]
    first = [letter for letter in alphabet if letter not in last]
    pairs = [(a, b) for a in signs + last for b in first] + [(a, b) for a in last for b in signs]
    merges = list(dict.fromkeys(f"{a} {b}" for a, b in pairs))
    tokens = [*alphabet, *dict.fromkeys(merge.replace(" ", "") for merge in merges), "<|im_end|>"]
    merges += merges[::-1]  # the first of two equal merges counts
    changes = {"tokens": tokens, "merges": merges, "token_type": [1] * (len(tokens) - 1) + [3], "pre": kind}
    return tiny_metadata(**changes)
