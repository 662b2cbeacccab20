"""What a run's model was asked can be asked once more, word for word; and nobody reads a secret in what is kept."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from agent_core.devices.base import Frame, Node, Window
from agent_core.geometry import Box
from agent_core.loop.defaults import NoStore
from agent_core.loop.recording import Recorder
from agent_core.loop.thinking import Thinker
from agent_core.loop.trajectory import (
    Message,
    ModelRequest,
    Tape,
    Trajectory,
    covered_picture,
    covered_request,
    picture_url,
    secrets_of,
    whole_messages,
    with_pictures,
)
from agent_core.model.client import ChatModel
from agent_core.model.fallback import Fallbacks, Mind
from agent_core.model.history import app_name
from agent_core.model.profile import ModelProfile, model_profile
from agent_core.model.prompt import build_messages
from agent_core.perception.observer import Observation
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import Reading, Source
from agent_core.perception.redaction import COVER, Redaction
from agent_core.ports import Event
from agent_core.session import Session, StepRecord
from agent_core.session import Status as RunStatus
from bot.tools.replay.timings import PHASES
from simulator.phone.scenario import ContactPart, MessagePart, PhonePart, Scenario
from simulator.phone.world import Side
from tests.support.lab import FINISH, SIZE, Lab, Story, do, lab
from tests.support.model_server import Chunks, Script, ScriptedModel, Status
from tests.support.ocr import needs_ocr

pytestmark = needs_ocr
CODE = "483920"
SCENARIO = Scenario(
    phone=PhonePart(size=SIZE),
    contacts=[
        ContactPart(name="11", number="20110011", history=[MessagePart(side=Side.THEM, text=f"验证码 {CODE}", ago=60)]),
    ],
)
TASK = "看看聊天里说了什么"


@dataclass
class Kept:
    """A trajectory store in memory."""

    rows: dict[int, str] = field(default_factory=dict)
    pictures: dict[str, bytes] = field(default_factory=dict)
    fails: bool = False

    async def asked(self, run_id: str, step: int, data: str, *, digest: str = "", picture: bytes | None = None) -> None:
        await asyncio.sleep(0.02)  # longer than the model needs
        if self.fails:
            raise OSError("no room")
        self.rows[step] = data
        if picture is not None:
            self.pictures.setdefault(digest, picture)

    @property
    def requests(self) -> list[ModelRequest]:
        return [ModelRequest.model_validate_json(data) for _, data in sorted(self.rows.items())]

    def messages(self) -> list[list[Message]]:
        return [
            with_pictures(one, lambda digest: picture_url(self.pictures[digest]))
            for one in whole_messages(self.requests)
        ]


@dataclass
class AfterIt(Story):
    """What happens in a run; a step is told only once it is stored what was asked."""

    kept: Kept = field(default_factory=Kept)

    async def event(
        self, run_id: str, event: Event, *, picture: bytes | None = None, session: Session | None = None
    ) -> None:
        if event.kind == "step" and not self.kept.fails:
            assert event.data["index"] in self.kept.rows
        await super().event(run_id, event, picture=picture, session=session)


WAIT = do('do(action="Wait", duration="0 seconds")')
MORE = 'do(action="Back")'
SCRIPT: list[Script] = [WAIT, Chunks([do('do(action="Home")') + MORE]), do("oops", "看不懂"), FINISH]


async def recorded(made: Lab, pictures: Any, *, fails: bool = False) -> tuple[Kept, list[list[Message]]]:
    kept = Kept(fails=fails)
    await made.open_chat()
    async with ScriptedModel(list(SCRIPT)) as model:
        session = await made.run(model, TASK, store=AfterIt(kept=kept), trajectory=Trajectory(kept, pictures))
        assert session.status is RunStatus.SUCCEEDED
        assert [step.index for step in session.steps] == [1, 2, 3, 4]
        assert all(step.timings.keys() == set(PHASES) for step in session.steps)
        for step in session.steps:
            seconds = [step.timings[name] for name in ("first_token", "thinking", "reply", "model")]
            assert seconds == sorted(seconds)
        assert [step.ignored for step in session.steps] == ["", MORE, "", ""]
        return kept, [request["messages"] for request in model.requests]


async def test_what_was_asked_is_kept_and_only_the_secrets_are_covered() -> None:
    async with lab(SCENARIO) as made:
        raw, sent = await recorded(made, "raw")
        covered, _ = await recorded(made, "covered")
        none, _ = await recorded(made, "off")
        lost, _ = await recorded(made, "covered", fails=True)  # a run does not fail for its recording

    assert raw.messages() == sent  # byte for byte, pictures too
    assert [request.kept > 0 for request in raw.requests] == [
        False,
        True,
        True,
        True,
    ]  # the system prompt is there once
    assert len(raw.pictures) == 2  # the chat, and the home screen; the same screen is kept once
    first = raw.requests[0]
    assert first.raw
    assert CODE in raw.rows[1]

    everything = json.dumps([covered.rows, covered.messages()], ensure_ascii=False)
    assert CODE not in everything
    assert COVER in covered.rows[1]
    assert all(reading.text for reading in covered.requests[0].readings)  # the rest of the page is there
    assert covered.requests[0].covered
    home = covered.requests[2].picture
    assert covered.pictures[home] == raw.pictures[raw.requests[2].picture]  # nothing to cover: as it was sent
    assert covered.pictures[covered.requests[0].picture] not in raw.pictures.values()

    # Of what is stored raw, people are shown as much as of the rest.
    shown = covered_request(first, secrets_of(first))
    assert CODE not in shown.model_dump_json()
    assert covered_picture(raw.pictures[first.picture], first) != raw.pictures[first.picture]

    assert none.pictures == {}
    assert with_pictures(whole_messages(none.requests)[0], lambda _: "")[-1]["content"][0]["type"] == "text"
    assert CODE not in str(none.rows)
    assert lost.rows == {}
    assert base64.b64encode(raw.pictures[first.picture]).decode() in sent[0][-1]["content"][0]["image_url"]["url"]


async def test_a_step_that_is_asked_again_takes_the_place_of_the_first_try() -> None:
    """As where another model stands in, which is asked in its own form."""
    kept, session = Kept(), Session(run_id="r", task="t")
    redaction = Redaction(ScreenReader(ocr=None, model=None), on=False)
    tape = Tape(session, Trajectory(kept), redaction)
    seen = Observation(Frame(Image.new("RGB", (20, 40)), "d", 0.0), Window("app"), None, (), None, 0.0)
    first, other = model_profile("autoglm-phone"), model_profile("general")
    system, task = {"role": "system", "content": "how"}, {"role": "user", "content": "task"}
    again, later = {"role": "user", "content": "asked otherwise"}, {"role": "user", "content": "later"}
    asked = [[system, task], [system, again], [system, again, later]]
    await tape.asked(seen, asked[0], "one", first)
    await tape.asked(seen, asked[1], "other", other)
    session.steps.append(StepRecord(index=1))
    await tape.asked(seen, asked[2], "one", first)
    await tape.settled()
    told = [(request.step, request.model, request.kept) for request in kept.requests]
    assert told == [(1, "other", 0), (2, "one", 2)]
    assert whole_messages(kept.requests) == asked[1:]


def page(texts: dict[str, int], package: str) -> tuple[Observation, list[Node]]:
    """A screen with these texts, each at its height."""
    nodes = [Node(Box(100, top, 900, top + 60), text, package=package) for text, top in texts.items()]
    frame = Frame(Image.new("RGB", (1080, 2400)), package + "".join(texts), 0.0)
    read = tuple(Reading(node.text, node.box, Source.TREE) for node in nodes)
    return Observation(frame, Window(package), None, read, None, 0.0), nodes


async def kept_of(session: Session, *pages: tuple[dict[str, int], str]) -> Kept:
    """What is kept of a run over these pages; each step's result tells all that it saw."""
    kept, profile = Kept(), model_profile("autoglm-phone")
    redaction = Redaction(ScreenReader(ocr=None, model=None))
    tape = Tape(session, Trajectory(kept), redaction)
    for texts, package in pages:
        seen, nodes = page(texts, package)
        redaction.saw(seen.frame, package, nodes)
        await tape.asked(
            seen,
            build_messages(
                session,
                current_app=app_name(package),
                picture=seen.frame,
                elements=seen.readings,
                profile=None,
                model=profile,
            ),
            "m",
            profile,
        )
        await tape.settled()
        reply = "<think>看到了 " + " ".join(texts) + "</think>" + do('do(action="Home")').partition("</think>")[2]
        session.steps.append(StepRecord(index=len(session.steps) + 1, reply=reply, result=" ".join(texts)))
        session.observation = ""
    return kept


async def test_what_is_covered_stands_in_no_text_of_what_is_kept() -> None:
    """Cut, short, told later, or in the state of the gate; the task and the names of things stay what they are."""
    long = f"您的验证码 {CODE}，请勿告诉他人。" + "退订回T，" * 80
    session = Session(run_id="r", task="打开支付宝看余额 6688")
    session.gate.pending_question, session.gate.delivered = f"验证码 {CODE} 是什么", [f"验证码是{CODE}"]
    qq, pay = "com.tencent.mobileqq", "com.eg.android.AlipayGphone"
    payment = {"付款码": 100, "current_app": 300, "last_observation": 400, "余额": 500, "88": 600, "¥ 5,120.77": 700}
    kept = await kept_of(session, ({long: 400, "发送": 900}, qq), (payment, pay), ({"首页": 100}, "app"))
    everything = json.dumps([kept.rows, whole_messages(kept.requests)], ensure_ascii=False)
    for secret in (CODE, "5,120.77", "5120.77"):
        assert secret not in everything
    first, second, third = whole_messages(kept.requests)
    assert '"text": "发送"' in first[-1]["content"][-1]["text"]  # and nothing more is covered than there is to be
    told = second[-1]["content"][-1]["text"]
    info = json.loads(told.partition("\n\n")[2])
    assert list(info) == ["current_app", "last_observation", "elements"]
    assert info["current_app"] == app_name(pay)
    assert [element["text"] for element in info["elements"]] == [COVER] * 6  # a page that is covered as a whole
    assert session.task in second[1]["content"][0]["text"]
    assert COVER in json.dumps(third, ensure_ascii=False)  # what was seen is told of, without it
    assert kept.requests[0].gate.pending_question == f"验证码 {COVER} 是什么"

    # A later attempt knows nothing of those screens, but what is told of them.
    later = await kept_of(session, ({"首页": 100}, "app"))
    assert CODE not in json.dumps(later.rows, ensure_ascii=False)


async def test_a_fallback_of_the_same_profile_is_the_one_that_was_asked() -> None:
    profile, told = model_profile("autoglm-phone"), []

    class Heard(Recorder):
        async def asked(self, seen: Observation, messages: Any, model: str, profile: ModelProfile) -> None:
            told.append((model, profile.name))

    seen, _ = page({}, "app")
    run = Session(run_id="r", task="t")
    async with ScriptedModel([Status(401)]) as dead, ScriptedModel([FINISH]) as alive:
        minds = [Mind(ChatModel(one.url, name, "key"), profile) for one, name in ((dead, "first"), (alive, "second"))]
        models = Fallbacks(minds)
        thinker = Thinker(models, profile=profile, elements=False)
        thought = await thinker.think(
            run, seen, None, Heard(run, NoStore(), Redaction(ScreenReader(ocr=None, model=None), on=False))
        )
        await models.close()
    assert thought.completion.model == "second"
    assert told == [("first", profile.name), ("second", profile.name)]
