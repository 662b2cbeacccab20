"""``phonedesk kb`` as a shell calls it: what is printed, what is kept, exit codes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_core.texts import Lang
from bot.channels.chat.kb_cards import entry_lines, stats_lines
from bot.channels.chat.texts import texts
from bot.channels.cli.commands.common import Exit
from bot.channels.cli.terminal.language import speak
from bot.desk.knowledge_views import KnowledgeStats
from knowledge.entries import Entry, Stats
from tests.support.command_line import call, empty_place

__all__ = ["empty_place"]  # a fixture

FAQ = "question,answer,aliases\nCan I return it?,Within seven days.,How do returns work\nWhen does it ship?,Today.,\n"


@pytest.fixture
def faq(tmp_path: Path) -> Path:
    file = tmp_path / "faq.csv"
    file.write_text(FAQ, encoding="utf-8")
    return file


def test_an_entry_from_add_to_delete() -> None:
    code, out, _ = call("kb", "add", "怎么退货", "七天内可退", "--alias", "能退吗", "--tag", "售后", "--json")
    added = json.loads(out)
    assert code == Exit.OK
    assert (added["question"], added["aliases"], added["tags"]) == ("怎么退货", ["能退吗"], ["售后"])
    assert (added["live"], added["origin"]) == (True, "terminal")
    (found,) = json.loads(call("kb", "search", "能退吗", "--json")[1])
    assert (found["id"], found["score"]) == (added["id"], 1.0)
    edited = json.loads(call("kb", "edit", added["id"], "--answer", "十五天", "--no-tags", "--json")[1])
    assert (edited["answer"], edited["aliases"], edited["tags"]) == ("十五天", ["能退吗"], [])
    edit = ("kb", "edit", added["id"])
    edited = json.loads(call(*edit, "--add-alias", "退货流程", "--remove-alias", "能退吗", "--json")[1])
    assert edited["aliases"] == ["退货流程"]
    shown = call(*edit, "--alias", "退不退", "--add-alias", "好退吗")[1]
    assert "Also asked: 退不退 | 好退吗" in shown
    assert "Also asked, before: 退货流程" in shown
    code, out, err = call(*edit, "--remove-alias", "没有的")
    assert (code, out) == (Exit.USAGE, "")
    assert f"The entry {added['id']} has no alias “没有的”" in err
    assert "phonedesk kb search 怎么退货" in err
    assert json.loads(call("kb", "stats", "--json")[1])["live"] == 1
    assert json.loads(call("kb", "delete", f"#{added['id']}", "--json")[1])["answer"] == "十五天"
    assert json.loads(call("kb", "search", "能退吗", "--json")[1]) == []


def test_an_entry_is_edited_by_its_question_if_it_is_the_only_one() -> None:
    for question in ("怎么退货", "退货运费谁出", "几天能发货"):
        call("kb", "add", question, "七天", "--json")
    assert json.loads(call("kb", "edit", "怎么退货？", "--answer", "甲", "--json")[1])["question"] == "怎么退货"
    assert json.loads(call("kb", "edit", "发货", "--answer", "乙", "--json")[1])["question"] == "几天能发货"
    code, out, err = call("kb", "edit", "退货", "--answer", "丙")
    assert (code, out) == (Exit.USAGE, "")
    assert "Several entries have the words “退货”" in err
    ids = {one["question"]: one["id"] for one in json.loads(call("kb", "search", "--json")[1])}
    for question in ("怎么退货", "退货运费谁出"):
        assert f"{ids[question]} {question}" in err
    code, _, err = call("kb", "edit", "没有的", "--answer", "丁")
    assert code == Exit.USAGE
    assert "There is no entry" in err


def test_several_aliases_in_one_option_are_parted_as_in_a_table() -> None:
    added = json.loads(
        call("kb", "add", "怎么退货", "七天内可退", "--alias", "能退吗|怎么退", "--tag", "售后，退货", "--json")[1]
    )
    assert (added["aliases"], added["tags"]) == (["能退吗", "怎么退"], ["售后", "退货"])
    edit = ("kb", "edit", added["id"], "--json")
    assert json.loads(call(*edit, "--add-alias", "好退吗 ｜ 退不退")[1])["aliases"][2:] == ["好退吗", "退不退"]
    assert json.loads(call(*edit, "--remove-alias", "能退吗|退不退")[1])["aliases"] == ["怎么退", "好退吗"]
    assert json.loads(call(*edit, "--alias", "退吗|退货, 行吗")[1])["aliases"] == ["退吗", "退货, 行吗"]


def test_an_alias_that_holds_what_parts_them_is_removed_by_its_whole_text(tmp_path: Path) -> None:
    row = {"question": "怎么退货", "answer": "七天内可退", "aliases": ["退吗；多久", "能退吗|退不退", "退吗"]}
    (tmp_path / "faq.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    assert call("kb", "import", str(tmp_path / "faq.jsonl"))[0] == Exit.OK
    (found,) = json.loads(call("kb", "search", "怎么退货", "--json")[1])
    assert found["aliases"] == row["aliases"]
    edit = ("kb", "edit", found["id"], "--json", "--remove-alias")
    assert json.loads(call(*edit, "退吗；多久")[1])["aliases"] == ["能退吗|退不退", "退吗"]
    assert json.loads(call(*edit, "能退吗|退不退", "--remove-alias", "退吗")[1])["aliases"] == []


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_whoever_sits_at_the_terminal_and_the_own_entries_are_named_in_words(lang: Lang) -> None:
    words, now = texts(lang), datetime(2026, 11, 23, tzinfo=UTC)
    entry = Entry(question="问", answer="答", origin="person:terminal", created_at=now, updated_at=now)
    said = " ".join(line.text for line in entry_lines(entry, words))
    assert ("本机管理员回答客户时写的" if lang == "zh" else "the owner at this machine") in said
    stats = KnowledgeStats(Stats(1, 0, 0, None, ()), "embedded,dify", used=True)
    shown = " ".join(line.text for line in stats_lines(stats, words))
    assert ("内置、dify" if lang == "zh" else "its own entries, dify") in shown


def test_numbers_are_printed_as_a_shell_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a number sign a shell reads nothing more."""
    shown = call("kb", "add", "怎么退货", "七天内可退")[1] + call("kb", "search")[1]
    (entry,) = json.loads(call("kb", "search", "--json")[1])
    assert shown.count(entry["id"]) == 2
    assert "#" not in shown
    for start in (entry["id"][:4], "#" + entry["id"][:4]):
        assert json.loads(call("kb", "edit", start, "--answer", f"答 {start}", "--json")[1])["id"] == entry["id"]
    for lang, said in (("en", "leavethe#out"), ("zh", "请去掉#")):
        monkeypatch.setenv("PHONEDESK_LANG", lang)
        speak(None)  # another process would read it from the settings
        code, _, err = call("kb", "edit", "--answer", "x")
        assert (code, said in "".join(err.split())) == (Exit.USAGE, True)


def test_what_waits_is_approved_or_rejected(tmp_path: Path) -> None:
    file = tmp_path / "learnt.jsonl"
    rows = [{"id": f"p{n}", "question": f"question {n}", "answer": "yes", "live": False} for n in (1, 2)]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert call("kb", "import", str(file))[0] == Exit.OK
    assert [entry["id"] for entry in json.loads(call("kb", "pending", "--json")[1])] == ["p1", "p2"]
    shown = call("kb", "pending")[1]
    assert "Waiting for approval: 2" in shown
    assert ("p1" in shown, "1." in shown) == (True, False)  # the ids name them
    code, _, err = call("kb", "approve", "1")
    assert (code, "phonedesk kb pending" in err) == (Exit.USAGE, True)
    assert json.loads(call("kb", "approve", "p1", "--json")[1])["live"] is True
    assert json.loads(call("kb", "reject", "p2", "--json")[1])["id"] == "p2"
    assert "Nothing waits for approval." in call("kb", "pending")[1]
    assert call("kb", "reject", "p1")[0] == Exit.USAGE


def test_a_dry_run_shows_and_writes_nothing(faq: Path) -> None:
    code, out, _ = call("kb", "import", str(faq), "--dry-run")
    assert code == Exit.OK
    assert "a preview, nothing is written yet" in out
    assert "2 added, 0 changed" in out
    assert json.loads(call("kb", "stats", "--json")[1])["live"] == 0


def test_an_import_with_doubles(faq: Path, tmp_path: Path) -> None:
    assert json.loads(call("kb", "import", str(faq), "--json")[1])["done"] is True
    more = tmp_path / "more.csv"
    more.write_text("question,answer\nHow do returns work,By post.\n,nothing\n", encoding="utf-8")
    shown = json.loads(call("kb", "import", str(more), "--dry-run", "--json")[1])
    assert (shown["done"], shown["added"], shown["doubles"][0]["wording"]) == (False, [], "How do returns work")
    assert [refused["place"] for refused in shown["refused"]] == ["more.csv, line 3"]
    assert json.loads(call("kb", "import", str(more), "--json")[1])["added"] == []
    done = json.loads(call("kb", "import", str(more), "--replace-doubles", "--json")[1])
    assert [one["entry"]["answer"] for one in done["added"]] == ["By post."]
    assert json.loads(call("kb", "stats", "--json")[1])["live"] == 3


def test_an_import_ends_with_a_summary_and_lists_every_row_if_asked_to(tmp_path: Path) -> None:
    many, unclear = tmp_path / "many.csv", tmp_path / "unclear.csv"
    many.write_text("question,answer\n" + "".join(f"Is model {n} red,yes\n" for n in range(40)), encoding="utf-8")
    code, out, _ = call("kb", "import", str(many), "--dry-run")
    assert (code, "40 added" in out, "… and 35 more" in out) == (Exit.OK, True, True)
    assert "Is model 5 red" not in out
    assert "--verbose lists every row." in out
    out = call("kb", "import", str(many), "--verbose")[1]
    assert ("Is model 39 red" in out, "--verbose" in out) == (True, False)
    unclear.write_text("question,answer\nIs it red,yes\nIs it red?,no\n", encoding="utf-8")
    code, out, _ = call("kb", "import", str(unclear))
    assert code == Exit.FAILED
    assert "unclear.csv, line 3" in out
    shown = json.loads(call("kb", "import", str(unclear), "--dry-run", "--json")[1])
    assert [(row["answer"], row["other_places"]) for row in shown["unclear"]] == [
        ("yes", ["unclear.csv, line 3"]),
        ("no", ["unclear.csv, line 2"]),
    ]


def test_approved_aliases_stay_and_go_only_when_a_person_agrees(faq: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def aliases() -> list[str]:
        return sorted(alias for one in json.loads(call("kb", "search", "--json")[1]) for alias in one["aliases"])

    call("kb", "import", str(faq))
    (found,) = (one for one in json.loads(call("kb", "search", "--json")[1]) if not one["aliases"])
    call("kb", "edit", found["id"], "--alias", "is it on its way")  # as an approval does
    code, out, _ = call("kb", "import", str(faq))
    assert (code, "0 changed, 2 the same" in out) == (Exit.OK, True)
    assert aliases() == ["How do returns work", "is it on its way"]
    for said in ("n\n", ""):  # the end of the input is no agreement
        code, out, err = call("kb", "import", str(faq), "--drop-aliases", typed=said)
        assert code == Exit.FAILED
        assert "is it on its way" in out
        assert "Not imported; nothing was changed." in err
        assert len(aliases()) == 2
    code, out, err = call("kb", "import", str(faq), "--drop-aliases", typed="perhaps\ny\n")
    assert "Type y for yes or n for no." in err
    assert (code, aliases()) == (Exit.OK, ["How do returns work"])
    call("kb", "edit", found["id"], "--alias", "is it on its way")
    done = json.loads(call("kb", "import", str(faq), "--drop-aliases", "--yes", "--json")[1])
    assert done["lost_aliases"] == [{"entry": found["id"], "aliases": ["is it on its way"]}]
    assert aliases() == ["How do returns work"]


def test_an_import_names_the_options_of_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "unclear.csv"
    file.write_text("question,answer\nIs it red,yes\nIs it red?,no\nIs it blue,no\nIs it blue,no\n", encoding="utf-8")
    for _ in range(2):
        out = " ".join(call("kb", "import", str(file))[1].replace("│", "").split())
        assert "adding --replace-doubles" in out
        assert "button" not in out.lower()
    assert "Doubles stayed as they were; --replace-doubles" in out
    assert "Doubles stayed" not in call("kb", "import", str(file), "--replace-doubles")[1]


def test_several_files_are_one_import(faq: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.md"
    more.write_text("## Do you sell gifts?\n\nYes.\n", encoding="utf-8")
    assert json.loads(call("kb", "import", str(faq), str(more), "--json")[1])["name"] == "faq.csv, more.md"
    assert json.loads(call("kb", "stats", "--json")[1])["live"] == 3


@pytest.mark.parametrize("form", ["csv", "xlsx", "jsonl", "md"])
def test_an_export_is_imported_again_without_a_change(faq: Path, tmp_path: Path, form: str) -> None:
    call("kb", "import", str(faq))
    file = tmp_path / f"out.{form}"
    assert json.loads(call("kb", "export", str(file), "--json")[1]) == {
        "file": str(file),
        "bytes": file.stat().st_size,
    }
    plan = json.loads(call("kb", "import", str(file), "--dry-run", "--json")[1])
    assert (plan["added"], plan["changed"], plan["doubles"], len(plan["same"])) == ([], [], [], 2)


def test_a_file_of_which_nothing_can_be_taken_has_failed(tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    file.write_text("question,answer\n,no question\n", encoding="utf-8")
    code, out, _ = call("kb", "import", str(file))
    assert code == Exit.FAILED
    assert "bad.csv was not imported" in out
    assert "bad.csv, line 2" in out
    assert call("kb", "import", str(file), "--dry-run")[0] == Exit.OK


def test_stats_tell_whether_the_entries_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PROVIDER": "dify", "BASE_URL": "http://127.0.0.1:1", "DATASET_ID": "d", "TOKEN": "t"}.items():
        monkeypatch.setenv(f"PHONEDESK_KNOWLEDGE__{name}", value)
    assert json.loads(call("kb", "stats", "--json")[1])["used"] is False
    assert "PHONEDESK_KNOWLEDGE__PROVIDER=embedded,dify" in call("kb", "stats")[1].replace("\n", "").replace("│", "")


@pytest.mark.parametrize(
    "args",
    [
        ("edit", "nobody", "--answer", "x"),
        ("edit", "nobody"),
        ("delete", "nobody"),
        ("approve", "nobody"),
        ("add", "question", " "),
        ("import", "missing.csv"),
        ("export", "out.doc"),
        ("export", "missing/out.csv"),
    ],
)
def test_bad_use_is_exit_code_2(args: tuple[str, ...]) -> None:
    assert call("kb", *args)[0] == Exit.USAGE


def test_a_file_that_is_no_table_is_bad_use(tmp_path: Path) -> None:
    (tmp_path / "a.exe").write_bytes(b"MZ\x00\x01")
    code, _, said = call("kb", "import", str(tmp_path / "a.exe"))
    assert code == Exit.USAGE
    assert "a.exe" in said


def test_a_double_is_bad_use_and_names_the_entry() -> None:
    added = json.loads(call("kb", "add", "怎么退货", "七天", "--json")[1])
    code, _, said = call("kb", "add", "怎么退货？", "十天")
    assert code == Exit.USAGE
    assert added["id"] in said


def test_what_has_no_end_is_not_read_to_it(faq: Path) -> None:
    code, out, said = call("kb", "import", "/dev/zero")
    assert code == Exit.USAGE
    assert said == "The file zero is larger than 10 MB.\nImport it in parts.\n"
    assert out == ""
    assert call("kb", "import", str(faq), "/dev/zero")[0] == Exit.USAGE
    assert json.loads(call("kb", "stats", "--json")[1])["live"] == 0
