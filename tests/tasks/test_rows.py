"""Data files: what is read the same in every form, and what a broken one is told."""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyeval.errors import DataError
from tinyeval.tasks.rows import read_rows

texts = st.text(st.characters(codec="utf-8"), max_size=20)
# Integers beyond 64 bits stay whole, too; floats are what JSON can say.
scalars = texts | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none()
values = st.recursive(scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(texts, v, max_size=3), max_leaves=5)
tables = st.lists(st.dictionaries(texts, values, max_size=4), min_size=1, max_size=6)


def rows_of(text: str | bytes, name: str = "data.json") -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_rows(path)


def complaint(text: str | bytes, name: str = "data.json") -> str:
    with pytest.raises(DataError) as e:
        rows_of(text, name)
    (sentence,) = str(e.value).splitlines()
    return sentence.partition(name)[2]


@given(tables, st.booleans())
@settings(max_examples=150, deadline=None)
def test_an_array_lines_and_objects_one_after_the_other_are_the_same_rows(rows: list[Any], ascii_only: bool) -> None:
    def dump(value: Any, indent: int | None = None) -> str:
        return json.dumps(value, ensure_ascii=ascii_only, indent=indent)

    assert rows_of(dump(rows)) == rows
    assert rows_of(dump(rows, indent=2)) == rows
    assert rows_of("\n".join(map(dump, rows)), "data.jsonl") == rows
    assert rows_of("\r\n\r\n".join(map(dump, rows)) + "\r\n", "data.ndjson") == rows
    assert rows_of("\n".join(dump(r, indent=4) for r in rows)) == rows
    assert rows_of(",\n".join(dump(r, indent=1) for r in rows)) == rows
    assert rows_of("".join(map(dump, rows)).encode("utf-8-sig")) == rows


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=5))
@settings(max_examples=80, deadline=None)
def test_csv_and_tsv_give_the_fields_of_their_first_line(rows: list[tuple[str, str]]) -> None:
    for name, delimiter in (("data.csv", ","), ("data.TSV", "\t")):
        file = io.StringIO(newline="")
        csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([("q", "问题"), *rows])
        assert rows_of(file.getvalue(), name) == [{"q": a, "问题": b} for a, b in rows]


def test_a_byte_order_mark_is_no_part_of_the_first_field() -> None:
    assert rows_of(b"\xef\xbb\xbfid,q\n1,x\n", "data.csv") == [{"id": "1", "q": "x"}]


def test_a_csv_field_as_long_as_a_book_is_read() -> None:
    book = "word " * 100_000
    assert rows_of(f'q\n"{book}"\n', "data.csv") == [{"q": book}]


def test_a_line_separator_inside_a_text_does_not_end_the_row() -> None:
    row = {"q": "one\u2028two\x85three"}
    assert rows_of(json.dumps(row, ensure_ascii=False), "data.jsonl") == [row]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}\n{"a": 2}\n{"a": }\n', ", line 3: row 3 is not valid JSON: Expecting value."),
        ('{"a": 1}\n\n{"a": 2\n', ", line 4: row 2 is not valid JSON: Expecting ',' delimiter."),
        ('{"a": 1}\n{"a": NaN}\n', ", line 2: row 2 is not valid JSON: "),
        ('{"a": "\\ud83d"}\n', ", line 1: row 1 is not valid JSON: "),
        ('[{"a": 1},\n {"a": 2},\n {"a" 3}]', ", line 3: row 3 is not valid JSON: Expecting ':' delimiter."),
        ('[{"a": 1},\n {"a": 2}', " begins like a JSON array but is malformed: a comma or the last bracket is amiss."),
        ('[{"a": 1}]\n[{"a": 2}]', ", line 1: row 2 is not valid JSON: Expecting value."),
        ("a,b\n1,2\n", ", line 1: row 1 is not valid JSON: Expecting value."),
        ("", " has no rows; at least one is needed."),
        (" \n\n", " has no rows; at least one is needed."),
        ("[]", " has no rows; at least one is needed."),
        ('[{"a": 1}, 7]', ", row 2: expected an object with named fields, found a number."),
        ('{"a": 1}\n["x"]\n', ", row 2: expected an object with named fields, found a list."),
        ('"x"\n', ", row 1: expected an object with named fields, found a text."),
        ("null", ", row 1: expected an object with named fields, found null."),
        ("true", ", row 1: expected an object with named fields, found a truth value."),
    ],
)
def test_malformed_json_is_told_with_its_row_and_line(text: str, expected: str) -> None:
    assert complaint(text).startswith(expected)


def test_a_value_that_is_nested_too_deeply_is_told_whatever_python_calls_it() -> None:
    assert re.search("nested too deeply|row 1 is not valid JSON", complaint('{"a":' * 5000))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n3\n", ", line 3: row 2 has not the fields a, b."),
        ("a,b\n1,2,3\n", ", line 2: row 1 has not the fields a, b."),
        ('a,b\n1,"2\n', ", line 2: row 1 is malformed: unexpected end of data."),
        ("a,b\n", " has no rows; at least one is needed."),
        ("", " has no rows; at least one is needed."),
    ],
)
def test_a_malformed_table_is_told_with_its_row_and_line(text: str, expected: str) -> None:
    assert complaint(text, "data.csv") == expected


@pytest.mark.parametrize("name", ["data.json", "data.jsonl", "data.csv", "data.tsv"])
def test_a_file_in_another_encoding_is_told_with_its_line_and_a_way_to_convert_it(name: str) -> None:
    said = complaint(b'{"q": "ok"}\n{"q": "ok"}\n' + '{"q": "厦门"}\n'.encode("gb18030"), name)
    assert said == (", line 3: not UTF-8 (byte 0xcf at offset 31); convert it, for example: iconv -f GB18030 -t UTF-8.")


def test_an_unknown_ending_is_told_with_the_known_ones() -> None:
    assert complaint("x", "data.xlsx") == (
        ": the format .xlsx is unknown; expected one of .json, .jsonl, .ndjson, .csv, .tsv."
    )
    assert complaint("x", "data").startswith(": the format without an ending is unknown")


def test_a_missing_file_or_a_folder_in_its_place_is_told(tmp_path: Path) -> None:
    missing = tmp_path / "missing.jsonl"
    with pytest.raises(
        DataError, match=re.escape(f"{missing} can't be read: No such file or directory; name a file that")
    ):
        read_rows(missing)
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(DataError, match=r"folder\.json can't be read: Is a directory"):
        read_rows(tmp_path / "folder.json")


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"\x1f\x8b\x08\x00", "it is a packed file; unpack it"), ("甲".encode("utf-16"), "iconv -f UTF-16 -t UTF-8")],
)
def test_what_is_not_utf_8_is_told_with_advice_that_fits(tmp_path: Path, data: bytes, expected: str) -> None:
    (tmp_path / "rows.jsonl").write_bytes(data)
    with pytest.raises(DataError, match=expected):
        read_rows(tmp_path / "rows.jsonl")
