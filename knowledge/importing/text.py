"""Text files: their encoding, and tables in them."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections.abc import Iterator, Sequence

from agent_core.errors import InputRejected
from knowledge.importing.drafts import MOST_ROWS, Draft, Row
from knowledge.importing.table import drafts_of, has_header

_SAMPLE = 30  # rows that tell the separator
# A program for tables takes a cell that begins so for a formula. The wide signs are the same to some of them.
_GUARDED = re.compile(r"'*[=+\-@＝＋－＠\t\r\n]")


def guarded(cell: str) -> str:
    """The cell as text even where it begins like a formula; ``unguarded`` gives it back."""
    return "'" + cell if _GUARDED.match(cell) else cell


def unguarded(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _GUARDED.match(cell) else cell


def decode(name: str, data: bytes) -> str:
    """UTF-8, UTF-16 (what Excel calls Unicode text) or GB18030 (what Chinese Excel saves), with or without a mark."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if data.startswith(mark):
            return _decoded(name, data, encoding)
    if zeros := data[:4000].count(0):
        return _decoded(name, data, "utf-16-le" if data[1:4000:2].count(0) * 2 > zeros else "utf-16-be")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        lenient = data.decode("utf-8", errors="replace")
        good = sum(char > "\x7f" and char != "\ufffd" for char in lenient)
        if lenient.count("\ufffd") * 10 < good:  # a damaged file; read as GB18030 it would be gibberish
            return _decoded(name, data, "utf-8")
        return _decoded(name, data, "gb18030")


def _decoded(name: str, data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputRejected(
            f"{name}, line {line}: this is no text in UTF-8, UTF-16 or GB18030.",
            advice="Save it as UTF-8.",
            key="no_text",
            name=name,
            line=line,
        ) from None


def read_csv(name: str, data: bytes, *, tabs: bool = False) -> Sequence[Draft]:
    """A table with commas, semicolons or tabs, whichever gives a header with a question and an answer, or two columns.

    Cells in quotes may have line ends in them. A cell that was guarded against being a formula comes back as it was.
    """
    text = decode(name, data)
    order = "\t,;" if tabs else ",\t;"
    best = max(order, key=lambda sign: _fit(name, text, sign))  # the first of equals
    rows = list(itertools.islice(_rows(name, text, best), MOST_ROWS + 100))  # more are refused, whatever stands above
    if rows and all(len(row.cells) < 2 for row in rows):
        said = f"{name} has one column: a table has at least a question and an answer."
        raise InputRejected(said, key="one_column", name=name)
    return drafts_of(name, rows)


def _fit(name: str, text: str, sign: str) -> int:
    rows: list[Row] = []
    try:
        rows.extend(itertools.islice(_rows(name, text, sign), _SAMPLE))
    except InputRejected:
        return 0
    wide = sum(len(row.cells) >= 2 for row in rows)
    return wide + (1000 if has_header(rows) else 0)


def _rows(name: str, text: str, sign: str) -> Iterator[Row]:
    """Those with content."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sign, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputRejected(
                f"{name}, line {line}: the table cannot be read from here on ({error}).",
                advice="Look for a quotation mark that is not closed.",
                key="broken_table",
                name=name,
                line=line,
            ) from None
        row = Row(f"{name}, line {line}", [unguarded(cell) for cell in cells])
        if not row.blank:
            yield row
