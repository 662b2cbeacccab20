"""What is exported can be imported again without a change."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from openpyxl import load_workbook

from agent_core.errors import InputRejected
from agent_core.texts.clean import clean_text
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import Entry, Forms, Related, forms_of, line, sample_entries
from knowledge.exporting import Form, write_table
from knowledge.importing.planner import carry_out, decide, plan_import
from knowledge.importing.read import read_table
from knowledge.importing.text import guarded, unguarded
from tests.knowledge.bases import as_related
from tests.support.days import examples
from tests.support.knowledge import open_knowledge

FORMS: list[Form] = ["csv", "jsonl", "md", "xlsx"]
# What could be taken for a sign of one of the formats, between texts.
SIGNS = [
    *"=+-@'\",;|；｜、，\t\n\r\\#*>{}＝\u2028\x85\ufeff\u3000\U0001f600\x00 ",
    *("##", "# ", "```", "~~~", "<!--", "-->", "**", "- ", "1. ", "&amp;", "&#10;", "<b>", '""'),
    *("Q:", "A： ", "问：", "答:", "=1+1", "'=x", "1.0", "007", "TRUE", "#N/A", "none", "null", "_x000D_", "_x005F_"),
    '<!-- {"id":"x"} -->',
]
text = st.lists(st.one_of(st.sampled_from(SIGNS), st.text(max_size=4), st.sampled_from("几天能发货吗")), max_size=8)
texts = text.map("".join)
lists = st.lists(texts, max_size=4).map(tuple)


@st.composite
def entry(draw: st.DrawFn) -> Entry:
    live = draw(st.booleans())
    return Entry(
        id=draw(st.from_regex(r"[0-9A-Za-z=@'#_-]{1,12}", fullmatch=True)),
        question=draw(texts.filter(line)),
        answer=draw(texts.filter(clean_text)),
        aliases=draw(lists),
        tags=draw(lists),
        live=live,
        alias_of="" if live else draw(st.sampled_from(["", "other"])),
    )


tricky = Entry(
    id="=1",
    question="# 几天 #",
    answer="Q: a\n# b\n```\n\\# c\n<!-- {} -->\n\n'=1",
    aliases=("a;b",),
    tags=("a,b",),
)


@pytest.mark.parametrize("form", FORMS)
@given(st.lists(entry(), min_size=1, max_size=4, unique_by=lambda one: one.id))
@example([tricky])
@example([Entry(id="a", question="##", answer="_x0041_ _x005F_x0041_", aliases=("'=1", "x"), live=False)])
@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_there_and_back(form: Form, entries: list[Entry]) -> None:
    drafts = read_table(f"x.{form}", write_table(entries, form))
    again = decide(f"x.{form}", drafts, as_related(entries), "skip", Forms())
    assert (again.writes, again.doubles, again.rejected, again.notes) == (0, (), (), ())
    assert again.same == tuple(entries)
    # A question of signs alone has no form: it is doubled if it is written the same.
    held = [form for one in entries if one.live for form in forms_of(one) or {one.question}]
    if len(held) == len(set(held)):  # what doubles itself is told, see the tests of imports
        fresh = decide(f"x.{form}", drafts, Related(), "skip", Forms())
        assert [added.entry.model_copy(update={"origin": ""}) for added in fresh.added] == entries


@pytest.fixture
async def base(tmp_path: Path) -> AsyncIterator[EmbeddedKnowledge]:
    base = await open_knowledge(tmp_path / "k.db")
    yield base
    await base.close()


@pytest.mark.parametrize("form", FORMS)
async def test_the_sample_moves_to_another_base(base: EmbeddedKnowledge, form: Form) -> None:
    waiting = Entry(id="w", question="寄不寄", answer="x", live=False, alias_of="courier")
    entries = [*sample_entries(), waiting]
    name = f"faq.{form}"
    plan = await plan_import(base, name, read_table(name, write_table(entries, form)))
    done = await carry_out(base, plan)
    assert (len(done.added), done.doubles, done.rejected) == (41, (), ())
    kept = await base.list()
    assert [one.model_copy(update={"origin": ""}) for one in kept] == [
        one.model_copy(update={"origin": ""}) for one in entries
    ]
    assert {one.origin for one in kept} == {f"import:{name}"}
    again = await plan_import(base, name, read_table(name, write_table(kept, form)))
    assert (again.writes, len(again.same)) == (0, 41)


@pytest.mark.parametrize("start", ["=1+1", "+1", "-1", "@x", "'=1", "＝1", "=HYPERLINK(1)"])
def test_no_cell_is_a_formula(start: str) -> None:
    entries = [Entry(id="a", question=start, answer=start, aliases=(start,), tags=(start,))]
    rows = list(csv.reader(io.StringIO(write_table(entries, "csv").decode("utf-8-sig"))))
    assert all(cell.startswith("'") for cell in rows[1][1:])
    sheet = load_workbook(io.BytesIO(write_table(entries, "xlsx"))).active
    assert sheet is not None
    assert {cell.data_type for row in sheet.iter_rows() for cell in row} == {"s"}


@pytest.mark.parametrize("start", ["\t=1+1", "\r=1+1", "\n=1", "=1", "＠x"])
def test_a_cell_is_guarded_whatever_stands_before_the_formula(start: str) -> None:
    assert guarded(start) == f"'{start}"
    assert unguarded(guarded(start)) == start


def test_forms() -> None:
    entries = [Entry(id="a", question="q", answer="一\n二", aliases=("x", "y"), tags=("t",))]
    table = write_table(entries, "csv")
    assert table.startswith(b"\xef\xbb\xbfid,question,answer,aliases,tags\r\n")
    (only,) = write_table(entries, "jsonl").decode().splitlines()
    assert json.loads(only) == {"id": "a", "question": "q", "answer": "一\n二", "aliases": ["x", "y"], "tags": ["t"]}
    assert write_table(entries, "md").decode().startswith("## q\n\n<!-- {")
    assert write_table([], "md") == b""
    with pytest.raises(InputRejected, match="no question"):
        read_table("a.csv", write_table([], "csv"))


def test_what_a_cell_cannot_hold_is_said() -> None:
    long = Entry(id="long", question="q", answer="a", aliases=tuple(f"{n}" + "x" * 400 for n in range(100)))
    with pytest.raises(InputRejected, match="long"):
        write_table([long], "xlsx")
    assert len(read_table("a.csv", write_table([long], "csv"))[0].aliases or ()) == 100
