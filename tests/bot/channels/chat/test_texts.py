from __future__ import annotations

import errno
import os
import re
import string
from collections.abc import Iterator

import pytest

from agent_core import errors
from agent_core.errors import ConfigInvalid
from agent_core.policies.base import Decision
from agent_core.policies.detect import PolicyName, policies_of
from agent_core.session import QuestionKind
from agent_core.texts import catalogue as agent_texts
from agent_core.texts import kept_language, language_of, rule_words
from bot.channels.chat import commands
from bot.channels.chat.command_names import in_terminal
from bot.channels.chat.texts import LANGUAGES, Lang, Texts, catalogue, texts
from bot.channels.cli.terminal.language import texts as terminal_texts
from bot.desk import actors, views


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def kinds(error: type[errors.PhonedeskError]) -> Iterator[str]:
    yield error.kind
    for child in error.__subclasses__():
        yield from kinds(child)


def test_both_languages_say_the_same_things() -> None:
    zh, en = catalogue("zh"), catalogue("en")
    assert zh.keys() == en.keys()
    assert {key for key in zh if placeholders(zh[key]) != placeholders(en[key])} == set()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_nothing_that_can_be_shown_lacks_its_text(lang: Lang) -> None:
    needed = {f"question.{kind.value}" for kind in QuestionKind}
    needed |= {f"card.{status.value}" for status in views.RunStatus}
    needed |= {f"role.{role.value}" for role in actors.Role}
    needed |= {f"command.{name}" for name in commands.COMMANDS}
    needed |= {f"error.{kind}" for kind in kinds(errors.PhonedeskError)}
    rules = {rule.name for name in PolicyName for rule in policies_of(name)}
    assert {rule for rule in rules if rule_words(lang, rule) == rule} == set()
    needed |= {f"gate.{decision.value}" for decision in Decision if decision is not Decision.ALLOW}
    assert needed - catalogue(lang).keys() == set()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_command_of_the_terminal_says_where_it_is_typed(lang: Lang) -> None:
    where = texts(lang).get("common.at_machine")
    assert texts(lang).get("common.no_worker").endswith(where)
    assert where not in texts(lang).get("access.stranger")  # says so itself
    assert where not in texts(lang).get("help.see")
    assert texts(lang).error(errors.HdcNotFound("x", key="devices_elsewhere")).count(where) == 1
    assert texts(lang).typed("phonedesk doctor").endswith(where)  # what a run says of itself
    assert where not in terminal_texts(lang).get("common.no_worker")


def test_a_missing_value_or_key_is_a_mistake_of_ours() -> None:
    texts = Texts("en")
    with pytest.raises(KeyError):
        texts.get("no.such")
    with pytest.raises(KeyError):
        texts.get("access.hello")
    assert texts.get("access.hello", name="<b>{x}") == "Hello, <b>{x}."


def test_an_error_is_told_in_the_persons_language() -> None:
    said = Texts("zh").error(errors.DeviceOffline("S1 is gone."))
    assert said.startswith("手机没有连接，或已离线。\n检查数据线或网络")
    assert "S1 is gone. Check the cable" in Texts("en").error(errors.DeviceOffline("S1 is gone."))


@pytest.mark.parametrize(("code", "lang"), [("zh-hans", "zh"), ("ZH", "zh"), ("de", "en"), ("", "en")])
def test_the_language_of_a_person(code: str, lang: str) -> None:
    assert language_of(code) == lang


def test_what_was_kept_without_a_language_is_told_in_chinese() -> None:
    assert [kept_language(kept) for kept in ("en", "zh", None, "")] == ["en", "zh", "zh", "zh"]


CHAT_ONLY = {"old_button", "old_schedule_button"}  # of buttons
ON_PAGES = {"console_link"}  # of the console, which names both


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("key", ["run.asked_elsewhere", "run.stuck_elsewhere"])
def test_who_has_no_bot_reads_first_what_they_can_type(lang: Lang, key: str) -> None:
    """The outcome of a run is kept as one text for the terminal and the chat."""
    said = agent_texts(lang)[key]
    assert -1 < said.find("phonedesk questions answer {id}") < said.find("/ask")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_error_sends_the_terminal_to_the_chat(lang: str) -> None:
    said = {key: in_terminal(text) for key, text in catalogue(lang).items() if key.startswith("errors.")}  # type: ignore[arg-type]
    left = {key.removeprefix("errors.") for key, text in said.items() if re.search(r"(?<![\w/])/(?!v1\b)[a-z]", text)}
    assert left - CHAT_ONLY - ON_PAGES == set()


def test_what_the_system_says_is_told_in_the_persons_language() -> None:
    for code, why in (
        (errno.EADDRINUSE, "已经被别的程序占用"),
        (errno.ENOENT, "没有这个文件夹或文件"),
        (errno.EMFILE, os.strerror(errno.EMFILE)),
    ):
        error = ConfigInvalid("x", key="port_used", port=80, why=OSError(code, os.strerror(code)))
        assert texts("zh").error(error).startswith(f"端口 80 用不了：{why}。")
    assert "内容不对" in texts("zh").error(ConfigInvalid("x", key="backup_unusable", name="f", why=ValueError("bad")))
