"""A sensitive tap: what a person is shown of it, and where their yes is used."""

from __future__ import annotations

import asyncio
import io
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from agent_core.devices.base import Key
from agent_core.session import Answer, Question, QuestionKind, Session, Status
from tests.support.lab import FINISH, Lab, People, do
from tests.support.model_server import Script, ScriptedModel

SETTINGS = do('do(action="Launch", app="设置")')
TAP = do('do(action="Tap", element=[500,300], message="打开蓝牙")')
AGAIN = do('do(action="Tap", element=[501,299], message="请允许我打开蓝牙")')


@dataclass
class Looking(People):
    shown: list[bytes] = field(default_factory=list)

    async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer | None:
        self.shown += [picture] if picture else []
        return await super().ask(session, question, picture=picture)


async def test_a_yes_that_comes_after_the_phone_went_home(bench_lab: Lab) -> None:
    """At the same point of the launcher nobody has allowed anything; back in the app it is done unasked, and once."""
    people = bench_lab.people = Looking()
    async with ScriptedModel([SETTINGS, TAP]) as model:
        session = await bench_lab.run(model, "打开蓝牙")
    assert session.status is Status.WAITING
    assert "模型的说法：“打开蓝牙”" in people.asked[0].text
    with Image.open(io.BytesIO(people.shown[0])) as shown:
        x, y = shown.width // 2, round(shown.height * 0.3)
        colors = shown.convert("RGB").crop((x - 30, y - 30, x + 30, y + 30)).getcolors(1 << 24) or []
    assert any(isinstance(color, tuple) and color[0] > 200 > 100 > color[1] for _, color in colors)  # the mark
    await bench_lab.device.key(Key.HOME)
    session = Session.model_validate_json(bench_lab.story.saved)
    session.answered = Answer(choice="allow", by="店长")
    people.answers = [Answer(choice="deny", by="店长")]
    bench_lab.phone.report()["taps"].clear()
    going: list[asyncio.Task[None]] = []

    def as_the_phone_goes_home(request: dict[str, Any]) -> str:
        going.append(asyncio.create_task(bench_lab.phone.key("HOME")))
        return AGAIN

    script: list[Script] = [TAP, SETTINGS, as_the_phone_goes_home, SETTINGS, AGAIN, AGAIN]
    async with ScriptedModel(script) as model:
        session = await bench_lab.run(model, "打开蓝牙", session=session)
        assert "“com.android.settings”里这一页的这个位置" in str(model.requests[0]["messages"][-1])
    done = [(step.action["kind"], step.package, step.ok) for step in session.steps[2:] if step.action]
    assert done == [
        ("tap", "com.android.launcher3", False),
        ("launch", "com.android.launcher3", True),
        ("launch", "com.android.launcher3", True),
        ("tap", "com.android.settings", True),
        ("tap", "com.android.settings", False),
    ]
    assert [verdict.policy for step in session.steps for verdict in step.verdicts] == ["fresh_frame"]
    assert [question.kind for question in session.questions] == [QuestionKind.SENSITIVE_TAP] * 3
    assert [(tap["on"], tap["package"]) for tap in bench_lab.phone.report()["taps"]] == [
        ("row", "com.android.settings")
    ]
    assert session.approval is None


async def test_what_was_allowed_and_changes_while_the_model_thinks_is_asked_about_again(bench_lab: Lab) -> None:
    tap = do('do(action="Tap", element=[500,500], message="付 20 元")')
    people = bench_lab.people = People([Answer(choice="allow", by="店长"), Answer(choice="deny", by="店长")])
    await bench_lab.open_chat()

    def as_it_changes(request: dict[str, Any]) -> str:
        bench_lab.phone.receive("11", "合计 2000 元")
        return tap

    script: list[Script] = [tap, as_it_changes, tap, FINISH]
    taps = bench_lab.phone.report()["taps"]
    async with ScriptedModel(script) as model:
        session = await bench_lab.run(model, "打开蓝牙")
    assert [verdict.policy for step in session.steps for verdict in step.verdicts] == ["fresh_frame"]
    assert [step.ok for step in session.steps] == [False, False, False, True]
    assert len(people.asked) == 2
    assert bench_lab.phone.report()["taps"] == taps
