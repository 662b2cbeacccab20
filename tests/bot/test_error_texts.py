"""Each kind of error is told in the person's language, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent_core import errors
from agent_core.texts import say
from bot.chat.cards import error_lines
from bot.chat.texts import LANGUAGES, Lang, texts

OF_ITS_OWN = {"security"}  # each says what to do in words of its own
NOTHING_TO_DO = {"device.tree"}  # the picture is used instead; nobody is told


def tree(of: type[errors.PhonedeskError]) -> Iterator[type[errors.PhonedeskError]]:
    for kind in of.__subclasses__():
        if kind.__module__ == errors.__name__:
            yield kind
        yield from tree(kind)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_each_kind_is_told_with_what_to_do(lang: Lang) -> None:
    words = texts(lang)
    kinds = {kind.kind for kind in tree(errors.PhonedeskError)}
    assert len(kinds) > 30
    assert [kind for kind in kinds if not words.find(f"error.{kind}", "")] == []
    # What a run says of a model is what a card says of its kind: then it is not said twice.
    for kind in ("unreachable", "timeout", "auth", "quota", "quota.spent", "unknown", "format"):
        assert error_lines(f"model.{kind}", words, say(lang, f"model.{kind}", error="x")) == []
    without = {kind for kind in kinds if not words.find(f"advice.{kind}", "")}
    assert without - OF_ITS_OWN == NOTHING_TO_DO
