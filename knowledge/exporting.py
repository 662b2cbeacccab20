"""Writes entries to a file for people, which can be imported again without a change.

Every format has id, question, answer, aliases and tags; if any entry waits, also whether an entry is live, and of which
one it is a wording. Origins and times are not exported.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Literal, assert_never

from agent_core.errors import InputRejected
from knowledge.entries import Entry
from knowledge.importing import markdown, sheets
from knowledge.importing.drafts import joined
from knowledge.importing.text import guarded

Form = Literal["csv", "jsonl", "md", "xlsx"]
_COLUMNS = ("id", "question", "answer", "aliases", "tags")
_WAITING = ("live", "alias_of")
_LONGEST_CELL = 32_767  # characters, of the xlsx format; the library cuts longer ones
_WIDTHS = {"A": 18, "B": 36, "C": 60, "D": 36, "E": 18}


def write_table(entries: Sequence[Entry], form: Form) -> bytes:
    """Return the file: csv in UTF-8 with a byte order mark, as Excel wants it, others without; xlsx as one sheet.

    Takes seconds for many entries as xlsx, so call it in a thread. Raises InputRejected if an entry is too long for a
    cell.
    """
    if form == "csv":
        return _csv(entries)
    if form == "jsonl":
        return "".join(json.dumps(_fields(entry), ensure_ascii=False) + "\n" for entry in entries).encode()
    if form == "md":
        return "\n\n".join(map(_markdown, entries)).encode() + (b"\n" if entries else b"")
    if form == "xlsx":
        return _xlsx(entries)
    assert_never(form)


def _fields(entry: Entry) -> dict[str, object]:
    fields: dict[str, object] = {
        "id": entry.id,
        "question": entry.question,
        "answer": entry.answer,
        "aliases": list(entry.aliases),
        "tags": list(entry.tags),
    }
    if not entry.live:
        fields["live"] = False
    if entry.alias_of:
        fields["alias_of"] = entry.alias_of
    return fields


def _cells(entries: Sequence[Entry]) -> list[tuple[str, ...]]:
    """Return the header and a row for each entry."""
    waiting = any(not entry.live for entry in entries)
    rows: list[tuple[str, ...]] = [(*_COLUMNS, *(_WAITING if waiting else ()))]
    for entry in entries:
        aliases, tags = joined(entry.aliases, commas=False), joined(entry.tags, commas=True)
        more = (entry.state.value, entry.alias_of) if waiting else ()
        rows.append((entry.id, entry.question, entry.answer, aliases, tags, *more))
    return rows


def _csv(entries: Sequence[Entry]) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerows([guarded(cell) for cell in row] for row in _cells(entries))
    return out.getvalue().encode("utf-8-sig")


def _markdown(entry: Entry) -> str:
    fields = _fields(entry)
    line = markdown.heading(entry.question)
    del fields["answer"]
    if line:
        del fields["question"]
    return f"{line or '##'}\n\n{markdown.comment(fields)}\n\n{markdown.escaped(entry.answer)}"


def _xlsx(entries: Sequence[Entry]) -> bytes:
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Alignment, Font

    book = Workbook(write_only=True)
    sheet = book.create_sheet("entries")
    sheet.freeze_panes = "A2"
    for letter, width in _WIDTHS.items():
        sheet.column_dimensions[letter].width = width
    bold, wrapped = Font(bold=True), Alignment(wrap_text=True, vertical="top")
    for number, row in enumerate(_cells(entries)):
        cells = []
        for text in row:
            if len(sheets.escaped(text)) > _LONGEST_CELL:
                said, advice = f"The entry {row[0]} is too long for a cell.", "Export it as jsonl or csv."
                raise InputRejected(said, advice=advice, key="long_cell", id=row[0])
            cell = WriteOnlyCell(sheet, value=sheets.escaped(text))
            cell.data_type = "s"  # never a formula
            cell.alignment = wrapped
            if not number:
                cell.font = bold
            cells.append(cell)
        sheet.append(cells)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()
