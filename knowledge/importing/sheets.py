"""Excel files, read as a person sees them."""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, time
from decimal import ROUND_HALF_UP, Decimal
from itertools import repeat
from typing import TYPE_CHECKING, Any

from agent_core.errors import InputRejected
from knowledge.importing.drafts import MOST_ROWS, Draft, Row, too_many
from knowledge.importing.table import drafts_of, has_header

if TYPE_CHECKING:
    # Imported when it is used: it takes 20 MB, with the numpy that it finds.
    from openpyxl.workbook import Workbook

_MOST_UNPACKED = 64_000_000  # bytes; a table of text packs to a tenth
_MOST_PARTS = 2_000
_LAST_ROW = 1_048_576  # of the format
_MOST_COLUMNS = 60
_FORMULA = re.compile(rb"<(?:\w+:)?f[\s/>]")
# What a cell is written as when XML cannot hold it, and how that is written when it is meant.
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
# A number format: what stands before, digits before and after the point, what stands behind.
_FORMAT = re.compile(r"(?P<before>[^#0?.]*)(?P<whole>[#0?,]*[#0?])(?:\.(?P<part>[#0?]+))?(?P<behind>[^#0?.,]*)")


def read_xlsx(name: str, data: bytes) -> Sequence[Draft]:
    """Every visible sheet that has a header. One without is told, and read by its first columns where no sheet has one.

    A formula gives the value that was saved with it; without one its cell is named. InputRejected for what is no such
    file, unpacks to more than 64 MB or has more than 20,000 rows.
    """
    _safe_to_unpack(name, data)
    with _said(name):
        sheets, hidden = _sheets(name, data)
    sheets = [(where, rows) for where, rows in sheets if rows]
    headed = [where for where, rows in sheets if has_header(rows)]
    drafts: list[Draft] = []
    for where, rows in sheets:
        if headed and where not in headed:
            drafts.append(Draft(where, problem="it has no header with a question and an answer, and was not read"))
        else:
            drafts.extend(drafts_of(where, rows))
    if len(drafts) > MOST_ROWS:
        raise too_many(name, "rows")
    if drafts and hidden:
        note = "\n".join(filter(None, (drafts[0].note, f"{name}: hidden sheets were not read: {', '.join(hidden)}")))
        drafts[0] = replace(drafts[0], note=note)
    return drafts


def escaped(text: str) -> str:
    """``text`` for a cell, so that "_x0041_" in it stays what it is."""
    return re.sub(r"_(?=x[0-9A-Fa-f]{4}_)", "_x005F_", text)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "_x" in text else text


def _safe_to_unpack(name: str, data: bytes) -> None:
    """By what the archive says of itself; no more than that is unpacked of a part."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        raise InputRejected(f"{name} is no Excel file (.xlsx).", key="no_excel", name=name) from None
    if sum(part.file_size for part in parts) > _MOST_UNPACKED or len(parts) > _MOST_PARTS:
        raise InputRejected(
            f"{name} unpacks to more than {_MOST_UNPACKED // 1_000_000} MB.",
            advice="Save the questions and answers in a file of their own.",
            key="unpacks_too_large",
            name=name,
            most=_MOST_UNPACKED // 1_000_000,
        )


@contextmanager
def _said(name: str) -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and drop-down lists that are not read
            yield
    except InputRejected:
        raise
    except Exception as error:
        raise InputRejected(
            f"{name} cannot be read as an Excel file ({type(error).__name__}).",
            advice="Open and save it in Excel.",
            key="no_excel",
            name=name,
        ) from error


def _sheets(name: str, data: bytes) -> tuple[list[tuple[str, list[Row]]], list[str]]:
    """The rows of each visible sheet, blank ones left out, and the names of the hidden ones."""
    from openpyxl import load_workbook

    book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    formulas = load_workbook(io.BytesIO(data), read_only=True) if _has_formulas(data) else None
    try:
        found: list[tuple[str, list[Row]]] = []
        hidden: list[str] = []
        for sheet in book.worksheets:
            if sheet.sheet_state == "visible":
                where = f"{name}, sheet {sheet.title}"
                found.append((where, list(_rows(where, book, formulas, sheet.title))))
            else:
                hidden.append(sheet.title)
        return found, hidden
    finally:
        book.close()
        if formulas:
            formulas.close()


def _has_formulas(data: bytes) -> bool:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = [part for part in archive.namelist() if part.startswith("xl/worksheets/")]
        return any(_FORMULA.search(archive.read(part)) for part in parts)


def _rows(where: str, book: Workbook, formulas: Workbook | None, title: str) -> Iterator[Row]:
    from openpyxl.utils import get_column_letter

    values = _cells(book, title)
    meant = _cells(formulas, title) if formulas else repeat(())
    content = 0
    blank: object = None
    for number, (cells, originals) in enumerate(zip(values, meant, strict=False), start=1):
        if number > _LAST_ROW or content > MOST_ROWS * 2:
            raise too_many(where, "rows")
        if cells is blank:  # a row that the file does not have; there may be a million
            continue
        texts: list[str] = []
        faults: dict[int, str] = {}
        for index, cell in enumerate(cells):
            at = f"{get_column_letter(index + 1)}{number}"
            texts.append("" if cell.data_type == "e" else _shown(cell))
            if cell.data_type == "e":
                faults[index] = f"cell {at} holds the error {cell.value}"
            elif not texts[-1] and index < len(originals) and originals[index].data_type == "f":
                faults[index] = f"cell {at} holds a formula without a saved value: save the file in Excel first"
        row = Row(f"{where}, row {number}", texts, faults)
        if row.blank:
            blank = cells
        else:
            content += 1
            yield row


def _cells(book: Workbook, title: str) -> Iterator[tuple[Any, ...]]:
    sheet = book[title]
    sheet.reset_dimensions()  # some programs write a wrong size, and less is read
    return iter(sheet.iter_rows(max_col=_MOST_COLUMNS))


def _shown(cell: Any) -> str:  # cells of the read-only kind have no common class
    """A cell's text: 1.0 is "1", a price is rounded and has its sign, a percentage and a date are written as such."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float)):
        return _number(value, cell.number_format or "General")
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d" if value.time() == time() else "%Y-%m-%d %H:%M")
    if isinstance(value, date):
        return value.isoformat()
    return value.strftime("%H:%M") if isinstance(value, time) else _unescaped(str(value))


def _number(value: float, pattern: str) -> str:
    exact = Decimal(value) if isinstance(value, int) else Decimal(f"{value:.15g}")
    literal = _literals(pattern.split(";", maxsplit=1)[0])
    match = _FORMAT.fullmatch(literal)
    if match is None:
        plain = f"{exact:f}"
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    before, whole, part, behind = match["before"], match["whole"], match["part"] or "", match["behind"]
    if "%" in behind:
        exact *= 100
    digits = f"{abs(exact).quantize(Decimal(1).scaleb(-len(part)), ROUND_HALF_UP):f}"
    left, _, right = digits.partition(".")
    while len(right) > part.count("0") and right.endswith("0"):
        right = right[:-1]
    left = left.zfill(whole.count("0"))
    if "," in whole:
        left = f"{int(left):,}"
    sign = "-" if exact < 0 and (left + right).strip("0,") else ""
    return f"{sign}{before}{left}{'.' if right else ''}{right}{behind}".strip()


def _literals(pattern: str) -> str:
    """The pattern without colours, fillers and conditions; what stands in quotes, and a currency, as it is shown."""
    pattern = re.sub(r"\[\$([^\]\-]*)[^\]]*\]", r'"\1"', pattern)
    pattern = re.sub(r"\[[^\]]*\]|[_*].", "", pattern)
    return re.sub(r'"([^"]*)"|\\(.)', lambda match: match[1] if match[1] is not None else match[2], pattern)
