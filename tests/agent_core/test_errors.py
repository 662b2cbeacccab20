from __future__ import annotations

from collections.abc import Iterator

from agent_core import errors
from agent_core.errors import PhonedeskError
from bot.app.settings.layers import Settings


def every(error: type[PhonedeskError] = PhonedeskError) -> Iterator[type[PhonedeskError]]:
    for child in error.__subclasses__():
        if child.__module__ == errors.__name__:
            yield child
            yield from every(child)


def test_kinds_are_single_and_show_the_tree() -> None:
    kinds = [error.kind for error in every()]
    assert len(kinds) > 30
    assert len(set(kinds)) == len(kinds)
    for error in every():
        parent = error.__mro__[1]
        assert issubclass(parent, PhonedeskError)
        if parent is not PhonedeskError:
            assert error.kind.startswith(f"{parent.kind}.")


def test_an_error_says_what_and_what_to_do() -> None:
    offline = errors.DeviceOffline("a is gone.")
    assert offline.message == "a is gone."
    assert str(offline) == f"a is gone. {errors.DeviceOffline.default_advice}"
    assert str(errors.DeviceOffline("a is gone.", advice="Look.")) == "a is gone. Look."
    assert str(errors.DeviceOffline("a is gone.", advice="")) == "a is gone."
    assert str(errors.RateLimited("Too often.")) == "Too often."
    assert not offline.retried


def test_what_the_operator_can_set_is_named() -> None:
    for error in every():
        for word in error.default_advice.split():
            if word.startswith("PHONEDESK_"):
                section, _, name = word.strip(".,;:").removeprefix("PHONEDESK_").lower().partition("__")
                field = Settings.model_fields[section]
                assert field.annotation is not None
                assert not name or name in field.annotation.model_fields
