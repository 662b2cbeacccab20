"""Files that are made to cost much, or to be taken for something else: text of every form, and Excel files."""

from __future__ import annotations

import io
import json
import random
import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence

_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
_MAIN = f'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="{_RELATIONS}"'
SHEET = "xl/worksheets/sheet1.xml"
HEADER = '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c></row>'
ENTRY = '<row r="2"><c r="A2"><v>1</v></c><c r="B2"><v>2</v></c></row>'
TEXT = 9_600_000  # bytes of a text file, under the limit
XML = 20_000_000  # bytes of a part of an Excel file, a third of the limit


def times(piece: str | bytes, size: int) -> bytes:
    """``piece`` again and again, to about ``size`` bytes."""
    data = piece.encode() if isinstance(piece, str) else piece
    return data * (size // len(data))


def excel(
    rows: bytes | str = HEADER + ENTRY,
    *,
    sheets: int = 1,
    behind: bytes = b"",
    texts: bytes = b"",
    styles: bytes = b"",
    more: Mapping[str, bytes] | None = None,
    packing: int = zipfile.ZIP_DEFLATED,
) -> bytes:
    """An Excel file with ``rows`` in each sheet, written by hand. Its texts begin with "q" and "a".

    ``behind``: what follows the rows; ``more``: other parts, or these parts as they are given.
    """
    data = rows.encode() if isinstance(rows, str) else rows
    related = [(f"rId{number}", "worksheet", f"worksheets/sheet{number}.xml") for number in range(1, sheets + 1)]
    listed = "".join(f'<sheet name="s{n}" sheetId="{n}" r:id="rId{n}"/>' for n in range(1, sheets + 1))
    parts = {
        "_rels/.rels": _links([("rId1", "officeDocument", "xl/workbook.xml")]),
        "xl/workbook.xml": f"<workbook {_MAIN}><sheets>{listed}</sheets></workbook>".encode(),
        "xl/_rels/workbook.xml.rels": _links(
            [*related, ("t", "sharedStrings", "sharedStrings.xml"), ("s", "styles", "/xl/styles.xml")]
        ),
        "xl/sharedStrings.xml": f"<sst {_MAIN}><si><t>q</t></si><si><t>a</t></si>".encode() + texts + b"</sst>",
        "xl/styles.xml": f"<styleSheet {_MAIN}><cellXfs>".encode() + styles + b"</cellXfs></styleSheet>",
    }
    sheet = f"<worksheet {_MAIN}><sheetData>".encode() + data + b"</sheetData>" + behind + b"</worksheet>"
    parts |= {f"xl/worksheets/sheet{number}.xml": sheet for number in range(1, sheets + 1)}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing, compresslevel=1) as archive:
        for name, part in (parts | dict(more or {})).items():
            archive.writestr(name, part)
    return out.getvalue()


def _links(found: Sequence[tuple[str, str, str]]) -> bytes:
    links = "".join(
        f'<Relationship Id="{key}" Type="{_RELATIONS}/{kind}" Target="{target}"/>' for key, kind, target in found
    )
    return f"<Relationships {_PACKAGE}>{links}</Relationships>".encode()


def lying(data: bytes, size: int) -> bytes:
    """The directory says that the first sheet unpacks to ``size`` bytes."""
    changed = bytearray(data)
    at = changed.rfind(SHEET.encode()) - 46  # of the entry, see APPNOTE.TXT 4.3.12
    struct.pack_into("<I", changed, at + 24, size)
    return bytes(changed)


def _many_parts() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for number in range(3_000):
            archive.writestr(str(number), b"")
    return out.getvalue()


def _entities() -> bytes:
    declared = "".join(f'<!ENTITY c{n} "{f"&c{n - 1};" * 100}">' for n in range(1, 20))
    return f'<!DOCTYPE a [<!ENTITY c0 "bbbbbbbbbb">{declared}]><a>&c19;</a>'.encode()


def table(rows: int) -> bytes:
    """A table with so many entries, each with three other ways to ask."""
    line = "第{0}号商品几天能发货,第{0}号商品两天就能发货,{0}号多久发|{0}号啥时候寄|{0}号到了吗\n"
    return ("问题,答案,相似问\n" + "".join(line.format(number) for number in range(rows))).encode()


# By name: the file's name, how it is made, and what its error says; "" where it can be read.
ODD: Mapping[str, tuple[str, Callable[[], bytes], str]] = {
    "sheets": ("a.xlsx", lambda: excel(sheets=500), "more than 100 sheets"),
    "far rows": ("a.xlsx", lambda: excel('<row r="1048576"><c r="A1048576"><v>1</v></c></row>', sheets=100), ""),
    "blank cells": ("a.xlsx", lambda: excel(b"<row>" + times("<c/>", XML) + b"</row>"), "4000000 cells"),
    "styled cells": ("a.xlsx", lambda: excel(times('<row r="5"><c r="A5" s="0"/></row>', XML // 3)), "no question"),
    "numbers": ("a.xlsx", lambda: excel(times("<row><c><v>1</v></c><c><v>2</v></c></row>", XML)), "20000 entries"),
    "a wide row": ("a.xlsx", lambda: excel(b"<row>" + times("<c><v>1</v></c>", XML) + b"</row>"), "200 columns"),
    "one cell often": ("a.xlsx", lambda: excel(b"<row>" + times('<c r="A1"><v>1</v></c>', XML)), "200 columns"),
    "merged cells": (
        "a.xlsx",
        lambda: excel(behind=b"<mergeCells>" + times('<mergeCell ref="A1:XFD9"/>', XML // 3) + b"</mergeCells>"),
        "",
    ),
    "many texts": ("a.xlsx", lambda: excel(texts=times("<si><t>ab</t></si>", XML)), "500000 different texts"),
    "a long text": ("a.xlsx", lambda: excel(texts=b"<si><t>" + times("x", XML)), "200000 characters"),
    "one text often": (
        "a.xlsx",
        lambda: excel(
            times('<row><c t="s"><v>2</v></c><c t="s"><v>2</v></c></row>', XML // 2),
            texts=b"<si><t>" + times("x ", 190_000) + b"</t></si>",
        ),
        "10000000 characters",
    ),
    "styles": ("a.xlsx", lambda: excel(styles=times("<xf/>", XML)), "no Excel file"),
    "formats": (
        "a.xlsx",
        lambda: excel(styles=b"".join(b'<numFmt numFmtId="%d" formatCode="[$[$"/>' % n for n in range(2_000))),
        "no Excel file",
    ),
    "deep": ("a.xlsx", lambda: excel(times("<a>", XML)), "no Excel file"),
    "attributes": ("a.xlsx", lambda: excel(b"<row " + b" ".join(b"a%d=''" % n for n in range(300_000))), "no Excel"),
    "an open tag": ("a.xlsx", lambda: excel(b'<row a="' + times("x", XML)), "no Excel file"),
    "a comment": ("a.xlsx", lambda: excel(b"<!--" + times("x", XML) + b"-->"), "no Excel file"),
    "entities": ("a.xlsx", lambda: excel(more={SHEET: _entities()}), "document type"),
    "a zip in it": ("a.xlsx", lambda: excel(more={"xl/inner.zip": excel(times("<row/>", XML))}), ""),
    "it unpacks to less": ("a.xlsx", lambda: lying(excel(), 50_000_000), ""),
    "it unpacks to more": ("a.xlsx", lambda: lying(excel(times("<row/>", XML)), 1_000), "no Excel file"),
    "it unpacks to too much": ("a.xlsx", lambda: excel(times(ENTRY, 70_000_000)), "64 MB"),
    "packed otherwise": ("a.xlsx", lambda: excel(packing=zipfile.ZIP_BZIP2), "no Excel file"),
    "many parts": ("a.xlsx", _many_parts, "2000 files"),
    "line ends": ("a.md", lambda: b"\n" * TEXT, "200000 lines"),
    "headings": ("a.md", lambda: times("# q\na\n", 500_000), "20000 entries"),
    "titles": ("a.md", lambda: times("# q\n## r\n", 800_000), "20000 entries"),
    "blank lines below a heading": ("a.md", lambda: b"# q\n" + b"\n" * 199_000, ""),
    "comments below a heading": ("a.md", lambda: b"# q\n" + times("<!-- {} -->\n\n", 1_200_000), ""),
    "a question of many lines": ("a.md", lambda: b"Q: x\n" + times("x" * 49 + "\n", TEXT), ""),
    "a long heading": ("a.md", lambda: b"# " + b"x" * TEXT, "line 1 has more than 200000 characters"),
    "lines of blanks": ("a.md", lambda: times("# q\n<!-- {} -->\n" + " " * 100_000 + "\\" * 90_000 + "\n", TEXT), ""),
    "a long line": ("a.csv", lambda: b"q,a\n" + b"x" * 10_000_001, "larger than 10 MB"),
    "a line of 9 MB": ("a.csv", lambda: b"q,a\n" + b"x" * TEXT, "line 2 has more than 200000 characters"),
    "columns": ("a.csv", lambda: b"q,a" + b",x" * 90_000, "line 1 has more than 200 columns"),
    "commas": ("a.csv", lambda: b"q,a\n" + times("," * 190_000 + "\n", TEXT), "no question"),
    "wide rows": ("a.csv", lambda: b"q,a\n" + times("ab," * 199 + "ab\n", TEXT), ""),
    "an open quotation": ("a.csv", lambda: b'q,a\nx,"' + times("abcdefgh,\n", TEXT), "line 2.*quotation"),
    "cells over lines": ("a.csv", lambda: b'q,a\n"' + times('\n","', TEXT), "200000 characters"),
    "blank lines": ("a.csv", lambda: b"q,a\n" + b"\n" * TEXT, "200000 lines"),
    "a zero": ("a.csv", "问题,答案\n几天,两\0天\n".encode, "line 2: this is no text"),
    "zeros": ("a.csv", lambda: b"q,a\n" + b"\0" * TEXT, "no text"),
    "half of UTF-16": ("a.csv", lambda: "问题,答案\n几天,两天\n".encode("utf-16-le") + b"x", "no text"),
    "UTF-16 without a mark": (
        "a.csv",
        lambda: ("问题,答案\n" + "几天,两天\n" * 300_000).encode("utf-16-be"),
        "20000 entr",
    ),
    "noise": ("a.csv", lambda: random.Random(1).randbytes(TEXT), "no text"),
    "other ways to ask": ("a.csv", lambda: b"q,a,aliases\n" + times("x,y," + "ab|" * 400 + "\n", TEXT), "other ways"),
    "long ways to ask": (
        "a.csv",
        lambda: b"q,a,aliases\n" + b"".join(b"q%d,y,%d %s\n" % (n, n, b"abc " * 110) for n in range(18_000)),
        "more than 4000000 characters",
    ),
    "brackets": ("a.json", lambda: b"[" + times("[],", TEXT) + b"[]]", "20000 entries"),
    "a long item": ("a.json", lambda: b'[{"q":[' + times("{},", TEXT) + b"{}]}]", "item 1 has more than"),
    "lists in lists": ("a.json", lambda: b"[" * TEXT, "item 1 has more than"),
    "a text that does not end": ("a.json", lambda: b'["' + b"x" * TEXT, "item 1 has more than"),
    "half a list": ("a.json", lambda: b'[{"q":"a","a":"b"}, {"q":', "item 2: from here on the file is no JSON"),
    "an object too much": ("a.json", lambda: b'[{"q":"a","a":"b"}] {}', "no JSON"),
    "many fields": (
        "a.jsonl",
        lambda: b"".join(b'{"q":"%d","a":"b",%s}\n' % (n, _fields(n)) for n in range(300)),
        "",
    ),
    "half a character": ("a.jsonl", lambda: b'{"q":"\\ud800x","a":"b","\\ud800":1}\n', ""),
    "half a character in Excel": ("a.xlsx", lambda: excel(HEADER + _inline("_xD800_"), texts=b""), ""),
}


def _fields(number: int) -> bytes:
    return json.dumps({f"k{number}_{n}": 1 for n in range(1_000)}).encode()[1:-1]


def _inline(text: str) -> str:
    cells = "".join(f'<c r="{at}2" t="inlineStr"><is><t>{text}</t></is></c>' for at in "AB")
    return f'<row r="2">{cells}</row>'
