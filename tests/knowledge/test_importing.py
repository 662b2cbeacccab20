"""Reading a person's file, and what it would change."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date, datetime
from datetime import time as clock
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import example, given, settings
from hypothesis import strategies as st
from openpyxl import Workbook

from agent_core.errors import InputRejected
from agent_core.reply.choosing import asks_for
from agent_core.reply.sureness.plain import stripped
from agent_core.texts import load_texts
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import Entry, Forms, Related, forms_of, tokens
from knowledge.importing import markdown
from knowledge.importing.drafts import Draft
from knowledge.importing.messages import in_language
from knowledge.importing.plan import ImportPlan, OnDouble
from knowledge.importing.planner import carry_out, decide, plan_import, wanted_by
from knowledge.importing.read import read_table
from tests.knowledge.bases import as_related
from tests.support.days import examples
from tests.support.knowledge import OwnKnowledge, open_knowledge

CHINESE = "问题,答案,相似问,标签\n几天能发货,两天,多久发货|啥时候寄,物流，发货\n"


@pytest.fixture
async def base(tmp_path: Path) -> AsyncIterator[OwnKnowledge]:
    base = await open_knowledge(tmp_path / "k.db")
    yield base
    await base.close()


def only(drafts: Sequence[Draft]) -> Draft:
    (draft,) = drafts
    assert not draft.problem
    return draft


def pairs(drafts: Sequence[Draft]) -> list[tuple[str, str]]:
    assert [draft.problem for draft in drafts if draft.problem] == []
    return [(draft.question, draft.answer) for draft in drafts]


def book(**sheets: list[list[object]]) -> Workbook:
    made = Workbook()
    made.remove(made.worksheets[0])
    for title, rows in sheets.items():
        sheet = made.create_sheet(title)
        for row in rows:
            sheet.append(row)
    return made


def saved(made: Workbook) -> bytes:
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


# Tables of text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "gb18030"])
@pytest.mark.parametrize("sign", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_table_of_any_encoding_and_separator(encoding: str, sign: str, end: str) -> None:
    text = CHINESE.replace(",", sign).replace("\n", end)
    draft = only(read_table("FAQ.CSV", text.encode(encoding)))
    assert (draft.question, draft.answer) == ("几天能发货", "两天")
    assert (draft.aliases, draft.tags) == (("多久发货", "啥时候寄"), ("物流", "发货"))
    assert (draft.place, draft.notes, draft.id, draft.live) == ("FAQ.CSV, line 2", (), "", None)


@pytest.mark.parametrize(
    "header",
    [
        "答案,问题",
        "A,Q",
        "Answer , QUESTION*",
        "回复,提问",
        "标准答案（必填）,标准问 (必填)",
        "回答：,问题：",
        "reply,问",
    ],
)
def test_headers_in_two_languages_and_any_order(header: str) -> None:
    assert pairs(read_table("a.csv", f"{header}\n两天,几天发货\n".encode())) == [("几天发货", "两天")]


def test_a_column_may_come_more_than_once() -> None:
    text = "编号,问题,相似问1,相似问 2,答案,一级分类,二级分类,状态\n7,q,a,b；c,x,售前,物流,停用\n"
    draft = only(read_table("a.csv", text.encode()))
    assert (draft.id, draft.aliases, draft.tags, draft.live) == ("7", ("a", "b", "c"), ("售前", "物流"), False)


def test_cells_in_quotes_and_their_lines() -> None:
    text = 'q,a\n一,"第一行\n第二行, ""好"""\n\n,,\n二,x\n三\n,y\n'
    drafts = read_table("a.csv", text.encode())
    assert drafts[0].answer == '第一行\n第二行, "好"'
    assert [draft.place for draft in drafts] == [f"a.csv, line {line}" for line in (2, 6, 7, 8)]
    assert [draft.problem for draft in drafts] == ["", "", "there is no answer", "there is no question"]


def test_wordings_are_cut_at_signs_but_not_at_commas() -> None:
    def aliases(cell: str) -> tuple[str, ...] | None:
        return only(read_table("a.csv", f'q,a,aliases\n一,x,"{cell}"\n'.encode())).aliases

    assert aliases("好的，几天发货, 急") == ("好的，几天发货, 急",)
    assert aliases("一;二；三|四｜五") == ("一", "二", "三", "四", "五")
    assert aliases("一;二\n三") == ("一;二", "三")
    assert aliases("") == ()


def test_a_table_without_a_header() -> None:
    first, second = read_table("a.csv", "几天发货,两天,x\n运费多少,六元,\n".encode())
    assert (first.question, first.answer, first.aliases) == ("几天发货", "两天", None)
    (no_header, _) = first.notes
    assert "no header" in no_header
    assert "answer, answers, a, reply, 答案, 标准答案" in no_header  # the names that would have been read
    assert "after the second" in "\n".join(first.notes)
    assert (second.question, second.notes) == ("运费多少", ())


def test_what_is_not_read_is_told() -> None:
    text = "常见问题\n请勿修改\n问题,序号,答案,作者\n几天,1,两天,x\n"
    note = "\n".join(only(read_table("a.csv", text.encode())).notes)
    assert "a.csv, line 1 stands above the header" in note
    assert "a.csv, line 2 stands above" in note
    assert "序号, 作者" in note
    assert only(read_table("a.tsv", "问题\t答案\n几,天\t两,天\n".encode())).answer == "两,天"
    nameless = only(read_table("a.csv", "问题,答案,\n几天,两天,别看\n".encode())).notes[0]
    assert nameless == "a.csv: columns without a name were not read"


def test_a_comma_without_quotes_does_not_cut_an_answer_short() -> None:
    drafts = read_table("a.csv", b"id,q,a\n1,x,yes, of course\n2,y,no\n")
    assert ["4 cells" in draft.problem for draft in drafts] == [True, False]
    assert read_table("a.csv", "问题,答案\n几天,两天, 真的\n".encode())[0].problem != ""


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("a.csv", b"", "no question"),
        ("a.csv", "问题,答案\n".encode(), "no question"),
        ("a.csv", "问题,内容\n一,二\n".encode(), "none for the answer. Not understood: 内容."),
        ("a.csv", "标签,答案\n一,二\n".encode(), "none for the question"),
        ("a.csv", "几天发货\n运费多少\n".encode(), "one column"),
        ("a.csv", 'q,a\n一,"没有关\n二,x\n'.encode(), "line 2.*quotation"),
        ("a.csv", b"q,a\n\xff\xff\xff,\x80\n", "line 2.*UTF-8"),
        ("a.csv", "q,a\n几天能发货啊,两天就可以发货了\n".encode() + b"\xb4,x\n", "line 3.*UTF-8"),
        ("a.csv", b"q,a\n" + b"\n" * 30_000 + b"x,y\n" * 20_001, "20000 entries"),
        ("a.csv", b"x" * 10_000_001, "10 MB"),
        ("a.jsonl", b'{"q": "a", "a": "b"}\n' * 20_001, "20000 entries"),
        ("a.md", b"# q\na\n" * 20_001, "20000 entries"),
        ("a.docx", b"abc", r"\.csv, \.tsv.*\.xlsx"),
        ("a.docx", b"PK\x03\x04abc", "kind"),
        ("a.zip", b"PK\x03\x04abc", "kind"),
        ("a", b"abc", "kind"),
        ("a.xls", b"\xd0\xcf\x11\xe0abc", "old Excel"),
        ("a.xlsx", b"abc", "no Excel file"),
        ("a.xlsx", b"PK\x03\x04abc", "no Excel file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(name: str, data: bytes, told: str) -> None:
    with pytest.raises(InputRejected, match=told) as caught:
        read_table(f"C:\\Desktop\\{name}", data)
    assert caught.value.message.startswith(name)


# JSON and Markdown


def test_json_in_lines_and_as_a_list() -> None:
    first = {"id": "a", "question": "q", "answer": "x", "aliases": ["b;c"], "tags": "t,u", "live": False}
    second = {"问题": "r\u2028s", "答案": 5, "相似问": None}
    lines = "\n".join(json.dumps(one, ensure_ascii=False) for one in (first, second))
    for name, text in (
        ("a.jsonl", lines),
        ("a.json", json.dumps([first, second])),
        ("a.jsonl", json.dumps([first, second])),
        ("a.json", lines + "\n\n"),
    ):
        one, two = read_table(name, text.encode())
        assert (one.id, one.aliases, one.tags, one.live) == ("a", ("b;c",), ("t", "u"), False)
        assert (two.question, two.answer, two.aliases, two.tags) == ("r\u2028s", "5", (), None)
    assert only(read_table("a.json", json.dumps(first, indent=1).encode())).id == "a"


def test_objects_that_are_no_entries() -> None:
    bad = [
        "{",
        "3",
        '{"question": "q"}',
        '{"question": ["q"], "answer": "a"}',
        '{"question": "q", "answer": "a", "aliases": [1]}',
        '{"question": "q", "answer": "a", "live": "maybe"}',
        "[" * 100_000,
        '{"question": "q", "answer": ' + "9" * 5000 + "}",
    ]
    drafts = read_table("a.jsonl", "\n".join(['{"q": "a", "a": "b", "scroe": 1, "x": 2}', *bad]).encode())
    assert drafts[0].problem == ""
    assert "scroe, x" in "\n".join(drafts[0].notes)
    assert all(draft.problem for draft in drafts[1:])
    assert [draft.place for draft in drafts] == [f"a.jsonl, line {line}" for line in range(1, len(bad) + 2)]


def test_headings_are_questions() -> None:
    text = "# 常见问题\n\n## 几天发货？ ##\n\n两天。\n\n- 急\n```\n# 代码\n```\n"
    text += "### 能快点吗\n答：可以\n## 空的\n##无空格\n## 末\n"
    drafts = read_table("a.md", text.encode())
    assert [(draft.question, draft.answer) for draft in drafts] == [
        ("几天发货？", "两天。\n\n- 急\n```\n# 代码\n```"),
        ("能快点吗", "可以"),
        ("空的", "##无空格"),
        ("末", ""),
    ]
    assert [draft.problem for draft in drafts] == ["", "", "", "there is no answer"]
    assert "\n".join(drafts[0].notes) == "a.md, line 1: 常见问题 was taken as a title, not as a question"
    assert drafts[1].place == "a.md, line 11"


@pytest.mark.parametrize("signs", [("Q:", "A:"), ("问：", "答："), ("**Q1:** ", "**A1:** "), ("- 问题：", "答案: ")])
def test_pairs(signs: tuple[str, str]) -> None:
    q, a = signs
    text = f"客服手册\n{q}几天发货\n还是周末\n{a}两天\n\n周末三天\n\n## 其他\n闲话\n{q}运费\n{a}六元\n{q}没答\n"
    drafts = read_table("a.md", text.encode())
    good = [(draft.question, draft.answer) for draft in drafts if not draft.problem]
    assert good == [("几天发货 还是周末", "两天\n\n周末三天"), ("运费", "六元")]
    lost = {draft.place: draft.problem for draft in drafts if draft.problem}
    assert list(lost) == [f"a.md, line {line}" for line in (1, 8, 9, 12)]


def test_text_before_the_first_heading_is_told() -> None:
    drafts = read_table("a.md", b"hello\n\n# q\na\n")
    assert (drafts[0].place, drafts[0].problem) == ("a.md, line 1", "it belongs to no question")
    assert (drafts[1].question, drafts[1].problem) == ("q", "")


@pytest.mark.parametrize("line", ["# " + " " * 4000 + "x", "Q" + " " * 4000, " " * 4000 + "Q", "#" * 4000, "\\" * 4000])
def test_a_line_of_blanks_takes_no_time(line: str) -> None:
    begun = time.perf_counter()
    read_table("a.md", f"# q\n{line}\n# q2\na\nQ: x\n".encode())
    read_table("a.md", b"".join(b"# q\n" + markdown.escaped(line).encode() + b"\n" for _ in range(50)))
    assert time.perf_counter() - begun < 5


# Excel


def test_every_sheet_with_a_header() -> None:
    made = book(
        物流=[["常见问题表"], [], ["问题", "答案", "相似问"], ["几天", "两天", "多久\n几日"], [], ["只有问题"]],
        说明=[["怎么用", "看这里"]],
        售后=[["答案", "标签", "问题"], ["可以", "退货", "能退吗"]],
        空=[],
        旧=[["q", "a"], ["x", "y"]],
    )
    made.worksheets[0].merge_cells("A1:C1")
    made["旧"].sheet_state = "hidden"
    first, bad, unread, last = read_table("faq.xlsx", saved(made))
    assert (first.question, first.answer, first.aliases) == ("几天", "两天", ("多久", "几日"))
    assert first.place == "faq.xlsx, sheet 物流, row 4"
    assert "row 1 stands above the header" in "\n".join(first.notes)
    assert "hidden sheets were not read: 旧" in "\n".join(first.notes)
    assert (bad.place, bad.problem) == ("faq.xlsx, sheet 物流, row 6", "there is no answer")
    assert unread.place == "faq.xlsx, sheet 说明"
    assert "no header" in unread.problem
    assert (last.question, last.answer, last.tags) == ("能退吗", "可以", ("退货",))
    assert read_table("renamed.csv", saved(made))[0].answer == first.answer


def test_a_sheet_without_a_header_alone() -> None:
    draft = only(read_table("a.xlsx", saved(book(表=[["几天发货", "两天"]]))))
    assert (draft.question, draft.answer) == ("几天发货", "两天")
    assert "no header" in "\n".join(draft.notes)


@pytest.mark.parametrize(
    ("value", "pattern", "shown"),
    [
        (1.0, "General", "1"),
        (1, "General", "1"),
        (0.1 + 0.2, "General", "0.3"),
        (-2.50, "General", "-2.5"),
        (123456789012345, "General", "123456789012345"),
        (1e20, "General", "100000000000000000000"),
        (39.9, "0.00", "39.90"),
        (39.005, '"¥"#,##0.00', "¥39.01"),
        (1234567, "#,##0", "1,234,567"),
        (0.855, "0%", "86%"),
        (0.855, "0.0#%", "85.5%"),
        (7, "000", "007"),
        (8, '0"元"', "8元"),
        (8, "[$¥-804]#,##0.00_);[Red]\\(0.00\\)", "¥8.00"),
        (-8.4, "0", "-8"),
        (-0.2, "0", "0"),
        (1234.5, "0.00E+00", "1234.5"),
        (True, "General", "TRUE"),
        ("  文字 ", "@", "文字"),
        ("_x000D_", "General", ""),
        (datetime(2026, 11, 20), "yyyy/m/d", "2026-11-20"),  # noqa: DTZ001 - cells know no zones
        (datetime(2026, 11, 20, 9, 30), "yyyy/m/d h:mm", "2026-11-20 09:30"),  # noqa: DTZ001
        (date(2026, 11, 20), "yyyy/m/d", "2026-11-20"),
        (clock(18, 5), "h:mm", "18:05"),
    ],
)
def test_a_cell_as_a_person_sees_it(value: object, pattern: str, shown: str) -> None:
    made = book(a=[["q", "a"], ["问", value]])
    made["a"]["B2"].number_format = pattern
    (draft,) = read_table("a.xlsx", saved(made))
    assert draft.answer == shown


def test_formulas_and_errors_name_their_cell() -> None:
    made = book(
        a=[["问题", "答案", "备注"], ["一", "=1+1", "x"], ["二", "两天", "=A1"], ["=B1", "x", ""], ["三", "#N/A"]]
    )
    made["a"]["B5"].data_type = "e"
    one, two, three, four = read_table("a.xlsx", saved(made))
    assert "cell B2 holds a formula without a saved value" in one.problem
    assert two.problem == ""  # a column that is not read
    assert "cell A4" in three.problem
    assert "cell B5 holds the error #N/A" in four.problem


def test_a_formula_gives_its_saved_value() -> None:
    data = saved(book(a=[["q", "a"], ["一", "=1+1"]]))
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for part in old.namelist():
            new.writestr(part, old.read(part).replace(b"<f>1+1</f><v />", b"<f>1+1</f><v>2</v>"))
    assert only(read_table("a.xlsx", out.getvalue())).answer == "2"


@pytest.mark.parametrize("part", ["xl/workbook.xml", "xl/worksheets/sheet1.xml", "_rels/.rels"])
@pytest.mark.parametrize("change", ["gone", "cut", "entities", "gibberish", "far"])
def test_a_broken_excel_file_is_said(part: str, change: str) -> None:
    data = saved(book(a=[["q", "a"], ["一", "二"]]))
    bomb = b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bbbbbbbb"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>'
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name == part:
                if change == "gone":
                    continue
                text = {
                    "cut": text[: len(text) // 2],
                    "entities": bomb,
                    "gibberish": b"\xff" * 100,
                    "far": text.replace(b'r="2"', b'r="99999999999"'),
                }[change]
            new.writestr(name, text)
    if change == "far" and "sheet1" not in part:
        return
    with pytest.raises(InputRejected, match=r"a\.xlsx"):
        read_table("a.xlsx", out.getvalue())


# What would change


async def planned(base: EmbeddedKnowledge, text: str, name: str = "a.csv") -> ImportPlan:
    return await plan_import(base, name, read_table(name, text.encode()))


def signs(plan: ImportPlan) -> list[tuple[str, str, str, bool, bool]]:
    return [(one.place, one.wording, one.other_place, one.whole, one.fixed) for one in plan.doubles]


async def test_a_plan_writes_nothing_and_is_carried_out(base: EmbeddedKnowledge) -> None:
    await base.add_all(
        [
            Entry(id="ship", question="几天能发货？", answer="三天", aliases=("多久发货",), tags=("物流",)),
            Entry(id="fee", question="运费多少", answer="六元"),
            Entry(id="same", question="开发票吗", answer="开", origin="terminal"),
        ]
    )
    before = await base.list()
    text = "id,问题,答案\n,亲，几天能发货,两天\nfee,邮费多少,八元\n,开发票吗,开\n,保修吗,一年\n,没有答案,\n"
    plan = await planned(base, text)
    assert await base.list() == before
    first, second = plan.changed
    assert (first.old.id, first.old.answer, first.new.answer, first.by_question) == ("ship", "三天", "两天", True)
    assert (first.new.aliases, first.new.tags) == (("多久发货",), ("物流",))  # the file has no column for them
    assert (second.new.id, second.new.question, second.by_question) == ("fee", "邮费多少", False)
    assert [added.entry.question for added in plan.added] == ["保修吗"]
    assert [entry.id for entry in plan.same] == ["same"]
    done = await carry_out(base, plan)
    assert done == plan
    kept = {entry.id: entry for entry in await base.list()}
    assert kept["ship"] == first.new
    assert kept["ship"].created_at == before[0].created_at
    assert kept["fee"].origin == "import:a.csv"
    assert [(one.place, one.reason) for one in plan.rejected] == [("a.csv, line 6", "there is no answer")]
    again = await planned(base, text)
    assert (again.writes, len(again.same)) == (0, 4)


async def test_an_empty_column_of_tags_empties_a_missing_one_does_not(base: EmbeddedKnowledge) -> None:
    await base.add(Entry(id="a", question="q", answer="x", aliases=("b",), tags=("t",)))
    plan = await planned(base, "q,a,aliases,tags\nq,y,c,\n")
    assert (plan.changed[0].new.aliases, plan.changed[0].new.tags) == (("b", "c"), ())
    assert (await planned(base, "q,a\nq,y\n")).changed[0].new.tags == ("t",)


TABLE = "q,a,aliases\n怎么退货,七天内可退,退货流程|能退吗\n几天发货,两天,\n"


async def test_a_table_that_is_imported_again_leaves_the_aliases_that_were_approved(base: EmbeddedKnowledge) -> None:
    await carry_out(base, await planned(base, TABLE))
    returns, ships = await base.list()
    for entry in (returns, ships):
        wording = await base.add(
            Entry(question=f"亲，{entry.id}", answer=entry.answer, live=False, alias_of=entry.id, origin="person:A")
        )
        await base.approve(wording.id)
    before = await base.list()
    again = await planned(base, TABLE)
    assert (again.writes, len(again.same), again.lost) == (0, 2, ())
    # What is new in the table comes to them, what was taken out of it stays; an answer that changes is told.
    plan = await planned(base, "q,a,aliases\n怎么退货,七天内可退,退货流程|怎么寄回\n几天发货,三天,\n")
    await carry_out(base, plan)
    assert [entry.aliases for entry in await base.list()] == [
        ("退货流程", "能退吗", f"亲，{returns.id}", "怎么寄回"),
        before[1].aliases,
    ]
    assert [(one.new.answer, one.kept) for one in plan.changed] == [
        ("七天内可退", ("能退吗", f"亲，{returns.id}")),
        ("三天", before[1].aliases),
    ]
    assert plan.lost == ()


async def test_aliases_go_only_if_that_is_asked_for(base: EmbeddedKnowledge) -> None:
    await base.add(Entry(id="a", question="q", answer="x", aliases=("b", "moved")))
    text = b"q,a,aliases\nq,x,\nother,y,moved\n"
    plan = await plan_import(base, "a.csv", read_table("a.csv", text), drop_aliases=True)
    assert [(one.entry.id, one.aliases) for one in plan.lost] == [("a", ("b",))]
    await carry_out(base, plan)
    assert [entry.aliases for entry in await base.list()] == [(), ("moved",)]
    # Without a column for them the table says nothing of aliases.
    await base.edit("a", aliases=("b",))
    plan = await plan_import(base, "a.csv", read_table("a.csv", b"q,a\nq,x\n"), drop_aliases=True)
    assert (plan.writes, plan.lost) == (0, ())


async def test_rows_that_break_the_rules_are_refused(base: EmbeddedKnowledge) -> None:
    await base.add_all([Entry(id=name, question="两个", answer=name) for name in "ab"])
    rows = ["a b,q,x", f"c,{'q' * 501},x", f"d,q,{'x' * 4001}", ",两个,x", "b,两个,x"]
    plan = await planned(base, "id,q,a\n" + "\n".join(rows))
    assert [one.place for one in plan.rejected] == [f"a.csv, line {line}" for line in (2, 3, 4, 5)]
    assert "a, b" in plan.rejected[-1].reason
    assert plan.writes == 0  # the last row's question is still another entry's, too
    assert plan.doubles[0].other_place == "entry a"


async def test_doubles_in_the_file(base: EmbeddedKnowledge) -> None:
    text = "q,a,aliases\n几天发货,两天,多久|何时\n请问几天发货呢,两天,\n何时,五天,\n运费,六元,多久？;邮费\n"
    plan = await planned(base, text)
    assert [one.differs for one in plan.doubles] == [False, True, True]
    assert plan.unclear == ()
    assert signs(plan) == [
        ("a.csv, line 3", "请问几天发货呢", "a.csv, line 2", True, False),
        ("a.csv, line 4", "何时", "a.csv, line 2", True, False),
        ("a.csv, line 5", "多久？", "a.csv, line 2", False, False),
    ]
    assert [(one.entry.question, one.entry.aliases) for one in plan.added] == [
        ("几天发货", ("多久", "何时")),
        ("运费", ("邮费",)),
    ]
    done = await carry_out(base, plan, doubles="replace")
    assert len(done.doubles) == 1  # the row that had the others is gone
    assert [(entry.question, entry.answer, entry.aliases) for entry in await base.list()] == [
        ("请问几天发货呢", "两天", ()),
        ("何时", "五天", ()),
        ("运费", "六元", ("多久？", "邮费")),
    ]


async def test_doubles_with_the_base(base: EmbeddedKnowledge) -> None:
    await base.add_all(
        [
            Entry(id="ship", question="几天发货", answer="两天", aliases=("多久", "何时")),
            Entry(id="wait", question="保修", answer="x", live=False),
        ]
    )
    text = "q,a,aliases\n何时,五天,\n运费,六元,多久;几天发货;邮费\n保修,一年,\n"
    plan = await planned(base, text)
    assert signs(plan) == [
        ("a.csv, line 2", "何时", "entry ship", True, False),
        ("a.csv, line 3", "多久", "entry ship", False, False),
        ("a.csv, line 3", "几天发货", "entry ship", False, True),
    ]
    assert [(one.entry.question, one.entry.aliases) for one in plan.added] == [("运费", ("邮费",)), ("保修", ())]
    done = await carry_out(base, plan, doubles="replace")
    (change,) = done.changed
    assert (change.place, change.old.aliases, change.new.aliases) == ("a.csv, line 2", ("多久", "何时"), ())
    kept = {entry.question: entry for entry in await base.list(live=True)}
    assert kept["几天发货"].aliases == ()
    assert kept["几天发货"].answer == "两天"
    assert kept["运费"].aliases == ("多久", "邮费")
    for words, answer in (("何时", "五天"), ("多久", "六元"), ("几天发货", "两天")):
        (sure,) = [record for record in await base.retrieve(words) if asks_for(words, record)]
        assert sure.text == answer


async def test_an_id_twice(base: EmbeddedKnowledge) -> None:
    await base.add(Entry(id="a", question="q", answer="x"))
    text = "id,q,a\na,q,y\na,q2,z\n"
    plan = await planned(base, text)
    assert [(one.place, one.other_places) for one in plan.unclear] == [
        ("a.csv, line 2", ("a.csv, line 3",)),
        ("a.csv, line 3", ("a.csv, line 2",)),
    ]
    assert (plan.writes, plan.doubles) == (0, ())
    done = await carry_out(base, plan, doubles="replace")
    assert [change.new.answer for change in done.changed] == ["z"]
    plan = await planned(base, "id,q,a\na,q2,z\na,q,other\n")  # the first row changes nothing
    assert (plan.writes, len(plan.same), [one.place for one in plan.unclear]) == (0, 1, ["a.csv, line 3"])


async def test_rows_that_ask_the_same_and_answer_differently_are_left_to_whoever_knows(base: EmbeddedKnowledge) -> None:
    await base.add(Entry(id="fee", question="运费", answer="六元"))
    text = "q,a\n几天发货,两天\n保修,一年\n请问几天发货呢,三天\n运费,八元\n运费多少,六元\n几天发货？,两天\n运费,九元\n"
    plan = await planned(base, text)
    lines = {one.place.removeprefix("a.csv, line "): one for one in plan.unclear}
    assert {line: [place[-1] for place in one.other_places] for line, one in lines.items()} == {
        "2": ["4"], "4": ["2", "7"], "5": ["8"], "7": ["4"], "8": ["5"],
    }  # fmt: skip
    assert (lines["4"].question, lines["4"].answer) == ("请问几天发货呢", "三天")
    assert [one.entry.question for one in plan.added] == ["保修", "运费多少"]
    assert (plan.changed, plan.doubles) == ((), ())
    await carry_out(base, plan)
    assert {(one.question, one.answer) for one in await base.list()} == {
        ("运费", "六元"), ("保修", "一年"), ("运费多少", "六元"),
    }  # fmt: skip
    replaced = await carry_out(base, await planned(base, text), doubles="replace")  # somebody has decided: the last
    assert {(one.question, one.answer) for one in await base.list()} >= {("几天发货？", "两天"), ("运费", "九元")}
    assert [(one.place[-1], one.other_place[-1], one.differs) for one in replaced.doubles] == [
        ("4", "2", True), ("7", "4", True), ("8", "5", True),
    ]  # fmt: skip


async def test_two_rows_that_wait_for_approval_may_answer_differently(base: EmbeddedKnowledge) -> None:
    plan = await planned(base, "q,a,live\n几天发货,两天,no\n几天发货,三天,no\n")
    assert ([one.entry.answer for one in plan.added], plan.unclear) == (["两天", "三天"], ())


async def test_a_wording_may_move_within_one_file(base: EmbeddedKnowledge) -> None:
    one = Entry(id="a", question="一", answer="x", aliases=("三",))
    two = Entry(id="b", question="二", answer="y")
    await base.add_all([one, two])
    plan = await planned(base, "id,q,a,aliases\nb,二,y,三\na,一,x,\n")
    assert (plan.doubles, len(plan.changed)) == ((), 2)
    await carry_out(base, plan)
    assert [entry.aliases for entry in await base.list()] == [(), ("三",)]


async def test_nothing_is_written_where_the_base_has_changed_since(base: EmbeddedKnowledge) -> None:
    await base.add(Entry(id="a", question="q", answer="x"))
    plan = await planned(base, "id,q,a\na,q,y\n,新的,z\n")
    await base.add(Entry(id="other", question="别的", answer="x"))
    await base.edit("a", answer="changed by hand")
    with pytest.raises(InputRejected, match="changed since"):
        await carry_out(base, plan)
    assert {entry.answer for entry in await base.list()} == {"changed by hand", "x"}
    await base.edit("a", answer="x")
    assert len((await carry_out(base, plan)).changed) == 1  # what else was added does not matter


async def test_an_import_does_not_take_an_entry_off_that_waits(base: EmbeddedKnowledge) -> None:
    await base.add(Entry(id="w", question="q", answer="x", live=False, alias_of="a"))
    plan = await planned(base, "id,q,a\nw,q,y\n")
    assert [(change.new.live, change.new.alias_of) for change in plan.changed] == [(False, "a")]
    plan = await planned(base, "id,q,a,live\nw,q,y,yes\n")
    assert [(change.new.live, change.new.alias_of) for change in plan.changed] == [(True, "")]


@dataclass
class Counted:
    """How many texts are cut into forms and into words, and how many statements SQLite is given."""

    cut: int = 0
    indexed: int = 0
    statements: int = 0


@asynccontextmanager
async def counting(base: OwnKnowledge, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Counted]:
    counted = Counted()

    def cut(text: str) -> str:
        counted.cut += 1
        return stripped(text)

    def words(text: str) -> list[str]:
        counted.indexed += 1
        return tokens(text)

    def stated(*_: object) -> None:
        counted.statements += 1

    engines = [engine.sync_engine for engine in base.db.engines]
    with monkeypatch.context() as patched:
        patched.setattr("knowledge.entries.stripped", cut)
        patched.setattr("knowledge.embedded.tokens", words)
        for engine in engines:
            sa.event.listen(engine, "before_cursor_execute", stated)
        yield counted
        for engine in engines:
            sa.event.remove(engine, "before_cursor_execute", stated)


def table(first: int, count: int) -> str:
    rows = (f"第{n}款壳多重,{n}克,{n}号壳重吗|{n}号壳有多重,壳" for n in range(first, first + count))
    return "q,a,aliases,tags\n" + "\n".join(rows) + "\n"


async def test_what_an_import_costs_goes_by_its_rows_and_not_by_the_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = []
    for size in (20, 600):
        base = await open_knowledge(tmp_path / f"{size}.db")
        await carry_out(base, await planned(base, table(0, size)))
        async with counting(base, monkeypatch) as counted:
            plan = await planned(base, table(1000, 3) + "第7款壳多重,七克,7号壳重吗|7号壳有多重,壳\n")
            await carry_out(base, plan)
        assert (len(plan.added), len(plan.changed), len(plan.base.entries)) == (3, 1, 1)
        assert await base.count() == size + 3
        costs.append(counted)
        await base.close()
    assert costs[0] == costs[1]
    assert costs[0].cut == 4 * 3
    assert costs[0].indexed == 4 * 5
    assert costs[0].statements < 60


async def test_each_wording_of_a_large_table_is_cut_once_and_many_rows_are_written_at_a_time(
    base: OwnKnowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    async with counting(base, monkeypatch) as counted:
        plan = await planned(base, table(0, 1200))
        await carry_out(base, plan, wrote=lambda count, total: written.append((count, total)))
    assert (counted.cut, counted.indexed) == (1200 * 3, 1200 * 5)
    assert written == [(500, 1200), (1000, 1200), (1200, 1200)]
    assert len(await base.list()) == 1200


def related_to(drafts: Sequence[Draft], entries: Sequence[Entry]) -> Related:
    """As the store finds it: what rows name or mean, and what shares a form with that."""
    wanted = wanted_by(drafts, Forms())
    first = [entry for entry in entries if entry.id in wanted.ids or forms_of(entry) & wanted.forms]
    forms = {form for entry in first for form in forms_of(entry)}
    some = tuple(entry for entry in entries if entry in first or forms_of(entry) & forms)
    return Related(some, frozenset(entry.id for entry in entries))


# A few words that collide often, politeness left aside; none has a form of its own.
words = st.sampled_from(["一", "二", "三", "四", "请问一", "二呢", "三？", "在吗"])
ids = st.sampled_from(["", "", "a", "b", "c", "d"])
wordings = st.none() | st.lists(words, max_size=3, unique=True).map(tuple)


@st.composite
def bases(draw: st.DrawFn) -> list[Entry]:
    """Entries of which no two live ones share a wording."""
    entries: list[Entry] = []
    for name in draw(st.lists(st.sampled_from("abcdef"), unique=True, max_size=4)):
        made = Entry(
            id=name,
            question=draw(words),
            answer=draw(st.sampled_from("xy")),
            aliases=draw(wordings) or (),
            live=draw(st.booleans()),
        )
        if not made.live or not any(forms_of(made) & forms_of(other) for other in entries if other.live):
            entries.append(made)
    return entries


@st.composite
def rows(draw: st.DrawFn) -> list[Draft]:
    return [
        Draft(
            place=f"row {number}",
            question=draw(words),
            answer=draw(st.sampled_from("xyz")),
            id=draw(ids),
            aliases=draw(wordings),
            live=draw(st.sampled_from([None, None, True, False])),
        )
        for number in range(draw(st.integers(1, 5)))
    ]


@given(bases(), rows())
@example(  # a second row of an entry that the first one leaves as it is
    [Entry(id="c", question="二", answer="y", aliases=("一",))],
    [Draft(place="row 0", question="二", answer="y"), Draft(place="row 1", question="二", answer="x", aliases=())],
)
@settings(max_examples=examples(200), deadline=None)
def test_every_row_is_told_and_no_wording_means_two(entries: list[Entry], drafts: list[Draft]) -> None:
    both: tuple[OnDouble, ...] = ("skip", "replace")
    for on_double in both:
        plan = decide("a", drafts, as_related(entries), on_double, Forms())
        assert decide("a", drafts, related_to(drafts, entries), on_double, Forms()) == plan
        after = {entry.id: entry for entry in entries}
        for change in plan.changed:
            assert after[change.old.id] == change.old
            after[change.old.id] = change.new
        for added in plan.added:
            assert added.entry.id not in after
            after[added.entry.id] = added.entry
        held = [form for entry in after.values() if entry.live for form in forms_of(entry)]
        assert len(held) == len(set(held)), plan
        still_live = [entry for entry in entries if entry.live and after[entry.id].live]
        assert {form for entry in still_live for form in map(stripped, entry.aliases)} - {""} <= set(held)
        # What another entry that counts has already is told as lost, and nothing else is.
        assert {stripped(alias) for one in plan.lost for alias in one.aliases} <= set(held), plan
        told = {added.place for added in plan.added} | {change.place for change in plan.changed}
        told |= {refused.place for refused in plan.rejected} | {row.place for row in plan.unclear}
        told |= {place for double in plan.doubles for place in (double.place, double.other_place)}
        same = len([draft for draft in drafts if draft.place not in told])
        assert same <= len(plan.same)
        assert all(after[entry.id] == entry for entry in plan.same)
        if not plan.doubles:
            left_out = len(plan.rejected) + len(plan.unclear)
            assert len(drafts) == len(plan.added) + len(plan.changed) + len(plan.same) + left_out
        lost = {one.place for one in plan.doubles if one.whole and one.differs}
        assert {draft.place for draft in drafts if draft.place not in told} & lost == set()


def test_a_second_question_is_an_alias_and_a_second_answer_is_told() -> None:
    text = "问题,标准问法,答案,回复,编号\n怎么退货,能退吗,七天内,十天内,r\n几天到,,三天,,\n"
    first, second = read_table("faq.csv", text.encode())
    assert (first.question, first.aliases, first.answer, first.id) == ("怎么退货", ("能退吗",), "七天内", "r")
    assert (second.question, second.aliases) == ("几天到", ())
    assert "\n".join(first.notes) == "faq.csv: only the first column of its kind is read, not: 回复"


def test_a_person_is_told_in_their_language_where_a_row_is_and_why_it_is_not_taken() -> None:
    text = "问题,答案,状态,备注\n几天发货,,,\n能退吗,能,也许,x\n"
    first, second = read_table("faq.csv", text.encode())
    assert (first.place, first.problem) == ("faq.csv, line 2", "there is no answer")
    assert [in_language(said, "zh") for said in (first.place, first.problem)] == ["faq.csv 第 2 行", "没有答案"]
    assert in_language(second.problem, "zh") == "看不懂 '也许' 是启用还是停用：请写 启用 或 停用"
    assert [in_language(note, "zh") for note in first.notes] == ["faq.csv：没有读这些列：备注"]


def test_what_is_said_of_a_file_has_the_same_keys_in_both_languages() -> None:
    assert load_texts("knowledge.importing.texts", "zh").keys() == load_texts("knowledge.importing.texts", "en").keys()
