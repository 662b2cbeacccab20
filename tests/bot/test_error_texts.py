"""Each kind of error is told in the person's language, with what to do about it."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from agent_core import errors
from agent_core.errors import ModelNames
from agent_core.model.client import ChatModel
from agent_core.model.failures import Failures
from agent_core.proxies import ProxySetting
from agent_core.texts import load_texts, told
from bot.channels.chat.command_names import in_terminal
from bot.channels.chat.run_cards import error_lines
from bot.channels.chat.texts import LANGUAGES, Lang, texts
from knowledge.http_client import SAID
from tests.support.model_server import ScriptedModel
from tests.support.model_server import Status as HttpStatus
from tests.support.raised import name_of, of_a_row

ROOT = Path(errors.__file__).parents[1]
TEXTS = (
    "agent_core.texts",
    "bot.channels.chat.texts",
    "bot.channels.chat.manual",
    "bot.app.doctor.texts",
    "bot.channels.cli.terminal.texts",
)
OF_ITS_OWN = {"security"}  # each says what to do in words of its own
NOTHING_TO_DO = {"device.tree"}  # the picture is used instead; nobody is told


def tree(of: type[errors.PhonedeskError]) -> Iterator[type[errors.PhonedeskError]]:
    for kind in of.__subclasses__():
        if kind.__module__ == errors.__name__:
            yield kind
        yield from tree(kind)


def of_kind(kind: str) -> type[errors.PhonedeskError]:
    return next(one for one in tree(errors.ModelError) if one.kind == f"model.{kind}")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_each_kind_is_told_with_what_to_do(lang: Lang) -> None:
    words = texts(lang)
    kinds = {kind.kind for kind in tree(errors.PhonedeskError)}
    assert len(kinds) > 30
    assert [kind for kind in kinds if not words.find(f"error.{kind}", "")] == []
    # What a run says of a model is what a card says of its kind: then it is not said twice.
    for kind in ("unreachable", "timeout", "auth", "quota", "quota.spent", "unknown", "format"):
        assert error_lines(f"model.{kind}", words, told(of_kind(kind)("x"), lang)) == []
    without = {kind for kind in kinds if not words.find(f"advice.{kind}", "")}
    assert without - OF_ITS_OWN == NOTHING_TO_DO


@pytest.mark.parametrize("lang", LANGUAGES)
def test_nobody_is_told_to_call_adb(lang: Lang) -> None:
    """People need no adb on their PATH: what it would tell them our own commands do."""
    called = re.compile(r"\badb (?:connect|devices|disconnect|install|kill-server|pull|push|shell)\b")
    texts_of = {package: load_texts(package, lang) for package in TEXTS}
    found = {key for package in texts_of.values() for key, text in package.items() if called.search(text)}
    assert found == {"served.phone"}, "that is for who serves a virtual phone to an adb client"
    assert [kind.kind for kind in tree(errors.PhonedeskError) if called.search(kind.default_advice)] == []
    gone = errors.DeviceOffline("No phone is attached.", key="no_phones")
    assert "phonedesk devices" in in_terminal(texts(lang).error(gone))


def test_no_text_names_a_page_that_came_with_the_source_alone() -> None:
    """The installed package has no folder of documentation, and it has no address on the web."""
    folders = [file.parent for file in ROOT.glob("*/**/en.toml") if file.parent.name in {"texts", "manual"}]
    assert len(folders) >= len(TEXTS)
    packages = [".".join(folder.relative_to(ROOT).parts) for folder in folders if ".venv" not in folder.parts]
    of_files = {
        f"{of} {key}": text for of in packages for lang in LANGUAGES for key, text in load_texts(of, lang).items()
    }
    assert [key for key, text in of_files.items() if "docs/" in text] == []
    code = [
        file
        for of in ("agent_core", "bot", "knowledge", "scheduler", "simulator", "storage")
        for file in (ROOT / of).rglob("*.py")
    ]
    advice = re.compile(r"advice=f?\(?\s*\"[^\"]*docs/")
    assert [file.name for file in code if advice.search(file.read_text(encoding="utf-8"))] == []


# What people are not told of, or not by a text of their language, and why.
TO_THE_MODEL = {"ActionParseError", "Incomplete", "ActionFailed", "CallStopped"}
# Errors of interfaces, in English.
OF_PROGRAMS = ("bot/channels/mcp/", "simulator/model/", "bot/tools/eval/scripted.py:BadRequest")
# Their texts are made of the parts that are wrong, each of which has a text (``wrong.…``), or in their constructor.
OF_PARTS = {"OwnWrong", "SettingsWrong", "ScenarioInvalid", "BrokenFiles", "ExtraMissing", "ModelLimit", "OtherRelease"}
HANDED_ON = {  # what another error has said already
    ("bot/tools/eval/suite.py", "PhonedeskError"),
    ("bot/app/settings/loading.py", "ConfigInvalid"),
    ("scheduler/runs/human.py", "LeaseLost"),
    ("agent_core/devices/wda/client.py", "WdaRefusal"),  # it has its key itself
}


def raised() -> Iterator[tuple[str, str, int, ast.Call]]:
    """Every error of ours that is made anywhere: file, class, line and the call."""
    trees = {
        file.relative_to(ROOT).as_posix(): ast.parse(file.read_text(encoding="utf-8"))
        for part in ("agent_core", "bot", "knowledge", "scheduler", "simulator", "storage")
        for file in sorted((ROOT / part).rglob("*.py"))
    }
    ours = {"PhonedeskError"}
    classes = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for _ in range(5):  # as deep as the tree of errors is
        ours |= {one.name for one in classes if any(name_of(base) in ours for base in one.bases)}
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and name_of(node.func) in ours:
                yield file, name_of(node.func), node.lineno, node


@pytest.mark.slow
def test_whatever_people_are_told_of_has_a_text_in_each_language_and_its_values() -> None:
    """No error that a person sees is told in another language, as one without a key would be."""
    without, unknown, unfilled = [], [], []
    for file, name, line, call in raised():
        given = {word.arg: word.value for word in call.keywords}
        if (
            name in TO_THE_MODEL | OF_PARTS
            or f"{file}:{name}".startswith(OF_PROGRAMS)
            or (file, name) in HANDED_ON
            or of_a_row(call)
        ):
            continue
        if "key" not in given and None not in given:
            without.append(f"{file}:{line} {name}")
        key = given.get("key")
        for value in [key.value] if isinstance(key, ast.Constant) and isinstance(key.value, str) else []:
            for lang in LANGUAGES:
                text = texts(lang).find(f"errors.{value}", "")
                if not text:
                    unknown.append(f"{file}:{line} {value}")
                elif None not in given and not placeholders(text) <= given.keys():
                    unfilled.append(f"{file}:{line} {value}: {placeholders(text) - given.keys()}")
    assert (without, unknown, unfilled) == ([], [], [])
    assert [key for _, key in SAID.values() for lang in LANGUAGES if not texts(lang).find(f"errors.{key}", "")] == []


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_failed_model_is_told_in_one_language(lang: Lang) -> None:
    made = Failures("http://127.0.0.1/v1", "m-1", "", ProxySetting("X").route("http://127.0.0.1/v1"))
    for error in (TimeoutError(), httpx2.ConnectError("x"), ValueError("x")):
        told_of = texts(lang).error(made.of(error))
        letters = re.sub(r"PHONEDESK_\w+|OpenAI|m-1|http://127\.0\.0\.1/v1|\S*phonedesk (?:doctor|…)", "", told_of)
        assert bool(re.search(r"[\u4e00-\u9fff]", letters)) == (lang == "zh"), told_of
        assert bool(re.search(r"[A-Za-z]{2}", letters)) == (lang == "en"), told_of
    others = (made.empty(), made.broke_off())
    both = errors.ModelFormat("x", key="model_empty", model="m-0", others=others)
    assert texts(lang).error(both).count("m-1") == 2


@pytest.mark.parametrize("lang", LANGUAGES)
def test_an_error_names_the_option_that_was_given(lang: Lang) -> None:
    route = ProxySetting("X").route("http://127.0.0.1/v1")
    error = Failures("http://127.0.0.1/v1", "m", "", route, ModelNames(base_url="--endpoint")).of(
        httpx2.ConnectError("x")
    )
    assert "--endpoint" in texts(lang).error(error)
    assert "PHONEDESK_MODEL__BASE_URL" not in texts(lang).error(error)
    assert error_lines(error.kind, texts(lang), told(error, lang)) == []  # nor is it said beside that


@pytest.mark.parametrize("lang", LANGUAGES)
async def test_a_bare_status_is_told_by_its_name_and_a_missing_version_with_the_right_address(lang: Lang) -> None:
    asked = [{"role": "user", "content": "?"}]
    async with ScriptedModel([HttpStatus(404, "")], repeat_last=True) as server:
        for url, hint in ((server.url, False), (server.url.removesuffix("/v1"), True)):
            model = ChatModel(url, "m", names=ModelNames(base_url="--endpoint"))
            with pytest.raises(errors.ModelUnknown) as failure:
                await model.complete(asked)
            await model.close()
            said = texts(lang).error(failure.value)
            assert "404" in said
            assert "–" not in said
            assert (server.url in said) == hint, said
            assert "--endpoint" in said
