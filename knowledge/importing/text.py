"""Reads text files: their encoding, and tables in them."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections.abc import Iterator, Sequence

from agent_core.errors import InputRejected
from knowledge.importing.drafts import COLUMN_NAMES, Draft, Row, checked_width, drafts_of, has_header
from knowledge.importing.limits import ENTRY, LINES, Allowance
from knowledge.importing.messages import ImportMessage

_SAMPLE = 30  # rows that decide the separator
# Spreadsheet programs take a cell that begins like this for a formula. To some of them wide signs are the same.
_GUARDED = re.compile(r"'*[=+\-@＝＋－＠\t\r\n]")


def guarded(cell: str) -> str:
    """Return the cell as text even if it begins like a formula; ``unguarded`` restores it."""
    return "'" + cell if _GUARDED.match(cell) else cell


def unguarded(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _GUARDED.match(cell) else cell


def decode(name: str, data: bytes) -> str:
    """Decode UTF-8, UTF-16 (Excel's Unicode text) or GB18030 (Chinese Excel), with or without a byte order mark.

    Raises InputRejected if it is none of them, or contains the character zero, which no text has.
    """
    text = _decoded(name, data, _encoding(data))
    if "\0" in text:
        raise _no_text(name, text.count("\n", 0, text.index("\0")) + 1)
    return text


def _encoding(data: bytes) -> str:
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if data.startswith(mark):
            return encoding
    try:
        lenient = data.decode("utf-8")
    except UnicodeDecodeError:
        lenient = data.decode("utf-8", errors="replace")
    start = data[:4000]
    if (zeros := start.count(0)) and ("\ufffd" in lenient or zeros * 4 > len(start)):
        return "utf-16-le" if start[1::2].count(0) * 2 > zeros else "utf-16-be"
    bad = lenient.count("\ufffd")
    good = len(lenient) - bad - len(lenient.encode("ascii", "ignore"))
    # If nearly all is good the file is damaged; read as GB18030 it would be gibberish.
    return "gb18030" if bad and bad * 10 >= good else "utf-8"


def _decoded(name: str, data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise _no_text(name, data.count(b"\n", 0, error.start) + 1) from None


def _no_text(name: str, line: int) -> InputRejected:
    return InputRejected(
        f"{name}, line {line}: this is no text in UTF-8, UTF-16 or GB18030.",
        advice="Save it as UTF-8.",
        key="no_text",
        name=name,
        line=line,
    )


def lines_of(name: str, text: str, taken: Allowance) -> Iterator[str]:
    """Yield the lines with their ends "\\n", "\\r\\n" or "\\r", as a file does.

    Raises InputRejected if one is too long, or there are too many.
    """
    for number, line in enumerate(io.StringIO(text, newline=""), start=1):
        taken.take(LINES)
        if len(line) > ENTRY.most:
            raise ENTRY.passed(f"{name}, line {number}")
        yield line


def read_csv(name: str, data: bytes, *, tabs: bool) -> Sequence[Draft]:
    """Read a table with the separator (comma, semicolon, tab) that gives a header or two columns.

    Quoted cells may contain line ends. A cell that was guarded against being a formula is restored.
    """
    text = decode(name, data)
    order = "\t,;" if tabs else ",\t;"
    best = max(order, key=lambda sign: _fit(name, text, sign))  # the first of equals
    taken = Allowance(name)
    widths: set[bool] = set()

    def rows() -> Iterator[Row]:
        for row in _rows(name, text, best, taken):
            widths.add(len(row.cells) >= 2)
            yield row

    drafts = drafts_of(name, rows(), taken)
    if widths == {False}:
        said = f"{name} has one column: a table has at least a question and an answer."
        raise InputRejected(said, key="one_column", name=name, **COLUMN_NAMES)
    return drafts


def _fit(name: str, text: str, sign: str) -> int:
    rows: list[Row] = []
    try:
        rows.extend(itertools.islice(_rows(name, text, sign, Allowance(name)), _SAMPLE))
    except InputRejected:
        return 0
    wide = sum(len(row.cells) >= 2 for row in rows)
    return wide + (1000 if has_header(rows) else 0)


def _rows(name: str, text: str, sign: str, taken: Allowance) -> Iterator[Row]:
    """Yield the rows with content."""
    size = 0  # characters of the row that is being read

    def fed() -> Iterator[str]:
        nonlocal size
        for line in lines_of(name, text, taken):
            size += len(line)
            if size > ENTRY.most:
                raise ENTRY.passed(f"{name}, line {number}")
            yield line

    reader = csv.reader(fed(), delimiter=sign, strict=True)
    while True:
        size, number = 0, reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:  # also a cell over the library's 128 KB: a quotation mark is not closed
            raise InputRejected(
                f"{name}, line {number}: the table cannot be read from here on ({error}).",
                advice="Look for a quotation mark that is not closed.",
                key="broken_table",
                name=name,
                line=number,
            ) from None
        place = ImportMessage("line", name=name, number=number)
        row = Row(place, [unguarded(cell) for cell in checked_width(place, cells)])
        if not row.blank:
            yield row
