"""Files that are no back-ups, or damaged ones: made of a whole one, each by its name."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
import sqlite3
import stat
import struct
import tarfile
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

MANIFEST, DATABASE = "manifest.json", "phonedesk.sqlite3"
Parts = Mapping[str, bytes]
Made = bytes | None  # None: a folder
_CUTS, _FLIPS, _FLIPS_INSIDE = 60, 60, 25
_END = b"PK\x05\x06"
_ENTRY = b"PK\x01\x02"


def parts_of(whole: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts: Mapping[str, bytes] | Sequence[tuple[str | zipfile.ZipInfo, bytes]], packing: int = 8) -> bytes:
    out = io.BytesIO()
    pairs = list(parts.items()) if isinstance(parts, Mapping) else parts
    with zipfile.ZipFile(out, "w", packing) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, data in pairs:
            archive.writestr(name, data, packing)
    return out.getvalue()


# Names and what they make. ``harmless`` are those that can be restored all the same.


def names() -> Iterator[str]:
    """The name of every case, without making any."""
    yield from (f"cut {number}" for number in range(_CUTS))
    yield from (f"flip {number}" for number in range(_FLIPS))
    yield from (f"flip in {DATABASE} {number}" for number in range(_FLIPS_INSIDE))
    yield from (f"manifest {name}" for name in _MANIFESTS)
    yield from _ARCHIVES
    yield from (f"{DATABASE} {name}" for name in _FILES)
    yield from (f"database {name}" for name in _STATEMENTS)


HARMLESS = {
    "archive text before",
    "archive twice",
    "archive not compressed",
    "archive with a comment",
    # Nothing is behind the last entry that these could cover.
    "archive a name of 60 KB",
    "archive an extra of 60 KB",
    "archive unpacks to 4 GB",  # it says so, and ends where it ends, with the right sum
    "database with an answer without end",
}


def make(name: str, whole: bytes) -> Made:
    """The damaged file of this name, from a ``whole`` back-up."""
    kind, _, rest = name.partition(" ")
    parts = parts_of(whole)
    if name in _ARCHIVES:
        return _ARCHIVES[name](whole)
    if kind == "cut":
        return whole[: len(whole) * int(rest) // _CUTS]
    if name.startswith("flip in "):
        part, _, number = name.removeprefix("flip in ").partition(" ")
        return packed({**parts, part: _flipped(parts[part], int(number), _FLIPS_INSIDE)})
    if kind == "flip":
        return _flipped(whole, int(rest), _FLIPS)
    if kind == "manifest":
        made = _MANIFESTS[rest]
        return packed({**parts, MANIFEST: made(parts[MANIFEST]) if callable(made) else made})
    if kind == "database":
        return packed({**parts, DATABASE: changed(parts[DATABASE], _STATEMENTS[rest])})
    return packed({**parts, kind: _FILES[rest](parts, kind)})


def _flipped(data: bytes, number: int, count: int) -> bytes:
    """One bit is another, somewhere in this part of the data."""
    chance = random.Random(number)
    at = min(len(data) - 1, len(data) * number // count + chance.randrange(max(1, len(data) // count)))
    changed_data = bytearray(data)
    changed_data[at] ^= 1 << chance.randrange(8)
    return bytes(changed_data)


def changed(data: bytes, statements: str) -> bytes:
    """The database after these statements."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.sqlite3"
        file.write_bytes(data)
        with contextlib.closing(sqlite3.connect(file)) as connection:
            connection.executescript(statements)
        return file.read_bytes()


def _told(**values: object) -> Callable[[bytes], bytes]:
    return lambda manifest: json.dumps({**json.loads(manifest), **values}).encode()


def _without(key: str) -> Callable[[bytes], bytes]:
    return lambda manifest: json.dumps({k: v for k, v in json.loads(manifest).items() if k != key}).encode()


_FORMS: list[object] = [0, -1, 2, 10**30, 1.5, "1", "x", None, True, [], {}, [1], {"form": 1}]
_TIMES: list[object] = [
    "",
    "yesterday",
    "2026-13-01T00:00:00+00:00",
    "2026-01-01T00:00:00",
    "9" * 400,
    None,
    [],
    {},
    True,
]
_PARTS: list[object] = [
    [],
    None,
    {},
    "phonedesk.sqlite3",
    {"phonedesk.sqlite3": 1},
    ["knowledge.sqlite3"],
    [DATABASE, DATABASE],
    [DATABASE, "queue.sqlite3"],
    [DATABASE, "../queue.sqlite3"],
    ["/etc/passwd"],
    [DATABASE, None],
    [[DATABASE]],
    [1, 2],
]
_RELEASES: list[object] = [None, 1, [], {}]
_MANIFESTS: Mapping[str, bytes | Callable[[bytes], bytes]] = {
    "empty": b"",
    "null": b"null",
    "a number": b"1",
    "a list": b"[]",
    "a text": b'"manifest"',
    "an empty object": b"{}",
    "no JSON": b"{form: 1}",
    "half": lambda manifest: manifest[: len(manifest) // 2],
    "deep": b"[" * 60_000,
    "of 50 MB": b" " * 50_000_000,
    "no UTF-8": b'{"form": "\xff"}',
    "of zeros": bytes(1000),
    "a number without end": b'{"form": ' + b"9" * 6000 + b"}",
    **{f"without {key}": _without(key) for key in ("form", "made_at", "parts", "release")},
    **{f"form {form!r}": _told(form=form) for form in _FORMS},
    **{f"made_at {at!r}": _told(made_at=at) for at in _TIMES},
    **{f"parts {parts!r}": _told(parts=parts) for parts in _PARTS},
    **{f"release {release!r}": _told(release=release) for release in _RELEASES},
}


def _more(*more: tuple[str, bytes]) -> Callable[[bytes], bytes]:
    return lambda whole: packed([*parts_of(whole).items(), *more])


def _less(name: str) -> Callable[[bytes], bytes]:
    return lambda whole: packed({key: data for key, data in parts_of(whole).items() if key != name})


def _renamed(name: str, to: str) -> Callable[[bytes], bytes]:
    return lambda whole: packed({to if key == name else key: data for key, data in parts_of(whole).items()})


def _linked(whole: bytes) -> bytes:
    """The database is a symbolic link."""
    link = zipfile.ZipInfo(DATABASE)
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    parts = parts_of(whole)
    return packed([(MANIFEST, parts[MANIFEST]), (link, b"/etc/passwd")])


def _entry_changed(offset: int, form: str, value: int, number: int = 1) -> Callable[[bytes], bytes]:
    """A field of an entry of the directory (APPNOTE.TXT 4.3.12) is another; ``number``: of which part."""

    def make_it(whole: bytes) -> bytes:
        data, at = bytearray(whole), -1
        for _ in range(number + 1):
            at = whole.index(_ENTRY, at + 1)
        struct.pack_into(form, data, at + offset, value)
        return bytes(data)

    return make_it


def _end_changed(offset: int, form: str, value: int) -> Callable[[bytes], bytes]:
    def make_it(whole: bytes) -> bytes:
        data = bytearray(whole)
        struct.pack_into(form, data, whole.rindex(_END) + offset, value)
        return bytes(data)

    return make_it


def _enormous(whole: bytes) -> bytes:
    """The directory says that the database has an exabyte (the extra field of ZIP64)."""
    parts = parts_of(whole)
    info = zipfile.ZipInfo(DATABASE)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.extra = struct.pack("<HHQ", 1, 8, 1 << 60)
    made = packed([(MANIFEST, parts[MANIFEST]), (info, parts[DATABASE])])
    return _entry_changed(24, "<I", 0xFFFFFFFF)(made)


def _tar(name: str, mode: str = "w") -> Callable[[bytes], bytes]:
    def make_it(whole: bytes) -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
            info = tarfile.TarInfo(name)
            info.size = len(parts_of(whole)[DATABASE])
            archive.addfile(info, io.BytesIO(parts_of(whole)[DATABASE]))
        return out.getvalue()

    return make_it


def _data(data: bytes) -> Callable[[bytes], bytes]:
    return lambda _: data


def _part(name: str) -> Callable[[bytes], bytes]:
    return lambda whole: parts_of(whole)[name]


def _packed_as(packing: int) -> Callable[[bytes], bytes]:
    return lambda whole: packed(parts_of(whole), packing)


def _commented(whole: bytes) -> bytes:
    out = io.BytesIO(whole)
    with zipfile.ZipFile(out, "a") as archive:
        archive.comment = b"of the shop"
    return out.getvalue()


_ARCHIVES: Mapping[str, Callable[[bytes], Made]] = {
    "archive a folder": lambda _: None,
    "archive empty": _data(b""),
    "archive text": _data("客户的问题".encode() * 100),
    "archive a PNG": _data(b"\x89PNG\r\n\x1a\n" + bytes(100)),
    "archive a PDF": _data(b"%PDF-1.7\n%%EOF"),
    "archive 7z": _data(b"7z\xbc\xaf\x27\x1c" + bytes(100)),
    "archive RAR": _data(b"Rar!\x1a\x07\x01\x00" + bytes(100)),
    "archive noise": _data(random.Random(3).randbytes(50_000)),
    "archive of PostgreSQL": _data(b"PGDMP\x01\x0f\x00" + bytes(500)),
    "archive the database itself": _part(DATABASE),
    "archive gzip": gzip.compress,
    "archive tar": _tar(DATABASE),
    "archive tar upwards": _tar("../../phonedesk.sqlite3"),
    "archive tar absolute": _tar("/tmp/phonedesk.sqlite3"),
    "archive tar.gz": _tar(DATABASE, "w:gz"),
    "archive an empty zip": _data(_END + bytes(18)),
    "archive a zip of other things": _data(packed({"a.txt": b"hello", "b/c.txt": b"x"})),
    "archive an Excel file": _data(packed({"[Content_Types].xml": b"<Types/>", "xl/workbook.xml": b"<workbook/>"})),
    "archive a zip in a zip": lambda whole: packed({"phonedesk.zip": whole}),
    "archive twice": lambda whole: whole + whole[: len(whole) // 2],
    "archive backwards": lambda whole: whole[::-1],
    "archive text before": lambda whole: b"#!/bin/sh\n" * 10 + whole,
    "archive text behind": lambda whole: whole + b"x" * 70_000,
    "archive not compressed": _packed_as(zipfile.ZIP_STORED),
    "archive with a comment": _commented,
    "archive bzip2": _packed_as(zipfile.ZIP_BZIP2),
    "archive LZMA": _packed_as(zipfile.ZIP_LZMA),
    "archive without a manifest": _less(MANIFEST),
    "archive without the database": _less(DATABASE),
    "archive two manifests": _more((MANIFEST, b"{}")),
    "archive two databases": _more((DATABASE, b"")),
    "archive one more part": _more(("queue.sqlite3", b"x")),
    "archive upwards": _more(("../../evil.sqlite3", b"x")),
    "archive absolute": _more(("/tmp/evil.sqlite3", b"x")),
    "archive a folder in it": _more(("folder/", b"")),
    "archive the database upwards": _renamed(DATABASE, f"../{DATABASE}"),
    "archive the database absolute": _renamed(DATABASE, f"/{DATABASE}"),
    "archive the database in a folder": _renamed(DATABASE, f"data/{DATABASE}"),
    "archive the database in capitals": _renamed(DATABASE, DATABASE.upper()),
    "archive the manifest in a folder": _renamed(MANIFEST, f"./{MANIFEST}"),
    "archive a link": _linked,
    "archive an exabyte": _enormous,
    "archive with a password": _entry_changed(8, "<H", 1),
    "archive packed by nobody": _entry_changed(10, "<H", 99),
    "archive packed by nobody, the manifest": _entry_changed(10, "<H", 99, 0),
    "archive another sum": _entry_changed(16, "<I", 1),
    "archive another sum of the manifest": _entry_changed(16, "<I", 1, 0),
    "archive packed to nothing": _entry_changed(20, "<I", 0),
    "archive packed to 4 GB": _entry_changed(20, "<I", 0xFFFFFFF0),
    "archive unpacks to nothing": _entry_changed(24, "<I", 0),
    "archive unpacks to 16 bytes": _entry_changed(24, "<I", 16),
    "archive unpacks to half": _entry_changed(24, "<I", 100_000),
    "archive unpacks to 4 GB": _entry_changed(24, "<I", 0xFFFFFFF0),
    "archive a name of 60 KB": _entry_changed(28, "<H", 60_000),
    "archive an extra of 60 KB": _entry_changed(30, "<H", 60_000),
    "archive elsewhere": _entry_changed(42, "<I", 5),
    "archive behind the end": _entry_changed(42, "<I", 0xFFFFFFF0),
    "archive a directory of nothing": _end_changed(12, "<I", 0),
    "archive a directory of 4 GB": _end_changed(12, "<I", 0xFFFFFFF0),
    "archive a directory elsewhere": _end_changed(16, "<I", 1),
    "archive a directory behind the end": _end_changed(16, "<I", 0xFFFFFFF0),
}


@cache
def _of_others() -> bytes:
    """A database of another program, of some size."""
    return changed(
        b"", "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT); INSERT INTO notes (text) VALUES ('x');"
    )


def _cut_to(size: int) -> Callable[[Parts, str], bytes]:
    return lambda parts, name: parts[name][:size]


def _header(at: int, value: bytes) -> Callable[[Parts, str], bytes]:
    """Bytes of SQLite's header are others (the format: 1.3 The Database Header)."""
    return lambda parts, name: parts[name][:at] + value + parts[name][at + len(value) :]


def _always(data: bytes | Callable[[], bytes]) -> Callable[[Parts, str], bytes]:
    return lambda _parts, _name: data() if callable(data) else data


def _page_zeroed(number: int) -> Callable[[Parts, str], bytes]:
    return lambda parts, name: parts[name][: 4096 * number] + bytes(4096) + parts[name][4096 * (number + 1) :]


_FILES: Mapping[str, Callable[[Parts, str], bytes]] = {
    "is empty": _always(b""),
    "is text": _always(b"SQLite format 4, which nobody has"),
    "is 50 MB of zeros": _always(partial(bytes, 50_000_000)),
    "is of another program": _always(_of_others),
    "has no tables": _always(lambda: changed(b"", "CREATE TABLE x (y); DROP TABLE x;")),
    "ends after its name": _cut_to(16),
    "ends after its header": _cut_to(100),
    "ends after a page": _cut_to(4096),
    "ends in a page": _cut_to(6000),
    "has pages of 3 bytes": _header(16, b"\x00\x03"),
    "has pages of 64 KB": _header(16, b"\x00\x01"),
    "is of a later format": _header(18, b"\x09\x09"),
    "has 4 billion pages": _header(28, b"\xff\xff\xff\xff"),
    "is in UTF-16": _header(56, b"\x00\x00\x00\x02"),
    "has a first page of zeros": _header(100, bytes(500)),
    "has a second page of zeros": _page_zeroed(1),
    "has a third page of zeros": _page_zeroed(2),
}
_STATEMENTS: Mapping[str, str] = {
    "of a later revision": "UPDATE alembic_version SET version_num = '9999'",
    "of no revision": "DELETE FROM alembic_version",
    "of two revisions": "INSERT INTO alembic_version VALUES ('202610')",
    "of the first revision": "UPDATE alembic_version SET version_num = '0001'",
    "of a revision without end": "UPDATE alembic_version SET version_num = hex(zeroblob(50000))",
    "of a revision that is a number": "UPDATE alembic_version SET version_num = 7",
    "without revisions": "DROP TABLE alembic_version",
    "without runs": "DROP TABLE runs",
    "without leases": "DROP TABLE leases",
    "without contacts": "DROP TABLE contacts",
    "without a column": "ALTER TABLE runs DROP COLUMN message",
    "with a column renamed": "ALTER TABLE replies RENAME COLUMN state TO what",
    "with a view for a table": "ALTER TABLE runs RENAME TO r; CREATE VIEW runs AS SELECT * FROM r",
    "with a time that is none": "UPDATE runs SET created_at = 'yesterday'",
    "with a time that is a number": "UPDATE runs SET created_at = 12",
    "with options that are no JSON": "UPDATE runs SET options = '{'",
    "with events that are no JSON": "UPDATE events SET data = x'ff00ff'",
    "with a task of no UTF-8": "UPDATE runs SET task = CAST(x'ff' AS TEXT)",
    "with an id that is nothing": "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, "
    "'CREATE TABLE runs', 'CREATE TABLE runs_2') WHERE name = 'runs'",
    "with a trigger that fails": "CREATE TRIGGER t BEFORE UPDATE ON runs BEGIN SELECT RAISE(ABORT, 'no'); END",
    "with a trigger on leases": "CREATE TRIGGER t BEFORE UPDATE ON leases BEGIN SELECT RAISE(FAIL, 'no'); END",
    "without knowledge entries": "DROP TABLE knowledge_entries",
    "without a column of them": "ALTER TABLE knowledge_entries DROP COLUMN origin",
    "with an entry of a time that is none": "UPDATE knowledge_entries SET created_at = 'yesterday'",
    "with aliases that are no JSON": "UPDATE knowledge_entries SET aliases = '['",
    "with aliases that are no list": "UPDATE knowledge_entries SET aliases = '5'",
    "with words that are none": "UPDATE knowledge_entries SET words = x'00'",
    "with an answer of no UTF-8": "UPDATE knowledge_entries SET answer = CAST(x'ff' AS TEXT)",
    "with an answer without end": "UPDATE knowledge_entries SET answer = hex(zeroblob(50000))",
}
