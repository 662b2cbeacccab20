"""From rows of cells to drafts: where the header is, and which column is what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent_core.errors import InputRejected
from knowledge.importing.drafts import MOST_ROWS, Draft, Row, column, columns, draft, too_many

_HEADER_WITHIN = 10  # rows: titles and explanations may stand above it


def has_header(rows: Sequence[Row]) -> bool:
    return _header(rows) is not None


def drafts_of(where: str, rows: Sequence[Row]) -> Sequence[Draft]:
    """Rows with content, without the header's and what is above it. ``where`` is the file, or the file and the sheet.

    Without a header the first column is the question and the second the answer, and a note says so.
    """
    rows = [row for row in rows if not row.blank]
    at = _header(rows)
    if at is None:
        _not_half_a_header(where, rows)
        names: list[str | None] = ["question", "answer"]
        notes = [f"{where} has no header: its first column was taken as the question, its second as the answer"]
        notes += _left_out(where, max((len(row.cells) for row in rows), default=0))
        body = rows
    else:
        names = columns(rows[at].cells) or []
        body = rows[at + 1 :]
        notes = [f"{row.place} stands above the header and was not read" for row in rows[:at]]
        unread = [cell.strip() for cell, name in zip(rows[at].cells, names, strict=True) if not name and cell.strip()]
        notes += [f"{where}: these columns were not read: {', '.join(unread)}"] if unread else []
        notes += _read_once(where, rows[at].cells, names)
        nameless = [index for index, cell in enumerate(rows[at].cells) if not cell.strip()]
        if any(row.cells[index : index + 1] and row.cells[index].strip() for row in body for index in nameless):
            notes.append(f"{where}: columns without a name were not read")
    if len(body) > MOST_ROWS:
        raise too_many(where, "rows")
    drafts = [_draft(row, names, headed=at is not None) for row in body]
    return [replace(drafts[0], note="\n".join(notes)), *drafts[1:]] if drafts else []


def _header(rows: Sequence[Row]) -> int | None:
    filled = (index for index, row in enumerate(rows) if not row.blank)
    for _, index in zip(range(_HEADER_WITHIN), filled, strict=False):
        if columns(rows[index].cells):
            return index
    return None


def _not_half_a_header(where: str, rows: Sequence[Row]) -> None:
    """A header that names only one of the two must not be read as a question."""
    found = {name: cell for cell in rows[0].cells if (name := column(cell))} if rows else {}
    for one, other in (("question", "answer"), ("answer", "question")):
        if one in found and other not in found:
            raise InputRejected(
                f"{where} has a column {found[one].strip()} for the {one}, and none for the {other}.",
                advice="Name the columns question and answer (问题, 答案).",
                key="half_a_header",
                name=where,
                column=found[one].strip(),
            )


def _read_once(where: str, cells: Sequence[str], names: Sequence[str | None]) -> list[str]:
    """The columns whose field an earlier one fills; a second question is another wording, tags and aliases add up."""
    again = [
        cell.strip()
        for index, (cell, name) in enumerate(zip(cells, names, strict=True))
        if name in ("id", "answer", "live", "alias_of") and name in names[:index]
    ]
    return [f"{where}: only the first column of its kind is read, not: {', '.join(again)}"] if again else []


def _left_out(where: str, width: int) -> list[str]:
    return [f"{where}: the columns after the second were not read"] if width > 2 else []


def _draft(row: Row, names: Sequence[str | None], *, headed: bool) -> Draft:
    fields = [(name, cell) for name, cell in zip(names, row.cells, strict=False) if name]
    short = [(name, "") for name in names[len(row.cells) :] if name]
    faults = [fault for index, fault in sorted(row.faults.items()) if index < len(names) and names[index]]
    beyond = [cell for cell in row.cells[len(names) :] if cell.strip()]
    if beyond and headed:  # a comma that was not quoted would cut an answer short
        faults.append(f"it has {len(row.cells)} cells where the header has {len(names)}")
    return draft(row.place, [*fields, *short], faults)
