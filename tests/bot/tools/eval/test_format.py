"""What a scenario file may hold, and how one that breaks the format is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_core.errors import ConfigInvalid, ConfigMissing
from bot.tools.eval.scenario import EvalScenario, Mode, schema_text
from bot.tools.eval.suite import BrokenFiles, find_cases, shipped
from simulator.phone.scenario_file import load_scenario, parse_scenario

ELEVEN = "[[contacts]]\nname = '11'\n"
TWO_REPLIES = "[[replies]]\ncall = 'a'\n{first}\n[[replies]]\ncall = 'b'\n"


def test_every_field_has_a_default_but_those_of_a_part() -> None:
    scenario = parse_scenario("", EvalScenario)
    assert scenario.runs == ["QQ回复联系人11"]
    assert scenario.modes == [Mode.TREE, Mode.PICTURES]
    assert scenario.expect.asked == []
    assert scenario.knowledge is None


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("titel = 'x'", 1, ["titel", "title"]),
        ("\nmodes = ['tre']", 2, ["modes[0]", "'tree'"]),
        ("task = 'a'\ntasks = ['b']", 2, ["tasks", "task stands there already"]),
        ("[expect]\nstatus = 'fine'", 2, ["expect.status", "'succeeded'"]),
        (ELEVEN + "[expect]\nsent = { '12' = [] }", 4, ["expect.sent", "'12'", "there are 11"]),
        (ELEVEN + "[expect]\n\nmodel_calls = {\tmaxi = 3 }", 5, ["model_calls.maxi", "min, max"]),
        (ELEVEN + "[expect]\nsent = {'11'=['a']}\nsent_contains = {'11'=['a']}", 5, ["sent_contains", "already"]),
        ("[[people]]\non = 'no_sure_answer'", 1, ["people[0]", "exactly one of choice, text"]),
        ("[[people]]\non = 'stuck'\ntext = 'a'\n[[people]]\n\non = 'nobody'", 6, ["people[1].on", "'no_sure_answer'"]),
        ("[[replies]]\ntimes = 1", 1, ["replies[0]", "exactly one of call, text"]),
        (TWO_REPLIES.format(first="times = 0"), 3, ["replies[0].times", "beside when"]),
        (TWO_REPLIES.format(first="then_demo = true"), 3, ["replies[0].then_demo", "last"]),
        ("[[knowledge]]\nquestion = 'q'", 1, ["knowledge[0].answer", "required"]),
        ("[knowledge_faults]\nfail = 'fire'", 2, ["knowledge_faults.fail", "'unreachable'"]),
        ("tasks = [\n 'a',\n 'b']\n[expect]\nstatuses = ['failed']", 5, ["expect.statuses", "2 runs"]),
        ("x = [\n1,\n", 2, ["not TOML"]),
    ],
)
def test_what_breaks_the_format_is_named_with_its_line(text: str, line: int, words: list[str]) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        parse_scenario(text, EvalScenario, name="a.toml")
    told = caught.value.message.splitlines()
    assert told[0].startswith(f"a.toml:{line}: ")
    for word in words:
        assert word in told[0]


def test_a_file_of_json_has_lines_too(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{\n "contacts": [\n  {"name": "1"},\n  {"name": "2",\n   "colour": 1}]}', "utf-8")
    with pytest.raises(ConfigInvalid, match=r"a\.json:5: contacts\[1\]\.colour"):
        load_scenario(file, EvalScenario)


def test_every_fault_of_every_file_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "good.toml").write_text(ELEVEN, "utf-8")
    (tmp_path / "a.toml").write_text("x = 1\ny = 2", "utf-8")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "b.json").write_text("[", "utf-8")
    with pytest.raises(BrokenFiles) as caught:
        find_cases([tmp_path])
    told = caught.value.message.splitlines()
    assert [line.removeprefix(f"{tmp_path}/").split(": ")[0] for line in told] == [
        "a.toml:1",
        "a.toml:2",
        "inner/b.json:1",
    ]


def test_cases_are_chosen_by_mode_and_by_words(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text("title = 'First Thing'", "utf-8")
    (tmp_path / "two.toml").write_text("modes = ['tree']", "utf-8")
    every = [(case.path.stem, case.mode.value) for case in find_cases([tmp_path])]
    assert every == [("one", "tree"), ("one", "pictures"), ("two", "tree")]
    assert [case.path.stem for case in find_cases([tmp_path], mode=Mode.PICTURES)] == ["one"]
    assert [case.title for case in find_cases([tmp_path], match="first")] == ["First Thing", "First Thing"]
    assert [case.path.stem for case in find_cases([tmp_path / "two.toml"])] == ["two"]


def test_where_there_is_nothing_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigMissing, match="no scenario in"):
        find_cases([tmp_path])
    with pytest.raises(ConfigMissing, match=r"none\.toml"):
        find_cases([tmp_path / "none.toml"])
    with pytest.raises(ConfigMissing, match="--match"):
        find_cases([], match="no such words")


def test_the_shipped_ones_have_titles_of_their_own() -> None:
    scenarios = {file: load_scenario(file, EvalScenario) for file in shipped().glob("*.toml")}
    titles = [scenario.title for scenario in scenarios.values()]
    assert all(titles)
    assert len(set(titles)) == len(titles)


def test_the_schema_in_the_reference_is_up_to_date() -> None:
    file = Path(__file__).parents[4] / "docs" / "reference" / "scenario.schema.json"
    assert file.read_text("utf-8") == schema_text(), f"python -m bot.tools.eval.scenario > {file.name}"
    assert json.loads(schema_text())["$defs"]["ExpectPart"]["additionalProperties"] is False
