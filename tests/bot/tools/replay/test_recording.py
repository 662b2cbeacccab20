"""What another model is told of a run's past, which is written anew from its steps."""

from __future__ import annotations

from agent_core.devices.base import Window
from agent_core.loop.trajectory import ModelRequest
from agent_core.model.profile import model_profile
from agent_core.session import Session, StepRecord
from bot.desk.history_views import RecordedStep, RecordingView
from bot.desk.views import RunStatus, RunView
from bot.tools.replay.dry_run import messages_for
from bot.tools.replay.recording import covered


def test_no_other_model_is_told_a_secret_of_a_step_before() -> None:
    answer = '<answer>do(action="Home")</answer>'
    first = StepRecord(
        index=1,
        reply=f"<think>短信里写着 483920</think>{answer}",
        result="验证码 483920，共 2026 字",
        asked={"kind": "home"},
    )
    steps = [first, StepRecord(index=2, reply=answer, result="ok", asked={"kind": "home"}), StepRecord(index=3)]
    asked = ModelRequest(step=3, model="m", profile="p", dialect="auto", window=Window("app"), size=(108, 240))
    run = RunView(id="r", task="t", status=RunStatus.SUCCEEDED)
    view = RecordingView(1, run, Session(run_id="r", task="t", steps=steps), (RecordedStep(steps[2], asked),))
    profile = model_profile("general")
    told = str(messages_for(covered(view).session, view.steps[0], asked, profile))
    assert "483920" not in told
    assert told.count("▒▒▒") >= 2
    assert "483920" in str(messages_for(view.session, view.steps[0], asked, profile))  # with --raw
