"""Help: each command in each language and for each role, with nothing in it that is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from agent_core.texts import load_texts
from bot.channels.chat import commands, manual
from bot.channels.chat.conversation import Conversation
from bot.channels.chat.manual import listed
from bot.channels.chat.texts import LANGUAGES, Lang, texts
from bot.channels.chat.turn import Incoming, Person
from bot.desk.actors import Actor, ChatRef, Role
from bot.desk.desk import Desk
from knowledge.embedded import EmbeddedKnowledge
from tests.support.shop import Shop
from tests.support.talker import shown

ALL = [(name, role, lang) for name in commands.COMMANDS for role in Role for lang in LANGUAGES]


def test_both_languages_tell_the_same_forms() -> None:
    zh, en = (load_texts(manual.__name__, lang) for lang in LANGUAGES)
    told = {
        f"{name}.{form}_{part}"
        for name, forms in manual.FORMS.items()
        for form in forms
        for part in ("use", "does", "examples")
    }
    assert zh.keys() == en.keys() == told
    assert manual.FORMS.keys() == set(commands.COMMANDS)


@dataclass
class Asker:
    desk: Desk
    actor: Actor
    number: int = 0

    async def say(self, text: str) -> str:
        self.number += 1
        incoming = Incoming(
            "text",
            Person(self.actor.user_id, self.actor.name, self.actor.lang),
            ChatRef("telegram", self.actor.user_id),
            f"{self.actor.id}-{self.number}",
            text,
            message_id="5",
        )
        return shown(await Conversation(self.desk).handle(incoming))


@pytest.fixture
async def desk(shop: Shop) -> AsyncIterator[Desk]:
    store = EmbeddedKnowledge(shop.db)
    yield Desk(replace(shop.desk.context, store=store))
    await store.close()


async def asker(shop: Shop, desk: Desk, role: Role, lang: Lang) -> Asker:
    await shop.person(Role.OWNER, "Chief")
    person = await shop.person(role, "Anna")
    return Asker(desk, await desk.team.speak(person, lang))


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("role", Role)
async def test_each_command_is_told_with_what_this_role_may_do(shop: Shop, desk: Desk, role: Role, lang: Lang) -> None:
    who, words = await asker(shop, desk, role, lang), texts(lang)
    for name in commands.COMMANDS:
        said = await who.say(f"/help {name}")
        assert said.split("\n")[0] == f"/{name}"
        assert f"{words.get('help.least')}: " in said
        mine = [form for form in manual.forms(name, lang) if role.covers(form.least)]
        if role.covers(commands.LEAST.get(name, Role.VIEWER)):
            assert mine
            assert len([example for form in mine for example in form.examples]) >= (1 if len(mine) > 1 else 2)
            assert all(form.use in said and form.does in said for form in mine)
        else:
            assert words.get("help.not_yours", role=words.get(f"role.{role.value}")) in said
        others = [form for form in manual.forms(name, lang) if not role.covers(form.least)]
        assert not [form.use for form in others if f"{form.use}: " in said]


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("role", Role)
@pytest.mark.slow
async def test_no_example_is_refused_and_each_is_understood(shop: Shop, desk: Desk, role: Role, lang: Lang) -> None:
    who, words = await asker(shop, desk, role, lang), texts(lang)
    denied = words.find("errors.role_denied", "").split("\n")[0]
    for name in commands.usable(role, plans=True):
        for form in manual.forms(name, lang):
            for example in form.examples if role.covers(form.least) else ():
                meant = commands.parse(example)
                assert isinstance(meant, commands.Command), example
                assert meant.name == name
                said = await who.say(example)
                assert said, example
                misread = [words.find(f"usage.{name}", "–"), words.find(f"{name}.usage", "–")]
                assert not [usage for usage in misread if said.startswith(usage)], example
                assert not said.startswith(denied), example


@pytest.mark.parametrize(("name", "role", "lang"), ALL)
def test_the_list_and_the_menu_promise_no_more_than_the_role_may_do(name: str, role: Role, lang: Lang) -> None:
    words = texts(lang)
    promised = {line.label: line.text for line in manual.help_lines(words, role, plans=True)}
    menu = dict(listed(role, lang, plans=True))
    if name not in commands.usable(role, plans=True):
        assert f"/{name}" not in promised
        assert name not in menu
        return
    assert menu[name] == words.get(manual.summary_key(name, role))
    assert name == "start" or promised[f"/{name}"] == menu[name]
    whole = all(role.covers(least) for least in manual.FORMS[name].values())
    assert (menu[name] == words.get(f"command.{name}")) == (whole or name not in manual.LOOKED_AT)


async def test_a_word_that_is_nearly_a_command_is_asked_for_again(shop: Shop, desk: Desk) -> None:
    who = await asker(shop, desk, Role.OPERATOR, "en")
    assert await who.say("/help statsu") == "There is no command statsu. Did you mean /help status?"
    assert "Chinese: 状态" in await who.say("/help 状态")
