"""Turns rows of cells into drafts: finds the header, and the field of each column."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agent_core.errors import InputRejected
from knowledge.importing.drafts import COLUMN_NAMES, Draft, Row, column, columns, draft, listed, named
from knowledge.importing.limits import COLUMNS, Allowance
from knowledge.importing.said import ImportMessage

HEADER_WITHIN = 10  # rows with content: titles and explanations may be above it


def has_header(rows: Sequence[Row]) -> bool:
    """Tell whether one of the first ``HEADER_WITHIN`` rows is a header; ``rows`` are those with content."""
    return _header(rows) is not None


def checked_width(where: str, cells: Sequence[str]) -> Sequence[str]:
    """Return the cells of a row, without blank ones after the last column that a table may have.

    Raises InputRejected if one of those has content.
    """
    if any(cell.strip() for cell in cells[COLUMNS.most :]):
        raise COLUMNS.passed(where)
    return cells[: COLUMNS.most]


def drafts_of(where: str, rows: Iterable[Row], taken: Allowance) -> list[Draft]:
    """Return drafts of the rows with content below the header. ``where`` is the file, or the file and the sheet.

    Without a header the first column is the question and the second the answer, and a note says so. Rows are read one
    by one, so that reading stops where a table gets too large (InputRejected of ``taken``).
    """
    rows = (row for row in rows if not row.blank)
    head = list(itertools.islice(rows, HEADER_WITHIN))
    at = _header(head)
    header: Sequence[str] = () if at is None else head[at].cells
    if at is None:
        _not_half_a_header(where, head)
        names: list[str | None] = ["question", "answer"]
        notes = [ImportMessage("no_header", where=where, **COLUMN_NAMES)]
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
    """Raise if the first row names only a question or only an answer: it must not be read as a question."""
    cells = rows[0].cells if rows else ()
    found = {name: cell for cell in cells if (name := column(cell))}
    for one, other in (("question", "answer"), ("answer", "question")):
        if one in found and other not in found:
            unknown = listed(cell for cell in cells if cell.strip() and not column(cell))
            raise InputRejected(
                f"{where} has a column {named(found[one])} for the {one}, and none for the {other}."
                + (f" Not understood: {unknown}." if unknown else ""),
                advice="Name the columns question and answer (问题, 答案).",
                key=f"no_{other}_column" if unknown else "half_a_header",
                name=where,
                column=named(found[one]),
                unknown=unknown,
                **COLUMN_NAMES,
            )


def _read_once(where: str, cells: Sequence[str], names: Sequence[str | None]) -> list[ImportMessage]:
    """Report columns whose field an earlier one fills; second questions are aliases, tags and aliases add up."""
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
    if beyond and headed:  # an unquoted comma would cut an answer short
        faults.append(ImportMessage("cells", count=len(row.cells), header=len(names)))
    return draft(row.place, [*fields, *short], faults, taken=taken)
