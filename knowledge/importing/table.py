"""From rows of cells to drafts: where the header is, and which column is what."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agent_core.errors import InputRejected
from knowledge.importing.drafts import Draft, Row, column, columns, draft, listed, named
from knowledge.importing.limits import COLUMNS, Allowance
from knowledge.importing.said import ImportMessage

HEADER_WITHIN = 10  # rows with content: titles and explanations may stand above it


def has_header(rows: Sequence[Row]) -> bool:
    """Whether one of the first ``HEADER_WITHIN`` rows is a header; ``rows`` has those with content."""
    return _header(rows) is not None


def checked_width(where: str, cells: Sequence[str]) -> Sequence[str]:
    """The cells of a row. Blank ones behind the last column that a table may have are left out.

    InputRejected where there is something in one of those.
    """
    if any(cell.strip() for cell in cells[COLUMNS.most :]):
        raise COLUMNS.passed(where)
    return cells[: COLUMNS.most]


def drafts_of(where: str, rows: Iterable[Row], taken: Allowance) -> list[Draft]:
    """Rows with content, without the header's and what is above it. ``where`` is the file, or the file and the sheet.

    Without a header the first column is the question and the second the answer, and a note says so. The rows are read
    one by one, so that a table that is too large ends where it is (InputRejected of ``taken``).
    """
    rows = (row for row in rows if not row.blank)
    head = list(itertools.islice(rows, HEADER_WITHIN))
    at = _header(head)
    header: Sequence[str] = () if at is None else head[at].cells
    if at is None:
        _not_half_a_header(where, head)
        names: list[str | None] = ["question", "answer"]
        notes = [ImportMessage("no_header", where=where)]
    else:
        names = columns(header) or []
        notes = [ImportMessage("above_header", place=row.place) for row in head[:at]]
        unread = [cell for cell, name in zip(header, names, strict=True) if not name and cell.strip()]
        notes += [ImportMessage("columns_unread", where=where, names=listed(unread))] if unread else []
        notes += _read_once(where, header, names)
    drafts: list[Draft] = []
    left_out = nameless = False
    for row in itertools.chain(head[0 if at is None else at + 1 :], rows):
        drafts.append(_draft(row, names, taken, headed=at is not None))
        if at is None:
            left_out = left_out or len(row.cells) > 2
        else:
            nameless = nameless or any(
                cell.strip() and not name.strip() for cell, name in zip(row.cells, header, strict=False)
            )
    notes += [ImportMessage("columns_beyond", where=where)] if left_out else []
    notes += [ImportMessage("columns_nameless", where=where)] if nameless else []
    return [replace(drafts[0], notes=tuple(notes)), *drafts[1:]] if drafts else []


def _header(rows: Sequence[Row]) -> int | None:
    return next((index for index, row in enumerate(rows[:HEADER_WITHIN]) if columns(row.cells)), None)


def _not_half_a_header(where: str, rows: Sequence[Row]) -> None:
    """A header that names only one of the two must not be read as a question."""
    found = {name: cell for cell in rows[0].cells if (name := column(cell))} if rows else {}
    for one, other in (("question", "answer"), ("answer", "question")):
        if one in found and other not in found:
            raise InputRejected(
                f"{where} has a column {named(found[one])} for the {one}, and none for the {other}.",
                advice="Name the columns question and answer (问题, 答案).",
                key="half_a_header",
                name=where,
                column=named(found[one]),
            )


def _read_once(where: str, cells: Sequence[str], names: Sequence[str | None]) -> list[ImportMessage]:
    """The columns whose field an earlier one fills; a second question is another wording, tags and aliases add up."""
    again = [
        cell
        for index, (cell, name) in enumerate(zip(cells, names, strict=True))
        if name in ("id", "answer", "live", "alias_of") and name in names[:index]
    ]
    return [ImportMessage("columns_again", where=where, names=listed(again))] if again else []


def _draft(row: Row, names: Sequence[str | None], taken: Allowance, *, headed: bool) -> Draft:
    fields = [(name, cell) for name, cell in zip(names, row.cells, strict=False) if name]
    short = [(name, "") for name in names[len(row.cells) :] if name]
    faults = [fault for index, fault in sorted(row.faults.items()) if index < len(names) and names[index]]
    beyond = [cell for cell in row.cells[len(names) :] if cell.strip()]
    if beyond and headed:  # a comma that was not quoted would cut an answer short
        faults.append(ImportMessage("cells", count=len(row.cells), header=len(names)))
    return draft(row.place, [*fields, *short], faults, taken=taken)
