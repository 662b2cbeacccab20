"""No file costs more than it may, of memory, time and the event loop; each ends in its own error."""

from __future__ import annotations

import asyncio
import gc
import io
import re
import time
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import openpyxl.styles.numbers
import openpyxl.utils.datetime  # noqa: F401 - what reading loads is not a part of its cost
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from openpyxl import Workbook, load_workbook

from agent_core.errors import InputRejected
from bot.start import COLLECT_AFTER
from knowledge.entries import Entry, Forms, Related
from knowledge.importing.drafts import Draft
from knowledge.importing.limits import LONGEST_LIST
from knowledge.importing.planner import carry_out, decide, plan_import
from knowledge.importing.read import SUFFIXES, read_table
from tests.knowledge.bases import as_related
from tests.knowledge.odd_files import ENTRY, HEADER, ODD, SHEET, excel, table
from tests.support.child import Cost, measure
from tests.support.days import examples
from tests.support.knowledge import open_knowledge

MOST_MEMORY = 300  # MiB; 135 to 205 were seen, as the garbage collector has its turn
MOST_SECONDS = 20  # of processor time; half of it was seen on a machine that was at work otherwise
MOST_BLOCKED = 1.0  # seconds, on a machine that does nothing else


def assert_no_block(cost: Cost) -> None:
    """Of a busy machine this process gets only a share."""
    assert cost.longest_block < MOST_BLOCKED * max(1.0, cost.seconds / cost.cpu), cost


def collect_as_the_server() -> None:
    """See ``bot.start``: what is loaded is not searched for garbage again and again, which would hold the loop up."""
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 10, 10)


async def imported(folder: str, names: dict[str, str]) -> dict[str, tuple[str, float, int]]:
    """Plan the import of each file as the server does: the error, seconds of processor time, and entries."""
    collect_as_the_server()
    base = await open_knowledge(Path(folder) / "k.db")
    found = {}
    for case, name in names.items():
        said, planned, begun = "", 0, time.process_time()
        data = await asyncio.to_thread((Path(folder) / case).read_bytes)
        try:
            plan = await plan_import(base, name, await asyncio.to_thread(read_table, name, data))
            planned = len(plan.drafts)
        except InputRejected as error:
            said = str(error)
        found[case] = (said, time.process_time() - begun, planned)
    assert await base.count() == 0
    await base.close()
    return found


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("forms", [(".xlsx",), (".md", ".csv", ".json", ".jsonl")], ids=["Excel", "text"])
def test_an_odd_file_is_cheap_and_ends_in_its_own_error(tmp_path: Path, forms: tuple[str, ...]) -> None:
    cases = {case: name for case, (name, _, _) in ODD.items() if Path(name).suffix in forms}
    for case in cases:
        (tmp_path / case).write_bytes(ODD[case][1]())
    cost = measure(imported, str(tmp_path), cases)
    assert cost.error == "", cost.message
    assert cost.memory < MOST_MEMORY
    assert_no_block(cost)
    for case, (said, seconds, planned) in cost.result.items():
        told = ODD[case][2]
        assert re.search(told, said) if told else not said, (case, said)
        assert bool(planned) is not bool(told), case
        assert seconds < MOST_SECONDS, case


async def whole(folder: str) -> list[int]:
    """As many entries as a file may have: planned, written, and planned again."""
    collect_as_the_server()
    base = await open_knowledge(Path(folder) / "k.db")
    drafts = await asyncio.to_thread(read_table, "a.csv", table(20_000))
    plan = await plan_import(base, "a.csv", drafts)
    await carry_out(base, plan)
    counts = [await base.count(), plan.writes, len((await plan_import(base, "a.csv", drafts)).same)]
    await base.close()
    return counts


@pytest.mark.rotating(parts=10)
def test_the_largest_import_does_not_hold_the_server_up(tmp_path: Path) -> None:
    cost = measure(whole, str(tmp_path))
    assert cost.error == "", cost.message
    assert cost.result == [20_000, 20_000, 20_000]
    assert_no_block(cost)
    assert cost.memory < 1.5 * MOST_MEMORY  # the base with 20,000 entries is in it, twice


# Whatever is in a file, it is read or refused


def read(name: str, data: bytes) -> list[Draft]:
    drafts: list[Draft] = []
    with suppress(InputRejected):
        drafts += read_table(name, data)
    plan = decide(name, drafts, Related(), "skip", Forms())
    " ".join([*plan.notes, *(one.reason for one in plan.rejected)]).encode()  # can be shown
    return drafts


@given(st.sampled_from([suffix for suffix in SUFFIXES if suffix != ".xlsx"]), st.binary(max_size=200))
@settings(max_examples=examples(300))
def test_any_bytes_are_read_or_refused(suffix: str, data: bytes) -> None:
    read(f"a{suffix}", data)


SIGNS = "\"'\\,;\t\n\r\r\n#<!--{}[]:-> \0\ud800\u2028\U0001f600問问题答案qa"
signs = st.lists(st.sampled_from([*SIGNS, "# q\n", "q,a\n", '{"q":"a","a":"b"}\n', "Q: ", "A: ", "<!-- {", "} -->\n"]))


@given(st.sampled_from([suffix for suffix in SUFFIXES if suffix != ".xlsx"]), signs.map("".join))
@settings(max_examples=examples(300))
def test_any_signs_are_read_or_refused(suffix: str, text: str) -> None:
    read(f"a{suffix}", text.encode("utf-8", "surrogatepass"))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """An Excel file in which bytes of a part, or of the archive, are others."""
    whole_file = bytearray(excel(HEADER + ENTRY, texts=b"<si><r><t>x</t></r></si>", styles=b'<xf numFmtId="14"/>'))
    if draw(st.booleans()):
        part = draw(st.sampled_from(zipfile.ZipFile(io.BytesIO(whole_file)).namelist()))
        return excel(more={part: bytes(_changed(draw, bytearray(zipfile.ZipFile(io.BytesIO(whole_file)).read(part))))})
    return bytes(_changed(draw, whole_file))


def _changed(draw: st.DrawFn, data: bytearray) -> bytearray:
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        match draw(st.sampled_from(["other", "cut", "twice", "piece"])):
            case "other":
                data[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case "cut":
                del data[at:]
            case "twice":
                data[at:at] = data[at : at + 40]
            case "piece":
                data[at:at] = draw(
                    st.sampled_from([b"<c>", b"</row>", b'r="ZZZ9"', b'"', b"9999999999", b"-1", b"&#0;"])
                )
    return data


@given(damaged())
@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.too_slow])
def test_a_damaged_excel_file_is_read_or_refused(data: bytes) -> None:
    read("a.xlsx", data)


# Excel's format, beside another reader of it

cells = st.one_of(st.none(), st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=5), st.booleans())
numbers = st.one_of(cells, st.integers(-(10**14), 10**14))
grids = st.lists(st.lists(numbers, max_size=5), max_size=6)


@given(grids, st.integers(1, 30))
@example([["q", "a"], [], [None, 5], ["", "x"]], 3)
@settings(max_examples=examples(60))
def test_cells_stand_where_another_reader_sees_them(grid: list[list[Any]], gap: int) -> None:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["问题", "答案", "相似问", "标签", "id"])
    for number, row in enumerate(grid):
        for column, value in enumerate(row, start=1):
            sheet.cell(2 + number * gap, column, value).data_type = "s" if isinstance(value, str) else "n"
            sheet.cell(2 + number * gap, column).value = value
            if isinstance(value, str):
                sheet.cell(2 + number * gap, column).data_type = "s"  # never a formula
    out = io.BytesIO()
    book.save(out)
    seen = {}
    for cells_of_row in load_workbook(out, read_only=True).worksheets[0].iter_rows(min_row=2):
        texts = ["" if cell.value is None else _plain(cell.value) for cell in cells_of_row]
        if any(text.strip() for text in texts):
            seen[f"a.xlsx, sheet Sheet, row {next(c.row for c in cells_of_row if c.value is not None)}"] = texts
    drafts = {draft.place: draft for draft in read("a.xlsx", out.getvalue())}
    assert drafts.keys() == seen.keys()
    for place, texts in seen.items():
        assert [drafts[place].question, drafts[place].answer] == [text.strip() for text in (*texts, "", "")[:2]]


def _plain(value: object) -> str:
    return str(value).upper() if isinstance(value, bool) else str(value)


def test_what_other_programs_write() -> None:
    rows = (
        '<x:row><x:c t="inlineStr"><x:is><x:t>问题</x:t></x:is></x:c>'
        '<x:c t="str"><x:f>"答"&amp;"案"</x:f><x:v>答案</x:v></x:c></x:row>'
        '<x:row r="12"><x:c t="s"><x:v>2</x:v></x:c><x:c t="d"><x:v>2026-11-20T09:30:00Z</x:v></x:c></x:row>'
        '<x:row><x:c r="B13"><x:v>45000</x:v></x:c><x:c r="A13" t="b"><x:v>1</x:v></x:c></x:row>'
    )
    texts = "<si><r><t>几天</t></r><r><t xml:space='preserve'> 发货</t></r><rPh><t>jitian</t></rPh></si>"
    first, second = read("a.xlsx", excel(rows, texts=texts.encode()))
    assert (first.question, first.answer, first.place) == ("几天 发货", "2026-11-20 09:30", "a.xlsx, sheet s1, row 12")
    assert (second.question, second.answer, second.place) == ("TRUE", "45000", "a.xlsx, sheet s1, row 13")
    wide = zipfile.ZipFile(io.BytesIO(excel())).read(SHEET).decode()
    (only,) = read("a.xlsx", excel(more={SHEET: ('<?xml version="1.0" encoding="UTF-16"?>' + wide).encode("utf-16")}))
    assert (only.question, only.answer) == ("1", "2")


def test_each_sheet_is_read_to_its_end() -> None:
    """Their beginnings are looked at first: whether one has a header."""
    book = Workbook()
    for title in ("一", "二"):
        sheet = book.create_sheet(title)
        sheet.append(["问题", "答案"])
        for number in range(30):
            sheet.append([f"{title}{number}", "x"])
    notes = book.create_sheet("三")
    for _ in range(30):
        notes.append(["no header", "in this one"])
    out = io.BytesIO()
    book.save(out)
    drafts = read("a.xlsx", out.getvalue())
    assert [draft.question for draft in drafts] == [f"{title}{n}" for title in "一二" for n in range(30)] + [""]
    assert drafts[45].place == "a.xlsx, sheet 二, row 17"


# What is planned is bounded, too


def renamed(count: int) -> tuple[list[Entry], list[Draft]]:
    """As many entries, each of which is given the question of the next."""
    entries = [Entry(id=f"e{n}", question=f"第{n}个问题", answer="x") for n in range(count + 1)]
    return entries, [Draft(f"row {n}", f"第{n + 1}个问题", "y", id=f"e{n}") for n in range(count)]


def test_a_chain_of_renamed_entries_is_followed() -> None:
    entries, drafts = renamed(30)
    assert len(decide("a.csv", drafts, as_related(entries), "skip", Forms()).doubles) == 30


@pytest.mark.slow
@pytest.mark.rotating(parts=3)
def test_a_chain_of_renamed_entries_is_not_followed_without_end() -> None:
    entries, drafts = renamed(900)
    begun = time.process_time()
    with pytest.raises(InputRejected, match="long chain"):
        decide("a.csv", drafts, as_related(entries), "skip", Forms())
    assert time.process_time() - begun < MOST_SECONDS


def test_an_entry_has_no_endless_list_of_other_ways_to_ask() -> None:
    def row(count: int) -> Draft:
        (only,) = read("a.csv", b"q,a,aliases\nx,y," + b"|".join(b"w%d" % n for n in range(count)) + b"\n")
        return only

    assert len(row(LONGEST_LIST).aliases or ()) == LONGEST_LIST
    assert row(LONGEST_LIST).problem == ""
    assert "more than 500 other ways" in row(LONGEST_LIST + 1).problem
