"""Numbers, amounts of money, measures, dates and times in Chinese and English text, with exact values.

    [q] = scan("五万七千零八十一元八角六分")     # q.readings == {("CNY", Fraction("57081.86"))}

Texts are expected folded: half-width and simplified. A writing with two meanings (¥, pounds, 3/5/2024) has a reading
for each, and two quantities are the same when they share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from fractions import Fraction
from typing import NamedTuple

import regex

Readings = frozenset[tuple[str, Fraction]]
Day = tuple[int | None, int | None, int | None]


class Quantity(NamedTuple):
    """A quantity at [start, end) of a text.

    Attributes:
        start: where it begins.
        end: where it ends.
        stated: the number before its unit.
        readings: (dimension, value in its base unit); the dimension of a bare number is "".
        days: (year, month, day) of a date, None where not told.
    """

    start: int
    end: int
    stated: Fraction
    readings: Readings = frozenset()
    days: frozenset[Day] = frozenset()


_UNITS: dict[str, list[tuple[str, Fraction]]] = {}
for _line in """
m 1 m metre metres meter meters 米 公尺; 1000 km kilometre kilometres kilometer kilometers 公里 千米
m 1/100 cm centimetre centimetres centimeter centimeters 厘米 公分; 1/1000 mm millimetres millimeters 毫米; 1/10 分米
m 500 里 华里; 1/3 尺; 1609344/1000 mile miles mi 英里; 3048/10000 ft foot feet 英尺; 254/10000 inch inches 英寸
m 1/1000000 μm 微米; 1/1000000000 nm 纳米; 1852 海里 nautical_miles; 9144/10000 yard yards 码
kg 1 kg kilogram kilograms kilos 公斤 千克; 1/1000 g gram grams 克; 1/1000000 mg milligrams 毫克; 1/2 斤 市斤
kg 1000 t tonne tonnes 吨; 45359237/100000000 lb lbs pound pounds 磅; 45359237/1600000000 oz ounce ounces 盎司
m2 1 m^2 square_metres square_meters 平方米 平米; 1000000 km^2 square_kilometres square_kilometers 平方公里 平方千米
m2 10000 ha hectare hectares 公顷; 2000/3 亩; 316160658/78125 acre acres 英亩
m3 1 m^3 cubic_metres cubic_meters 立方米; 1/1000 l L litre litres liter liters 升
m3 1/1000000 ml mL millilitre millilitres milliliter milliliters 毫升
s 1 s sec second seconds 秒 秒钟; 60 min mins minute minutes 分钟; 3600 h hr hrs hour hours 小时 钟头
s 86400 day days 天; 604800 week weeks 周 星期 礼拜; 1/1000 ms 毫秒
month 1 month months 个月; 12 year years years_old 年 岁 周岁
m/s 1 m/s 米/秒 米每秒; 5/18 km/h kph kilometres_per_hour kilometers_per_hour 公里/小时 千米/小时; 1397/3125 mph
byte 1 byte bytes 字节; 1000 KB kB; 1000000 MB; 1000000000 GB; 1000000000000 TB; 1024 KiB; 1048576 MiB; 1073741824 GiB
W 1 W watts 瓦; 1000 kW 千瓦; 1000000 MW 兆瓦
°C 1 °C degrees_celsius degrees_centigrade degrees_c 摄氏度 ° degree degrees 度
°F 1 °F degrees_fahrenheit degrees_f 华氏度
° 1 ° degree degrees 度
fold 1 倍 fold
point 1 个百分点 percentage_point percentage_points
% 1/100 % percent per_cent; 1/10 成
score 1 分
century 1 世纪
GBP 1 £ GBP pound pounds 英镑; 1/100 pence p
USD 1 $ US$ USD dollar dollars us_dollar us_dollars 美元 美金; 1/100 cent cents 美分
EUR 1 € EUR euro euros 欧元; 1/100 cent cents
CNY 1 ¥ CNY RMB yuan 元 块 块钱 圆 人民币; 1/10 角 毛; 1/100 分钱
JPY 1 ¥ JPY yen 日元
HKD 1 HK$ HKD 港元 港币
TWD 1 NT$ TWD 新台币
INR 1 ₹ INR rupees 卢比
KRW 1 ₩ KRW won 韩元
CAD 1 C$ CAD canadian_dollars 加元
AUD 1 A$ AUD australian_dollars 澳元
""".strip().splitlines():
    _dimension, _rest = _line.split(" ", 1)
    for _factor, *_names in map(str.split, _rest.split(";")):
        for _name in _names:
            _UNITS.setdefault(_name.replace("_", " "), []).append((_dimension.strip("%"), Fraction(_factor)))
_MONEY = frozenset(("GBP", "USD", "EUR", "CNY", "JPY", "HKD", "TWD", "INR", "KRW", "CAD", "AUD"))
_SIGNS = [n for n, r in _UNITS.items() if r[0][0] in _MONEY and r[0][1] == 1 and not n.islower() and n not in "元块圆"]
_WORDS = str.split(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"
)
_ONES = {word: n for n, word in enumerate(_WORDS[:20])}
_TENS = {word: n * 10 for n, word in enumerate(_WORDS[20:], 2)}
_SCALES = {"hundred": 100, "dozen": 12, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_LETTERS = {"k": 10**3, "K": 10**3, "m": 10**6, "M": 10**6, "bn": 10**9, "b": 10**9, "B": 10**9}
_ORDINALS = {
    **{w: n for n, w in enumerate(str.split("first second third fourth fifth sixth seventh eighth ninth tenth"), 1)},
    "eleventh": 11,
    "twelfth": 12,
    **{w + "th": n for w, n in _ONES.items() if n > 12},
    **{w[:-1] + "ieth": n for w, n in _TENS.items()},
}
_PARTS = {"half": 2, "halves": 2, "quarter": 4, "quarters": 4} | {
    w + s: n for w, n in _ORDINALS.items() if 2 < n < 11 for s in ("", "s")
}
_DIGITS = {c: n for n, cs in enumerate(str.split("零〇 一壹 二两贰 三叁 四肆 五伍 六陆 七柒 八捌 九玖")) for c in cs}
_TIMES = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000, "万": 10**4, "亿": 10**8}
_MONTHS: list[str] = str.split("jan feb mar apr may jun jul aug sep oct nov dec")


def _any(words: Iterable[str]) -> str:
    return "|".join(map(regex.escape, sorted(words, reverse=True)))


def _rx(pattern: str, flags: int = 0) -> regex.Pattern[str]:
    """A pattern with {Z}: Chinese numeral, {C}: number in digits or Chinese, {N}: up to two digits of either."""
    arabic = r"(?:\d{1,3}(?:,\d{3}){1,12}(?!,?\d)|\d{1,40}(?!\d))(?:\.\d{1,40})?(?!\.?\d)"
    digit, numeral = "".join(_DIGITS), "".join([*_DIGITS, *_TIMES])
    for name, value in {
        "{C}": rf"(?:{arabic}|[{numeral}])(?:[{numeral}]|(?<=[十百千万亿]){arabic}){{0,40}}(?:点[{digit}]{{1,40}})?",
        "{N}": r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})",
        "{Y}": rf"(?:\d{{4}}|[{digit}]{{4}})",
        "{Z}": f"[{numeral}]",
        "{D}": f"[{digit}]",
        "{sign}": f"(?:{_any(_SIGNS)})",
        "{month}": rf"(?P<month>{_any(_MONTHS)})(?:uary|ruary|ch|il|e|y|ust|tember|t|ober|ember)?\b\.?",
        "{th}": "(?:st|nd|rd|th)",
        "{w}": f"(?:{_any([*_ONES, *_TENS, *_SCALES, *_PARTS])})",
        "{ordinal}": _any(_ORDINALS),
        "{tens}": _any(_TENS),
        "{scale}": _any(_SCALES),
        "{unit}": _any(_UNITS),
    }.items():
        pattern = pattern.replace(name, value)
    return regex.compile(pattern, flags)


_I = regex.IGNORECASE
_START = _rx(
    r"(?<![\p{Latin}\d_])(?<!\d\.)(?=[\d$€£¥₹₩]|[A-Z]{1,3}\$|{sign}\s?[-\d])|(?<![\w)\]])[-+](?=[$€£¥]?\d)|"
    r"(?=[第负半公凌早上中下傍晚]|零下|{Z}|{sign}{Z})|"
    r"(?<!\p{L})(?=(?i:(?:minus |negative |an? )*{w}|{ordinal}|{month}|ad))"
)
_DATES = (
    _rx(r"(?P<y>\d{4})([-/.])(?P<m>\d{1,2})\2(?P<d>\d{1,2})(?![-/.]?\d)"),
    _rx(r"(?P<d>\d{1,2})(?P<either>[-/.])(?P<m>\d{1,2})(?P=either)(?P<y>\d{4})(?![-/.]?\d)"),
    _rx(r"(?P<d>\d{1,2}){th}?(?: day)?(?: of)? {month}(?:,? (?:of )?(?P<y>\d{4})\b)?", _I),
    _rx(r"{month} (?P<d>\d{1,2}){th}?(?![\w:])(?!\.\d)(?:,? (?P<y>\d{4})\b)?", _I),
    _rx(r"{month},?(?: of)? (?P<y>\d{4})\b", _I),
    _rx(r"(?:(?P<era>公元前)|公元)(?P<y>\d{1,4}|{C})年"),
    _rx(r"(?P<y>{Y})年(?!代)(?:(?P<m>{N})月份?(?:(?P<d>{N})[日号])?)?"),
    _rx(r"(?P<m>{N})月(?:份|(?P<d>{N})[日号])?"),
    _rx(r"(?P<y>\d{1,4}) ?(?P<era>BC)E?\b", _I),
    _rx(r"AD ?(?P<y>\d{1,4})\b", _I),
)
_DECADE = _rx(r"(?:(?P<c>\d\d)世纪(?P<t>\d)0|(?P<y>\d{3}0))(?:年代|(?<=\d{4})'?s\b)")
_HALF_DAY = r"(?P<half>凌晨|早上|上午|中午|下午|傍晚|晚上)?"
_TIME = _rx(
    rf"{_HALF_DAY}(?P<h>{{N}})(?::(?P<mi>[0-5]\d)(?![:\d])|[点时](?!{{D}}{{D}}?(?!\d|{{Z}}|分))(?:(?P<zh>半)|(?P<mi>{{N}})分)?)"
    r"(?: ?(?P<ap>[ap]\.?m\b\.?))?|(?P<h>\d{1,2}) ?(?P<ap>[ap]\.?m\b\.?)",
    _I,
)
_ORDINAL = _rx(
    r"(?:第(?P<n>{C})|(?P<n>\d{1,9}){th}\b|(?:(?P<tens>{tens})[- ])?(?P<word>{ordinal})\b)(?P<century>[- ]century\b)?",
    _I,
)
_PREFIX = _rx(r"(?P<minus>-|负|零下|minus |negative )?\+?(?P<sign>{sign})?\s?(?P<below>-)?", _I)
_FRACTION = _rx(r"(?:(?P<whole>\d{1,9}) )?(?P<above>\d{1,12}) ?[/⁄] ?(?P<below>0*[1-9]\d{0,11})(?![\d/⁄.])")
_PART = _rx(r"(?P<below>[百千万]|{C})分之(?P<minus>负)?(?P<above>{C})")
_DISCOUNT = _rx(r"(?P<d>{D}{1,2}|\d(?:\.\d)?|\d\d)折")
_RUN = _rx(r"{C}")
_WORD = _rx(r"(?P<gap>[\s-]*)(?P<and>and )?(?P<a>an? )?(?P<w>{w})(?!\p{L})", _I)
_SCALED = _rx(r"[ -]?(?:an? )?(?P<word>{scale})s?\b", _I)
_POINT = _rx(r" point(?P<digits>(?: (?:one|two|three|four|five|six|seven|eight|nine|zero))+)\b", _I)
_SCALE_LETTER = _rx(r" ?(?P<letter>bn|[kKmMbB])(?![\p{L}\d])")
_UNIT = _rx(
    r"(?P<and> and a half)?[\s-]?(?:of )?(?:an? )?(?P<pair>个半?|半)?(?P<name>{unit})(?!(?<=\p{Latin})[\p{Latin}\d^])",
    _I,
)
_SMALL = _rx(r"(?:(?P<j>\d|{D})(?:[角毛]|(?<=块.)(?![\d分]|{Z})))?(?:(?P<f>\d|{D})分)?[整正]?")
_CLASSIFIER = _rx(r"[个名位只条件张本辆家项部座](?!月)")
_LATIN, _HAN = _rx(r"\p{Latin}"), _rx(r"\p{Han}")
_TOKEN = _rx(r"[\d.,]*\d|{Z}+")


def scan(text: str, edges: Set[int] | None = None) -> list[Quantity]:
    """The quantities of a text, from left to right.

    `edges` are the offsets where Chinese words begin or end: a number in Chinese characters counts only between two
    (the 三 of 张三 is no number); without edges every one does.
    """
    found: list[Quantity] = []
    at = 0
    while start := _START.search(text, at):
        at = start.start()
        readers = (_dates, _times, _ordinals, _numbers)
        quantity = next((q for read in readers for q in read(text, at) if _stands(q, text, edges)), None)
        if quantity:
            found.append(quantity)
        token = _TOKEN.match(text, at)
        at = quantity.end if quantity else token.end() if token else at + 1
    return found


def same(gold: Quantity, found: Quantity, alone: bool = False) -> bool:
    """Whether `found` has the gold's value; a fuller date than the gold's has it.

    A bare number equals the same amount of money, and a gold without a unit the same number with one. A number
    without the gold's unit counts only where it is the whole answer (`alone`).
    """
    if gold.readings & found.readings:
        return True
    bare = [("", q.stated) in q.readings for q in (gold, found)]
    if gold.days or found.days:
        golds = gold.days or {(int(gold.stated) if bare[0] else -1, None, None)}
        return any(all(a in (None, b) for a, b in zip(x, y, strict=True)) for x in golds for y in found.days)
    if bare[1] and any(name in _MONEY and value == found.stated for name, value in gold.readings):
        return True
    return (bare[0] or (alone and bare[1])) and gold.stated == found.stated


def _stands(quantity: Quantity, text: str, edges: Set[int] | None) -> bool:
    """Whether it begins and ends where words do."""
    start, end = quantity.start, quantity.end
    if edges is None or (end - start > 1 and all(c in _DIGITS or c in _TIMES for c in text[start:end].lstrip("第"))):
        return edges is None or start in edges
    begins = start in edges or (text[start] not in _DIGITS and text[start] not in _TIMES)
    return begins and (end in edges or not _HAN.match(text, end) or not _HAN.match(text, end - 1))


def _whole(written: str | None) -> int:
    return int(written if written and written.isdecimal() else _chinese(written or "零") or 0)


def _dates(text: str, at: int) -> Iterator[Quantity]:
    for pattern in _DATES:
        if not (match := pattern.match(text, at)):
            continue
        part = match.groupdict()
        year, month, day = (_whole(part.get(k)) or None for k in "ymd")
        if part.get("month"):
            month = _MONTHS.index(part["month"].lower()) + 1
        year = -year if part.get("era") and year else year
        ways: set[Day] = {(year, month, day)} | ({(year, day, month)} if "either" in part else set())
        days = frozenset(w for w in ways if 0 < (w[1] or 1) < 13 and 0 < (w[2] or 1) < 32)
        if days and any(w != (None, None, None) for w in days):
            stated = Fraction(year or 0)
            yield Quantity(at, match.end(), stated, frozenset({("", stated)} if not month else ()), days)


def _times(text: str, at: int) -> Iterator[Quantity]:
    if match := _DECADE.match(text, at):
        decade = Fraction(match["y"] or (int(match["c"]) - 1) * 100 + int(match["t"]) * 10)
        yield Quantity(at, match.end(), decade, frozenset({("decade", decade)}))
    if not (match := _TIME.match(text, at)):
        return
    hour, minute, half = _whole(match["h"]), _whole(match["mi"]), (match["half"] or match["ap"] or "").lower()
    if hour < 25 and minute < 60:
        hours = {hour, (hour + 12) % 24} if 0 < hour < 13 and match["h"][0] != "0" else {hour}
        if half and hour < 13:
            late = half[0] in "p下傍晚" or (half[0] == "中" and hour not in (10, 11))
            hours = {hour % 12 + 12 * late}
        minutes = 30 if match["zh"] else minute
        yield Quantity(at, match.end(), Fraction(hour), frozenset(("time", Fraction(h * 60 + minutes)) for h in hours))


def _ordinals(text: str, at: int) -> Iterator[Quantity]:
    if match := _ORDINAL.match(text, at):
        word, tens = match["word"], match["tens"]
        value = Fraction(_ORDINALS[word.lower()] if word else 0) + _TENS.get((tens or "").lower(), 0)
        value = value or _chinese(match["n"]) or Fraction(0)
        yield Quantity(at, match.end(), value, frozenset({("century" if match["century"] else "ordinal", value)}))


def _numbers(text: str, at: int) -> Iterator[Quantity]:
    """A number with its unit, then, in case the unit belongs to another word, without."""
    prefix = _PREFIX.match(text, at)
    assert prefix
    sign = prefix["sign"]
    if (read := _value(text, prefix.end(), sign is not None)) is None:
        return
    value, end = read
    value = -value if prefix["minus"] or prefix["below"] else value
    currency = frozenset((name, value) for name, _ in (_UNITS[sign.upper()] if sign else ()))
    for quantity in _measured(text, at, value, end):
        paid = frozenset(r for r in quantity.readings if r[0] in _MONEY)
        if not currency or paid:
            yield quantity._replace(readings=(paid & currency) or paid) if currency else quantity
    if text[end - 1] != "半" or text[end - 2 : end - 1] == "一":
        readings = currency or frozenset({("", value)})
        counted = _CLASSIFIER.match(text, end)
        for stop in (counted.end() if counted else end, end):
            if not _LATIN.match(text, stop):
                yield Quantity(at, stop, value, readings)


def _measured(text: str, at: int, value: Fraction, end: int) -> Iterator[Quantity]:
    if not (match := _UNIT.match(text, end)):
        return
    name, stop, half = match["name"], match.end(), Fraction(1, 2)
    units = _UNITS.get(name) or (_UNITS.get(name.lower()) if len(name) > 1 else None) or []
    if match["pair"] in ("半", "个半") or match["and"]:
        value += half
    elif text.startswith("半", stop) and _HAN.match(name):
        value, stop = value + half, stop + 1
    if name in ("元", "块", "圆") and (small := _SMALL.match(text, stop)):
        value, stop = value + Fraction(_whole(small["j"]), 10) + Fraction(_whole(small["f"]), 100), small.end()
        other = _PREFIX.match(text, stop)
        if other and other["sign"] and other.end("sign") == other.end():
            units, stop = _UNITS[other["sign"].upper()], other.end()
    readings = frozenset(("°C", (value - 32) * 5 / 9) if d == "°F" else (d, value * factor) for d, factor in units)
    if readings:
        yield Quantity(at, stop, dict(readings).get("", value), readings)


def _value(text: str, at: int, money: bool) -> tuple[Fraction, int] | None:
    """The unsigned number at `at` and where it ends."""
    if match := _FRACTION.match(text, at):
        return int(match["whole"] or 0) + Fraction(int(match["above"]), int(match["below"])), match.end()
    if match := _PART.match(text, at):
        below, above = _TIMES.get(match["below"]) or _chinese(match["below"]), _chinese(match["above"])
        return (above / below * (-1 if match["minus"] else 1), match.end()) if above is not None and below else None
    if match := _DISCOUNT.match(text, at):
        digits = "".join(str(_DIGITS.get(c, c)) for c in match["d"] if c != ".")
        return Fraction(int(digits), 10 ** len(digits)), match.end()
    if text.startswith(("半", "一半"), at):
        return Fraction(1, 2), at + 1 + (text[at] == "一")
    if not (match := _RUN.match(text, at)):
        return _english(text, at)
    value, end = _chinese(match.group()), match.end()
    if value is None:
        return None
    if scale := _SCALED.match(text, end):
        value, end = value * _SCALES[scale["word"].lower()], scale.end()
    elif (letter := _SCALE_LETTER.match(text, end)) and (money or letter.group() in ("k", "K", "M", "B")):
        value, end = value * _LETTERS[letter["letter"]], letter.end()
    return value, end


def _chinese(written: str) -> Fraction | None:
    """The value of a number in digits, in Chinese, or both (5千, 1亿2000万); None if it is no number."""
    body, _, decimals = written.partition("点")
    if all(c in _DIGITS for c in body) and len(body) > 1:
        read = "".join(str(_DIGITS[c]) for c in body)
        total = Fraction(read) if len(body) > 2 or body[0] in "零〇" else None
    else:
        total = _sum(regex.findall(r"[\d,.]+|.", body))
    if total is None or not decimals:
        return total
    return total + Fraction(int("".join(str(_DIGITS[c]) for c in decimals)), 10 ** len(decimals))


def _sum(tokens: list[str]) -> Fraction | None:
    total, section, number, last = Fraction(0), Fraction(0), None, 1
    for token in tokens:
        if token in "零〇" and number is None and (section or total):
            last = 1
        elif token in _TIMES:
            times = _TIMES[token]
            if number is None and not (times == 10 or section):
                return None
            if times < 10**4:
                section += (1 if number is None else number) * times
            else:
                section += number or 0
                total, section = (total + section) * times if times > 10**4 else total + section * times, Fraction(0)
            number, last = None, times
        elif number is not None or (token[0] == "0" and token[1:2].isdecimal()):
            return None
        else:
            number = Fraction(_DIGITS[token] if token in _DIGITS else token.replace(",", ""))
    short = number is not None and last > 10 and len(tokens) > 2 and tokens[-1] in _DIGITS
    return total + section + (number or 0) * (last // 10 if short else 1)


def _english(text: str, at: int) -> tuple[Fraction, int] | None:
    """The number in English words at `at`, as many of them as make one."""
    total, end = Fraction(0), at
    group: Fraction | None = None
    while match := _WORD.match(text, end):
        word, after, joined = match["w"].lower(), match["a"] is not None, match["and"] is not None
        if bool(match["gap"] or joined) == (end == at):
            break
        if word in _PARTS:
            below = _PARTS[word]
            if word == "half" and (group is None or joined):
                scale = _SCALED.match(text, match.end())
                value = total + (group or 0) + Fraction(1, 2)
                return (value * _SCALES[scale["word"].lower()], scale.end()) if scale else (value, match.end())
            above = group if not total and group is not None else Fraction(1) if after and end == at else None
            if above is None or joined or (word.endswith("s") != (above > 1)):
                break
            return above / below, match.end()
        if word in _ONES or word in _TENS:
            value = _ONES.get(word, _TENS.get(word, 0))
            fits = not group or group % 100 == 0 or (group % 100 >= 20 and group % 10 == 0 and 0 < value < 10)
            if not fits or group == 0 or (after and end == at) or (joined and not (group or total)):
                break
            group = Fraction(value) + (group or 0)
        elif group is None and not (after and end == at):
            break
        elif word == "hundred":
            group = (group or Fraction(1)) * 100
        else:
            total, group = total + (group or 1) * _SCALES[word], None
        end = match.end()
        if group is not None and (point := _POINT.match(text, end)):
            digits = "".join(str(_ONES[w]) for w in point["digits"].lower().split())
            group, end = group + Fraction(int(digits), 10 ** len(digits)), point.end()
    return (total + (group or 0), end) if end > at else None
