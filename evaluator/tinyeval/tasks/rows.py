"""Rows of data files: JSON arrays, JSON Lines, concatenated JSON objects, CSV and TSV."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any, cast

import msgspec

from tinyeval.config import read_text
from tinyeval.errors import DataError

Row = dict[str, Any]

_JSON = (".json", ".jsonl", ".ndjson")
_TABLE = {".csv": ",", ".tsv": "\t"}


def read_rows(path: Path) -> list[Row]:
    """Reads all rows of a data file, in order.

    Raises:
        DataError: the file is missing, not UTF-8, of an unknown format, malformed, or empty.
    """
    text = read_text(path, DataError)
    suffix = path.suffix.lower()
    if suffix in _JSON:
        rows: list[Any] = _json_rows(text, path)
    elif suffix in _TABLE:
        rows = _table_rows(text, _TABLE[suffix], path)
    else:
        known = ", ".join([*_JSON, *_TABLE])
        raise DataError(f"{path}: the format {suffix or 'without an ending'} is unknown; expected one of {known}.")
    if not rows:
        raise DataError(f"{path} has no rows; at least one is needed.")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise DataError(f"{path}, row {number}: expected an object with named fields, found {_kind(row)}.")
    return cast("list[Row]", rows)


def _json_rows(text: str, path: Path) -> list[Any]:
    """A JSON array, or objects one after the other, most often a line each."""
    try:
        if text.lstrip().startswith("["):
            return msgspec.json.decode(text, type=list[Any])
        return [msgspec.json.decode(line) for line in text.split("\n") if line.strip()]
    except msgspec.DecodeError:
        return _searched(text, path)
    except RecursionError as e:
        raise DataError(f"{path}: a value is nested too deeply.") from e


def _searched(text: str, path: Path) -> list[Any]:
    """Objects one after the other over any number of lines; finds the row that is malformed.

    Where each ends is found by `json`, what it says by msgspec, which takes no NaN and no half characters.
    """
    rows: list[Any] = []
    decoder = json.JSONDecoder()
    array = text.lstrip().startswith("[")
    at = len(text) - len(text.lstrip()) + 1 if array else 0
    while at < len(text):
        if text[at] in " \t\r\n," or (array and text[at] == "]" and not text[at + 1 :].strip()):
            at += 1
            continue
        try:
            begin, (_, at) = at, decoder.raw_decode(text, at)
            rows.append(msgspec.json.decode(text[begin:at]))
        except (json.JSONDecodeError, msgspec.DecodeError, RecursionError) as e:
            line = text.count("\n", 0, e.pos if isinstance(e, json.JSONDecodeError) else at) + 1
            reason = e.msg if isinstance(e, json.JSONDecodeError) else e
            raise DataError(f"{path}, line {line}: row {len(rows) + 1} is not valid JSON: {reason}.") from e
    if array:
        raise DataError(f"{path} begins like a JSON array but is malformed: a comma or the last bracket is amiss.")
    return rows


def _table_rows(text: str, delimiter: str, path: Path) -> list[Any]:
    """CSV or TSV with the names of the fields in the first line."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[Any] = []
    try:
        for row in reader:
            if None in row or None in row.values():
                names = ", ".join(reader.fieldnames or ())
                raise DataError(f"{path}, line {reader.line_num}: row {len(rows) + 1} has not the fields {names}.")
            rows.append(row)
    except csv.Error as e:
        raise DataError(f"{path}, line {reader.line_num + 1}: row {len(rows) + 1} is malformed: {e}.") from e
    return rows


def _kind(value: object) -> str:
    names: list[tuple[type, str]] = [(list, "a list"), (str, "a text"), (bool, "a truth value"), (type(None), "null")]
    return next((name for kind, name in names if isinstance(value, kind)), "a number")
