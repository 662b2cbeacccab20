"""Reads Excel's format as a stream: the sheets of a workbook and their cells, in bounded memory (ECMA-376 part 1, 18).

Only what an import needs is read. openpyxl reads such files too, but makes an object of everything in them: files of 32
KB to 4 MB took up to 200 s and 772 MB.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from xml.parsers import expat

from knowledge.importing.limits import CHARACTERS, COLUMNS, ELEMENTS, ENTRY, PARTS, SHEETS, TEXTS, UNPACKED, Allowance

_LAST_ROW = 1_048_576  # this and the next three are Excel's own limits
_MOST_STYLES = 65_490
_LONGEST_FORMAT = 255  # characters
_LONGEST_TITLE = 31
_MOST_FORMATS = 1_000
_PIECE = 1 << 16  # bytes
_LONGEST_TAG = 1 << 20  # bytes: the parser reads an open tag again with each piece
_DEEPEST = 100  # nested elements
_DIRECTORY_ENTRY = b"PK\x01\x02"
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # read piece by piece; others do not end


class NoWorkbook(Exception):
    """The file is not an Excel file, or a broken one."""


@dataclass(frozen=True, slots=True)
class Sheet:
    title: str
    visible: bool
    part: str  # in the archive


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a sheet.

    column: from 0.
    kind: as the format has it: "n" a number, "b" true or false, "d" a date, "e" an error, "s" a text, which is in
    ``text``.
    style: the number of its format.
    formula: it was calculated.
    """

    column: int
    kind: str
    text: str
    style: int
    formula: bool


class Workbook:
    """An Excel file. ``rows`` reads a sheet.

    Anything wrong with the file raises NoWorkbook, or another error of the libraries.
    """

    def __init__(self, data: bytes, taken: Allowance) -> None:
        if data.count(_DIRECTORY_ENTRY) > PARTS.most:
            raise PARTS.passed(taken.name)
        self._taken = taken
        self._archive = zipfile.ZipFile(io.BytesIO(data))
        main = next((target for kind, target in self._related("").values() if kind == "officeDocument"), "")
        self._book = _Book()
        self._read(main, self._book)
        related = self._related(main)
        self.sheets = [
            Sheet(title, visible, related[rel][1])
            for title, visible, rel in self._book.sheets
            if related.get(rel, ("", ""))[0] == "worksheet"
        ]
        if len(self.sheets) > SHEETS.most:
            raise SHEETS.passed(taken.name)
        by_kind = dict(related.values())
        self._texts, self._styles = _Texts(taken), _Styles()
        for kind, reader in (("sharedStrings", self._texts), ("styles", self._styles)):
            if part := by_kind.get(kind):
                self._read(part, reader)

    @property
    def from_1904(self) -> bool:
        """True if days are counted from 1904."""
        return self._book.from_1904

    def format_of(self, style: int) -> str:
        """Return the number format of a cell's style."""
        from openpyxl.styles.numbers import BUILTIN_FORMATS

        number = self._styles.format_of[style] if 0 <= style < len(self._styles.format_of) else 0
        return self._styles.formats.get(number) or BUILTIN_FORMATS.get(number, "General")

    def rows(self, sheet: Sheet) -> Iterator[tuple[int, list[Cell]]]:
        """Yield the number of each row with content, from 1, and its cells with content."""
        cells = _Cells(self._texts.found, f"{self._taken.name}, sheet {sheet.title}", self._taken)
        for _ in _parsed(self._pieces(sheet.part), cells, self._taken):
            yield from cells.ready
            cells.ready.clear()

    def _read(self, part: str, reader: _Reader) -> None:
        for _ in _parsed(self._pieces(part), reader, self._taken):
            pass

    def _related(self, part: str) -> dict[str, tuple[str, str]]:
        """Return the parts that ``part`` links to ("" for the file itself), by id: kind and path."""
        path = PurePosixPath(part)
        links = _Links()
        self._read(str(path.parent / "_rels" / f"{path.name}.rels") if part else "_rels/.rels", links)
        folder = "/" + posixpath.dirname(part)
        return {
            key: (kind.rpartition("/")[2], posixpath.normpath(posixpath.join(folder, target)).lstrip("/"))
            for key, kind, target in links.found
        }

    def _pieces(self, part: str) -> Iterator[bytes]:
        """Yield the part, decompressed, up to its listed size and the limit ``UNPACKED`` of the whole file."""
        info = self._archive.getinfo(part)
        if info.compress_type not in _PACKINGS:
            raise NoWorkbook("it is packed as no Excel file is")
        if info.file_size > UNPACKED.most:
            raise UNPACKED.passed(self._taken.name)
        with self._archive.open(info) as unpacked:
            while piece := unpacked.read(_PIECE):
                self._taken.take(UNPACKED, len(piece))
                yield piece


class _Reader:
    """The receiver of the elements of one part as they come. Names are without their namespace's prefix."""

    def start(self, name: str, attributes: dict[str, str]) -> None: ...

    def end(self, name: str) -> None: ...

    def characters(self, text: str) -> None: ...


def _parsed(pieces: Iterable[bytes], reader: _Reader, taken: Allowance) -> Iterator[None]:
    """Pass the elements to ``reader``; yields after each piece.

    A document type is refused: entities could be endless.
    """
    depth = count = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, count
        depth += 1
        count += 1
        if depth > _DEEPEST:
            raise NoWorkbook("it is nested too deeply")
        reader.start(name.rpartition(":")[2], attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        reader.end(name.rpartition(":")[2])

    def doctype(*_: object) -> None:
        raise NoWorkbook("it has a document type")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = reader.characters
    parser.StartDoctypeDeclHandler = doctype
    fed = 0
    for piece in pieces:
        parser.Parse(piece, False)
        fed += len(piece)
        taken.take(ELEMENTS, count)
        count = 0
        if fed - parser.CurrentByteIndex > _LONGEST_TAG:
            raise NoWorkbook("it has a tag without an end")
        yield
    parser.Parse(b"", True)
    yield


class _Links(_Reader):
    """The relations of a part: id, type and target."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, str]] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            self.found.append((attributes["Id"], attributes["Type"], attributes["Target"]))
            if len(self.found) > PARTS.most:
                raise NoWorkbook("it has too many parts")


class _Book(_Reader):
    """The sheets: title, whether they are visible, and relation."""

    def __init__(self) -> None:
        self.sheets: list[tuple[str, bool, str]] = []
        self.from_1904 = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "workbookPr":
            self.from_1904 = attributes.get("date1904", "0") in ("1", "true")
        elif name == "sheet":
            relation = next(value for key, value in attributes.items() if key.endswith(":id"))
            visible = attributes.get("state", "visible") == "visible"
            self.sheets.append((attributes["name"][:_LONGEST_TITLE], visible, relation))
            if len(self.sheets) > PARTS.most:
                raise NoWorkbook("it has too many sheets")


class _Collected(_Reader):
    """A reader that collects the text of some elements."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._pieces: list[str] = []
        self._size = 0
        self._open = False

    def characters(self, text: str) -> None:
        if self._open:
            self._pieces.append(text)
            self._size += len(text)
            if self._size > ENTRY.most:
                raise ENTRY.passed(self._where)

    def _taken(self) -> str:
        text = "".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return text


class _Texts(_Collected):
    """The texts that cells refer to by number, without their pronunciation (``rPh``)."""

    def __init__(self, taken: Allowance) -> None:
        super().__init__(f"{taken.name}, a cell")
        self._allowed = taken
        self.found: list[str] = []
        self._said = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "rPh":
            self._said = True
        self._open = name == "t" and not self._said

    def end(self, name: str) -> None:
        self._open = False
        if name == "rPh":
            self._said = False
        elif name == "si":
            self.found.append(self._taken())
            if len(self.found) > TEXTS.most:
                raise TEXTS.passed(self._allowed.name)


class _Styles(_Reader):
    """The formats of numbers by the number of the style."""

    def __init__(self) -> None:
        self.formats: dict[int, str] = {}
        self.format_of: list[int] = []
        self._in_cells = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "numFmt":
            self.formats[int(attributes["numFmtId"])] = attributes["formatCode"][:_LONGEST_FORMAT]
        elif name == "cellXfs":
            self._in_cells = True
        elif name == "xf" and self._in_cells:
            self.format_of.append(int(attributes.get("numFmtId", "0")))
        if len(self.format_of) > _MOST_STYLES or len(self.formats) > _MOST_FORMATS:
            raise NoWorkbook("it has too many formats")

    def end(self, name: str) -> None:
        if name == "cellXfs":
            self._in_cells = False


class _Cells(_Collected):
    """The rows of a sheet. A cell without a reference follows the one before it; such a row is one below."""

    def __init__(self, texts: list[str], where: str, taken: Allowance) -> None:
        super().__init__(where)
        self._allowed = taken
        self.ready: list[tuple[int, list[Cell]]] = []
        self._texts = texts
        self._row, self._cells = 0, list[Cell]()
        self._column, self._kind, self._style, self._formula = -1, "n", 0, False
        self._said = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "c":
            place = attributes.get("r")
            self._column = _column(place) if place else self._column + 1
            self._kind, self._style = attributes.get("t", "n"), int(attributes.get("s", "0"))
            self._formula = False
        elif name in ("v", "t"):
            self._open = not self._said
        elif name == "f":
            self._formula = True
        elif name == "rPh":
            self._said = True
        elif name == "row":
            self._row = int(attributes["r"]) if "r" in attributes else self._row + 1
            self._column = -1
            if not 0 < self._row <= _LAST_ROW:
                raise NoWorkbook("it has a row that no sheet has")

    def end(self, name: str) -> None:
        if name == "c":
            self._end_of_cell()
        elif name in ("v", "t"):
            self._open = False
        elif name == "rPh":
            self._said = False
        elif name == "row" and self._cells:
            self.ready.append((self._row, self._cells))
            self._cells = []

    def _end_of_cell(self) -> None:
        text = self._taken()
        kind = "s" if self._kind in ("str", "inlineStr") else self._kind
        if self._kind == "s" and text:
            number = int(text)
            if not 0 <= number < len(self._texts):
                raise NoWorkbook("it names a text that it does not have")
            text = self._texts[number]
        if not (text or self._formula):
            return
        self._allowed.take(CHARACTERS, len(text))
        if text.isspace() and not self._formula:
            return
        if self._column >= COLUMNS.most or len(self._cells) >= COLUMNS.most:
            raise COLUMNS.passed(f"{self._where}, row {self._row}")
        self._cells.append(Cell(self._column, kind, text, self._style, self._formula))


def _column(place: str) -> int:
    """Return the column of "AB12", from 0."""
    letters = place.rstrip("0123456789")
    if not 0 < len(letters) <= 3:
        raise NoWorkbook("it has a cell that no sheet has")
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter.upper()) - 64
    return number - 1
