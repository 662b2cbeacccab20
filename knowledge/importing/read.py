"""Reads a file's rows, by its suffix and content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from agent_core.errors import InputRejected
from agent_core.texts import Listed
from knowledge.importing.drafts import COLUMN_NAMES, Draft
from knowledge.importing.json_lines import read_json
from knowledge.importing.limits import BYTES
from knowledge.importing.markdown import read_markdown
from knowledge.importing.sheets import read_xlsx
from knowledge.importing.text import read_csv

_OTHER_ZIPS = (".docx", ".pptx", ".ods", ".odt", ".zip", ".numbers", ".pages")
SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".md", ".markdown", ".xlsx")
_ZIP = b"PK\x03\x04"
_OLE = b"\xd0\xcf\x11\xe0"


def read_table(name: str, data: bytes) -> Sequence[Draft]:
    """Return the rows of a .csv, .tsv, .jsonl, .json, .md or .xlsx file; rows that cannot be taken have a ``problem``.

    Takes seconds for a large file, so call it in a thread. Raises InputRejected if the file as a whole cannot be read:
    it exceeds a limit, is neither text nor a table, or is empty.

    name: is used for places, and its suffix for the format.
    """
    name = PurePath(name.replace("\\", "/")).name or "file"
    suffix = PurePath(name).suffix.lower()
    if len(data) > BYTES.most:
        raise BYTES.passed(name)
    if data.startswith(_OLE):
        raise InputRejected(
            f"{name} is an old Excel file or has a password.",
            advice="Save it as .xlsx without a password.",
            key="old_excel",
            name=name,
        )
    drafts = _read(name, suffix, data)
    if not drafts:
        raise InputRejected(f"{name} has no question in it.", key="no_questions", name=name, **COLUMN_NAMES)
    return drafts


def _read(name: str, suffix: str, data: bytes) -> Sequence[Draft]:
    if (data.startswith(_ZIP) and suffix not in _OTHER_ZIPS) or suffix == ".xlsx":  # a renamed file is recognised
        return read_xlsx(name, data)
    if suffix in (".csv", ".tsv"):
        return read_csv(name, data, tabs=suffix == ".tsv")
    if suffix in (".json", ".jsonl"):
        return read_json(name, data)
    if suffix in (".md", ".markdown"):
        return read_markdown(name, data)
    said, known = f"{name} is of no kind that can be imported.", Listed(SUFFIXES)
    raise InputRejected(said, advice=f"Use {known}.", key="no_such_kind", name=name, known=known)
