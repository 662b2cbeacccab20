"""Killed at any instant of a reply: in the end the customer has the answer once, and the phone is as it was."""

from __future__ import annotations

import pytest

from agent_core.session import Answer, Question, QuestionKind, Session, Status
from tests.agent_core.reply.dying import ACTS, REPLY, TELLING, WRITES, Killed, Reaper, mortal, sensible
from tests.support.lab import ANSWER, Lab, People
from tests.support.model_server import ScriptedModel


class Truthful(People):
    """Says of a reply what is to be seen on the phone."""

    def __init__(self, lab: Lab) -> None:
        super().__init__()
        self.lab = lab

    async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer | None:
        self.asked.append(question)
        if question.kind is not QuestionKind.DELIVERY_UNKNOWN:
            return None
        return Answer(choice="arrived" if self.lab.sent else "not_arrived", by="店长")


async def attempt(lab: Lab, session: Session | None, reaper: Reaper | None = None) -> Session:
    reaper = reaper or Reaper()
    device, ledger, store = lab.another(), lab.ledger, lab.story
    async with ScriptedModel([sensible] * 6) as model:
        return await lab.run(
            model,
            session=session,
            device=mortal(device, reaper, ACTS),
            ledger=mortal(ledger, reaper, WRITES),
            store=mortal(store, reaper, TELLING),
        )


def assert_answered_once(lab: Lab, session: Session) -> None:
    report = lab.phone.report()
    assert session.status is Status.SUCCEEDED, session.message
    assert report["sent"] == {"11": [ANSWER]}
    assert report["drafts"] == {}
    assert "sogou" in report["input_method"]
    assert not [name for _, name in lab.phone.settings if name.startswith("phonedesk")]


async def test_what_a_reply_does_to_the_world(bench_lab: Lab) -> None:
    await bench_lab.open_chat()
    reaper = Reaper()
    session = await attempt(bench_lab, None, reaper)
    assert_answered_once(bench_lab, session)
    assert reaper.calls[: len(REPLY)] == REPLY


@pytest.mark.rotating(parts=5)
@pytest.mark.parametrize("new_run", [False, True], ids=["next_attempt", "new_run"])
@pytest.mark.parametrize("at", range(1, len(REPLY) + 1), ids=lambda n: f"{n}_{REPLY[n - 1]}")
async def test_killed_before(bench_lab: Lab, at: int, new_run: bool) -> None:
    bench_lab.people = Truthful(bench_lab)
    await bench_lab.open_chat()
    with pytest.raises(Killed):
        await attempt(bench_lab, None, Reaper(at=at))
    saved = bench_lab.story.saved
    assert saved or at <= REPLY.index("save") + 1  # whoever comes after Send knows what was on its way
    session = await attempt(bench_lab, Session.model_validate_json(saved) if saved and not new_run else None)
    assert_answered_once(bench_lab, session)
    if saved and not new_run:
        assert [reply.text for reply in session.replies] == [ANSWER]
        assert "reply" in bench_lab.story.kinds()
