"""Reads Excel files as a person sees them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, time
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from math import isfinite
from typing import NamedTuple

from agent_core.errors import InputRejected
from knowledge.importing.drafts import HEADER_WITHIN, Draft, Row, drafts_of, has_header, listed, named
from knowledge.importing.limits import Allowance
from knowledge.importing.messages import ImportMessage
from knowledge.importing.workbook import Cell, Sheet, Workbook

# How a character is written that XML cannot hold, and how that notation itself is written.
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
# A number format: text before, digits before and after the point, text after.
_FORMAT = re.compile(r"(?P<before>[^#0?.]*)(?P<whole>[#0?,]*[#0?])(?:\.(?P<part>[#0?]+))?(?P<behind>[^#0?.,]*)")
_PRECISE = Context(prec=1000)  # a number has up to 309 digits, a format up to 255 after the point


def read_xlsx(name: str, data: bytes) -> Sequence[Draft]:
    """Read every visible sheet with a header.

    Sheets without one are reported, and read by position if no sheet has one.

    A formula gives the value that was saved with it; its cell is reported if there is none. Raises InputRejected if the
    file is not an Excel file or exceeds a limit.
    """
    with _said(name):
        return _read(name, data)


def _read(name: str, data: bytes) -> Sequence[Draft]:
    taken = Allowance(name)
    book = Workbook(data, taken)
    tables: list[tuple[ImportMessage, list[Row], Iterator[Row]]] = []
    for sheet in book.sheets:
        where = ImportMessage("sheet", name=name, title=sheet.title)
        rows = _rows(where, book, sheet)
        if head := list(itertools.islice(rows, HEADER_WITHIN)):
            tables.append((where, head, rows))
    headed = any(has_header(head) for _, head, _ in tables)
    drafts: list[Draft] = []
    for where, head, rows in tables:
        if headed and not has_header(head):
            drafts.append(Draft(where, problem=ImportMessage("no_header_here")))
        else:
            drafts.extend(drafts_of(where, itertools.chain(head, rows), taken))
    hidden = [sheet.title for sheet in book.sheets if not sheet.visible]
    if drafts and hidden:
        told = ImportMessage("hidden", name=name, names=listed(hidden))
        drafts[0] = replace(drafts[0], notes=(*drafts[0].notes, told))
    return drafts


def escaped(text: str) -> str:
    """Return ``text`` for a cell, so that "_x0041_" in it stays as it is."""
    return re.sub(r"_(?=x[0-9A-Fa-f]{4}_)", "_x005F_", text)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "_x" in text else text


@contextmanager
def _said(name: str) -> Iterator[None]:
    try:
        yield
    except InputRejected:
        raise
    except Exception as error:
        raise InputRejected(
            f"{name} is no Excel file (.xlsx) that can be read ({type(error).__name__}: {error}).",
            advice="Open it in Excel and save it as .xlsx.",
            key="no_excel",
            name=name,
        ) from error


def _rows(where: str, book: Workbook, sheet: Sheet) -> Iterator[Row]:
    """Yield the rows with content; none of a hidden sheet."""
    if sheet.visible:
        for number, cells in book.rows(sheet):
            yield _row(where, number, cells, book)


def _row(where: str, number: int, cells: Sequence[Cell], book: Workbook) -> Row:
    texts = [""] * (max(cell.column for cell in cells) + 1)
    faults: dict[int, str] = {}
    for cell in cells:
        if cell.kind == "e":
            faults[cell.column] = ImportMessage("cell_error", cell=_place(cell, number), error=named(cell.text))
        elif cell.formula and not cell.text:
            faults[cell.column] = ImportMessage("cell_formula", cell=_place(cell, number))
        else:
            try:
                texts[cell.column] = _shown(cell, book)
            except (ValueError, ArithmeticError):
                faults[cell.column] = ImportMessage("cell_other", cell=_place(cell, number))
    return Row(ImportMessage("row", where=where, number=number), texts, faults)


def _place(cell: Cell, row: int) -> str:
    from openpyxl.utils import get_column_letter

    return f"{get_column_letter(cell.column + 1)}{row}"


def _shown(cell: Cell, book: Workbook) -> str:
    """Return a cell's text as displayed: 1.0 is "1", a price is rounded with its sign, percentages and dates as such.

    Raises ValueError or ArithmeticError if its content does not fit its kind.
    """
    if cell.kind == "s":
        return _unescaped(cell.text)
    if cell.kind == "b":
        return "TRUE" if int(cell.text) else "FALSE"
    if cell.kind == "d":
        return _moment(datetime.fromisoformat(cell.text).replace(tzinfo=None))
    shape = _shape(book.format_of(cell.style))
    if shape.is_date:
        from openpyxl.utils.datetime import MAC_EPOCH, WINDOWS_EPOCH, from_excel

        epoch = MAC_EPOCH if book.from_1904 else WINDOWS_EPOCH
        return _moment(from_excel(float(cell.text), epoch, timedelta=shape.is_period))
    return _number(_exact(cell.text), shape)


def _moment(value: object) -> str:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d" if value.time() == time() else "%Y-%m-%d %H:%M")
    if isinstance(value, date):
        return value.isoformat()
    return value.strftime("%H:%M") if isinstance(value, time) else str(value)


def _exact(text: str) -> Decimal:
    """Return the number with Excel's 15 digits, a whole one with all of its digits."""
    if re.fullmatch(r"-?\d{1,300}", text):
        return Decimal(text)
    number = float(text)
    if not isfinite(number):
        raise ValueError(text)
    return Decimal(f"{number:.15g}")


class _Shape(NamedTuple):
    """The way in which a format shows a number: text before and after, its digits (None: unchanged); or as a date."""

    is_date: bool
    is_period: bool
    digits: tuple[str, str] | None
    before: str = ""
    behind: str = ""


@lru_cache(maxsize=2_000)
def _shape(pattern: str) -> _Shape:
    from openpyxl.styles.numbers import is_date_format, is_timedelta_format

    match = _FORMAT.fullmatch(_literals(pattern.split(";", maxsplit=1)[0]))
    digits = (match["whole"], match["part"] or "") if match else None
    before, behind = (match["before"], match["behind"]) if match else ("", "")
    return _Shape(is_date_format(pattern), is_timedelta_format(pattern), digits, before, behind)


def _number(exact: Decimal, shape: _Shape) -> str:
    if shape.digits is None:
        plain = f"{exact:f}"
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    whole, part = shape.digits
    if "%" in shape.behind:
        exact = exact.scaleb(2)
    digits = f"{abs(exact).quantize(Decimal(1).scaleb(-len(part)), ROUND_HALF_UP, _PRECISE):f}"
    left, _, right = digits.partition(".")
    while len(right) > part.count("0") and right.endswith("0"):
        right = right[:-1]
    left = left.zfill(whole.count("0"))
    if "," in whole:
        left = f"{int(left):,}"
    sign = "-" if exact < 0 and (left + right).strip("0,") else ""
    return f"{sign}{shape.before}{left}{'.' if right else ''}{right}{shape.behind}".strip()


def _literals(pattern: str) -> str:
    """Return the pattern without colours, fillers and conditions; quoted texts and currencies as shown."""
    pattern = re.sub(r"\[\$([^\]\-]*)(?:-[^\]]*)?\]", r'"\1"', pattern)
    pattern = re.sub(r"\[[^\]]*\]|[_*].", "", pattern)
    return re.sub(r'"([^"]*)"|\\(.)', lambda match: match[1] if match[1] is not None else match[2], pattern)
