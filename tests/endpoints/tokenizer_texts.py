"""Texts that tell tokenizers apart: languages, signs, code, spaces, digits, oddities, and random mixtures."""

from __future__ import annotations

import random
import re

# Bytes that no token of SmolLM2 spells: U+0004 and so on, and the first bytes of planes 4 to 11.
UNSPELLABLE = re.compile("[\x04\x06\x13\x14\x16\x1d\U00040000-\U000bffff]")

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
ALL = [*WRITTEN, LONG, *random_texts(200, seed=7)]
