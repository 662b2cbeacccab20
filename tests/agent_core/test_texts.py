from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

import agent_core
from agent_core.actions.types import Action
from agent_core.actions.write import in_words
from agent_core.texts import Lang, Listed, catalogue, filled, load_texts, say, sentences

ROOT = Path(agent_core.__file__).parent


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def said() -> Iterator[tuple[str, set[str], str]]:
    """Every ``say(lang, "key", name=…)`` of the package: key, names of the values, where."""
    for file in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say"):
                continue
            key = node.args[1] if len(node.args) > 1 else None
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                names = {word.arg for word in node.keywords if word.arg}
                yield key.value, names, f"{file.relative_to(ROOT)}:{node.lineno}"


CHAT, TERMINAL = "bot.channels.chat.texts", "bot.channels.cli.terminal.texts"
CONSOLE = "bot.channels.web.console.texts"


def test_both_languages_say_the_same_things() -> None:
    zh, en = catalogue("zh"), catalogue("en")
    assert zh.keys() == en.keys()
    assert [key for key in zh if placeholders(zh[key]) != placeholders(en[key])] == []
    assert [key for key in zh if not zh[key].strip() or not en[key].strip()] == []


def test_whatever_is_said_has_its_text_and_its_values() -> None:
    found = list(said())
    assert len(found) > 20
    missing = [
        (key, where) for key, names, where in found if not placeholders(catalogue("en").get(key, "{?}")) <= names
    ]
    assert missing == []


def test_values_are_filled_in_as_they_are() -> None:
    assert say("zh", "run.sent", contact="11", text="{x} {0}") == "已发送给 11：{x} {0}"
    assert say("en", "run.sent", contact="11", text="a") == "Sent to 11: a"


@pytest.mark.parametrize(
    ("count", "said"),
    [(1, "1 call, done"), ("1", "1 call, done"), (0, "0 calls, done"), ("1,001", "1,001 calls, done")],
)
def test_one_is_not_many(count: object, said: str) -> None:
    assert filled("{count} {count:call|calls}, {what}", {"count": count, "what": "done"}, "en") == said


@pytest.mark.parametrize(("lang", "said"), [("zh", "可选：qq、wechat"), ("en", "可选：qq, wechat")])
def test_several_words_are_listed_as_the_language_does_it(lang: Lang, said: str) -> None:
    known = Listed(["qq", "wechat"])
    assert filled("可选：{known}", {"known": known}, lang) == said
    assert f"known: {known}" == "known: qq, wechat", "in English of our own"


@pytest.mark.parametrize(
    ("who", "said"),
    [("my-shop", "任务由 my-shop 停止"), ("小王", "任务由小王停止"), ("小王2", "任务由小王2 停止"), ("", "任务由停止")],
)
def test_a_latin_value_does_not_stand_against_chinese(who: str, said: str) -> None:
    assert filled("任务由{who}停止", {"who": who}, "zh") == said
    assert filled("x{who}x", {"who": who}, "zh") == f"x{who}x", "only against Chinese"
    assert filled("任务由 {who} 停止", {"who": "Q"}, "zh") == "任务由 Q 停止"


def test_no_list_gets_into_a_text_as_one_word_with_commas() -> None:
    """``Listed`` knows how a language lists words; what is joined beforehand reads wrongly in Chinese."""
    found = []
    for package in ("agent_core", "bot", "knowledge", "scheduler", "storage"):
        for file in (ROOT.parent / package).rglob("*.py"):
            for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                values = call.keywords if isinstance(call, ast.Call) else []
                joined = [ast.unparse(value.value) for value in values if value.arg not in {None, "advice"}]
                found += [f"{file.name}: {value}" for value in joined if value.startswith("', '.join(")]
    assert found == []


COUNTED = (
    "calls steps runs rows entries pictures phones contacts chats notes questions messages texts elements records"
    " tokens times acts minutes parts checks wordings ways"
)


def test_no_english_text_speaks_of_1_calls() -> None:
    """What is counted is written ``{count} {count:call|calls}``; a limit is never 1."""
    plural = re.compile(rf"\{{(?!most|m\w+_length|limit)\w+(?::,)?\}} (?:[a-z]+ )?(?:{COUNTED.replace(' ', '|')})\b")
    limits = {
        f"bot.{key}"
        for key in (
            "channels.chat.texts errors.too_long_a_chain",
            "channels.chat.texts errors.too_much_asked",
            "app.setup.texts model.costs",
        )
    }
    found = {
        f"{package} {key}"
        for package in (
            "agent_core.texts",
            "bot.channels.chat.texts",
            "bot.app.doctor.texts",
            "bot.app.setup.texts",
            "bot.channels.cli.terminal.texts",
        )
        for key, text in load_texts(package, "en").items()
        if plural.search(text)
    }
    assert found - limits == set()


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_each_action_has_its_words(lang: Lang) -> None:
    actions = Action.__origin__.__args__  # type: ignore[attr-defined]  # the members of the annotated union
    needed = {f"action.{action.model_fields['kind'].default}" for action in actions}
    assert needed - catalogue(lang).keys() == set()
    assert in_words(lang, {"kind": "swipe", "start": [1, 2], "end": (3, 4)}).count("(") == 2
    assert in_words("en", {"kind": "take_over"}) == "Ask a person to take over"


@pytest.mark.parametrize("key", ["run.nothing_like_it", "", "sent"])
def test_a_text_that_is_missing_is_an_error(key: str) -> None:
    with pytest.raises(KeyError):
        say("zh", key)
    with pytest.raises(KeyError):
        say("zh", "run.sent", contact="11")


def test_sentences_are_joined_as_the_language_does_it() -> None:
    assert (
        sentences(["没有发送任何内容。", "", "问题还在", "请看：", "好"], "zh")
        == "没有发送任何内容。问题还在。请看：好"
    )
    assert sentences(["Nothing was sent.", "HTTP 404", "Try /v1."], "en") == "Nothing was sent. HTTP 404. Try /v1."
    assert sentences(["他说：“好。”", "然后"], "zh") == "他说：“好。”然后"
    assert sentences([], "zh") == ""


@pytest.mark.parametrize(
    "package", ["agent_core.texts", "bot.app.doctor.texts", "bot.app.setup.texts", TERMINAL, CHAT, CONSOLE]
)
def test_people_are_spoken_to_in_one_way(package: str) -> None:
    assert [key for key, text in load_texts(package, "zh").items() if "您" in text] == []
