from __future__ import annotations

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from agent_core import errors
from agent_core.retry import RETRIES, delays_for, with_retries


class Attempts:
    """Fails with each of ``failures`` in turn, then gives 7; ``waited`` are the waits."""

    def __init__(self, *failures: BaseException) -> None:
        self.left = list(failures)
        self.calls = 0
        self.waited: list[float] = []

    async def __call__(self) -> int:
        self.calls += 1
        if self.left:
            raise self.left.pop(0)
        return 7

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)


class LaterError(errors.ModelQuota):
    def __init__(self, retry_after: float | None) -> None:
        super().__init__("later")
        self.retry_after = retry_after


def every(error: type[errors.PhonedeskError] = errors.PhonedeskError) -> Iterator[type[errors.PhonedeskError]]:
    yield error
    for child in error.__subclasses__():
        yield from every(child)


async def test_it_is_tried_again_with_the_waits_of_the_table() -> None:
    attempts = Attempts(errors.DeviceOffline("1"), errors.DeviceOffline("2"), errors.DeviceOffline("3"))
    assert await with_retries(attempts, sleep=attempts.sleep) == 7
    assert attempts.waited == [1, 2, 4]


async def test_after_the_last_try_the_error_comes_out() -> None:
    last = errors.ModelTimeout("3")
    attempts = Attempts(errors.ModelTimeout("1"), errors.ModelTimeout("2"), last, errors.ModelTimeout("4"))
    with pytest.raises(errors.ModelTimeout) as caught:
        await with_retries(attempts, sleep=attempts.sleep)
    assert caught.value is last
    assert last.retried
    assert (attempts.calls, attempts.waited) == (3, [2, 4])


async def test_retries_do_not_multiply() -> None:
    inner = Attempts(*[errors.KnowledgeUnreachable(str(number)) for number in range(9)])

    async def outer() -> int:
        return await with_retries(inner, sleep=inner.sleep)

    with pytest.raises(errors.KnowledgeUnreachable):
        await with_retries(outer, sleep=inner.sleep)
    assert inner.calls == 3


@pytest.mark.parametrize(
    "error",
    [
        errors.ModelAuth("x"),
        errors.ModelRefused("x"),
        errors.InputRejected("x"),
        errors.LeaseLost("x"),
        errors.ScreenOff("x"),
        errors.InputDenied("x"),
        errors.ConfigMissing("x"),
        errors.KnowledgeAuth("x"),
        errors.ActionParseError("x"),
        ValueError("x"),
        KeyboardInterrupt(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_what_would_fail_again_is_not_tried_again(error: BaseException) -> None:
    attempts = Attempts(error)
    with pytest.raises(type(error)):
        await with_retries(attempts, sleep=attempts.sleep)
    assert (attempts.calls, attempts.waited) == (1, [])


@pytest.mark.parametrize(("retry_after", "waited"), [(30.0, 30.0), (0.0, 0.0), (None, 2)])
async def test_the_wait_that_was_asked_for(retry_after: float | None, waited: float) -> None:
    attempts = Attempts(LaterError(retry_after))
    assert await with_retries(attempts, sleep=attempts.sleep) == 7
    assert attempts.waited == [waited]


async def test_a_pause_that_is_longer_than_the_patience_is_not_made() -> None:
    attempts = Attempts(*[errors.KnowledgeUnreachable(str(number)) for number in range(3)])
    with pytest.raises(errors.KnowledgeUnreachable, match="1") as caught:
        await with_retries(attempts, sleep=attempts.sleep, patience=lambda: 1.5)
    assert (attempts.calls, attempts.waited, caught.value.retried) == (2, [1], True)
    later = Attempts(LaterError(30.0))
    with pytest.raises(LaterError):
        await with_retries(later, sleep=later.sleep, patience=lambda: 29.0)
    assert later.waited == []


async def test_each_error_has_its_own_count() -> None:
    """The waits of the error that came decide, by how often it was tried at all."""
    attempts = Attempts(errors.DeviceOffline("1"), errors.DeviceOffline("2"), errors.CommandFailed("3"))
    with pytest.raises(errors.CommandFailed):
        await with_retries(attempts, sleep=attempts.sleep)
    assert attempts.waited == [1, 2]


def test_the_nearest_class_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    for number, row in enumerate((errors.DeviceError, errors.ModelQuota, errors.SecurityError)):
        monkeypatch.setitem(RETRIES, row, (number + 20,))
    assert delays_for(errors.CommandFailed("x")) == (20,)
    assert delays_for(LaterError(None)) == (21,)
    assert delays_for(errors.InputRejected("x")) == (22,)
    assert delays_for(RuntimeError()) == ()


def test_the_waits_of_one_call_are_ten_seconds_at_most() -> None:
    for error in every():
        assert sum(delays_for(error.__new__(error))) <= 10 if error is not LaterError else True


async def test_a_new_try_at_the_phone_is_logged() -> None:
    attempts = Attempts(errors.DeviceOffline("gone"), errors.KnowledgeUnreachable("gone"))
    with capture_logs() as lines:
        assert await with_retries(attempts, sleep=attempts.sleep) == 7
    assert [(line["event"], line["kind"], line["seconds"]) for line in lines] == [
        ("phone_tried_again", "device.offline", 1)
    ]
