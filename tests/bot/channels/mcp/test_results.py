"""Why a session rests, and what was done, as clients are told."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from agent_core.actions import types
from agent_core.loop.outcome import said_at_limit
from agent_core.session import Question, QuestionKind, Session, Status, StepRecord
from bot.channels.mcp.results import LoggedStep, ResultPicture, StopReason, TaskResult, gui_action, stop_reason

FINISHED = StepRecord(index=1, action={"kind": "finish"}, thinking="x")
QUESTION = Question(id="q", kind=QuestionKind.INTERACT, text="?")


def session(status: Status, **values: Any) -> Session:
    return Session(run_id="r", task="t", status=status, **values)


def at_limit() -> Session:
    made = session(Status.FAILED, steps=[FINISHED], max_steps=1)
    made.message = said_at_limit(made)
    return made


@pytest.mark.parametrize(
    ("rests", "reason"),
    [
        (session(Status.SUCCEEDED), StopReason.COMPLETED),
        (session(Status.STOPPED), StopReason.STOPPED),
        (session(Status.WAITING, question=QUESTION), StopReason.NEEDS_REPLY),
        (session(Status.RUNNING), StopReason.STOPPED),  # held by a person
        (session(Status.FAILED, steps=[FINISHED]), StopReason.ABORTED),
        (session(Status.FAILED, steps=[FINISHED], error_kind="device.offline"), StopReason.ERROR),
        (session(Status.FAILED, steps=[FINISHED], error_kind="device.screen_off"), StopReason.SCREEN_OFF),
        (session(Status.FAILED), StopReason.ERROR),
        (at_limit(), StopReason.MAX_STEPS),
    ],
)
def test_reasons(rests: Session, reason: StopReason) -> None:
    assert stop_reason(rests) is reason


def test_every_action_has_a_form() -> None:
    examples: dict[str, Any] = {
        "app": "QQ",
        "element": (1, 2),
        "start": (1, 2),
        "end": (3, 4),
        "text": "x",
        "key": "enter",
    }
    union = get_args(types.Action)[0]
    for kind in get_args(union):
        needed = {name: examples[name] for name, field in kind.model_fields.items() if field.is_required()}
        assert gui_action(kind(**needed))["action"]
    assert gui_action(types.Finish(message="no", success=False)) == {"action": "ABORT", "value": "no"}


def test_pictures_stand_beside_the_text_not_in_it() -> None:
    logs = [LoggedStep(1, {"action": "WAIT"}, ResultPicture(b"one", "first")), LoggedStep(2, {"action": "WAIT"})]
    result = TaskResult("S1", (1, 2), "s", StopReason.COMPLETED, task="t", logs=logs, final=ResultPicture(b"two"))
    whole, told = result.data(), result.in_words()
    assert whole["intermediate_logs"][0]["screenshot_b64_url"] == "data:image/jpeg;base64,b25l"
    assert [log["screenshot_b64_url"] for log in told["intermediate_logs"]] == ["image 1", None]
    assert (told["final_screenshot_b64_url"], len(result.shots)) == ("image 2", 2)
    assert set(whole) == set(told)
