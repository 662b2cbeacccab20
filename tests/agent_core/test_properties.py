"""What must hold whatever comes from outside: random replies of the model, screens, records, people and crashes.

Each case is a whole story (``stories.Plan``); a failure prints the smallest one that hypothesis finds, and how to
repeat it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain

import pytest
import structlog
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agent_core.perception.readings import BubbleState, Side, Source
from agent_core.ports import Provenance, ReplyState
from agent_core.session import Status
from agent_core.texts import say
from tests.agent_core.paper import AI, CROSSED, LAUNCHER, QQ, Flaws, Happening
from tests.agent_core.stories import (
    ANSWERS,
    BAIT,
    CONTACT,
    TOPICS,
    Crash,
    Plan,
    Told,
    claimed,
    parts_of,
    tell,
    topic_of,
)
from tests.support.days import examples

pytestmark = pytest.mark.slow

FINISHED = "我觉得可以了"  # the model's own word
REPLIES = (
    'do(action="Launch", app="QQ")',
    'do(action="Launch", app="支付宝")',
    f'do(action="Launch", app="{AI}")',
    *(f"tap {name}" for name in ("row:11", "row:110", f"row:{AI}", "search", "send", "input", "more", "bubble")),
    *(
        f"tap {name}"
        for name in ("ai", "call", "pay", "icon:支付宝", "icon:QQ", "popup:update", "popup:close", "title")
    ),
    *(f'do(action="Type", text="{text}")' for text in (CONTACT, "110", ANSWERS["发货"], "您好，马上为您处理", BAIT)),
    f'do(action="Type_Name", text="{CONTACT}")',
    f'do(action="Type", text="{TOPICS["保修"]}")',
    'do(action="Back")',
    'do(action="Home")',
    'do(action="Hot_Key", key="ENTER")',
    'do(action="Wait", duration="1 seconds")',
    'do(action="Swipe", start=[500,300], end=[500,700])',
    'do(action="Swipe", start=[500,700], end=[500,300])',
    'do(action="Long Press", element=[300,500])',
    'do(action="Double Tap", element=[800,500])',
    'do(action="Interact", question="选哪个？")',
    'do(action="Take_over", message="请登录")',
    f'finish(message="{FINISHED}")',
    *(f'do(action="GET_KNOWLEDGE_DATA", query="{words}")' for words in (*TOPICS.values(), " ", BAIT)),
    'do(action="Tap", element=[500',
    "我不知道该做什么",
)
KINDS = ("sure", "unsure", "none", "down", "down once", "rivals", "second", "composed")
ASKED = st.sampled_from([*TOPICS, *TOPICS, "picture", "在吗", BAIT])
HAPPENINGS = st.one_of(
    st.builds(
        Happening,
        at=st.integers(1, 45),
        what=st.just("write"),
        contact=st.sampled_from([CONTACT, CONTACT, "110"]),
        text=st.sampled_from([*TOPICS.values(), BAIT, "快点"]),
    ),
    st.builds(
        Happening,
        at=st.integers(1, 45),
        what=st.sampled_from(["colleague", "recall", "home", "pay", "popup", "touch", "draft"]),
        text=st.just("稍等，我看一下"),
    ),
    st.builds(
        Happening, at=st.integers(1, 45), what=st.just("goto"), contact=st.sampled_from([CONTACT, "110", "小11"])
    ),
)
SENDS = ("ok", "ignored", "red", "late", "spin", "vanish", "crossed")
FLAWS = st.builds(
    Flaws,
    # The customer writes in the very moment of one Send, not of several.
    sends=st.lists(st.sampled_from(SENDS), max_size=3).filter(lambda sends: sends.count("crossed") <= 1).map(tuple),
    types=st.lists(st.sampled_from(["ok", "mute", "cut"]), max_size=3).map(tuple),
    acts=st.lists(st.tuples(st.integers(1, 30), st.sampled_from(["before", "after"])), max_size=2).map(tuple),
    reads=st.lists(st.tuples(st.integers(1, 25), st.sampled_from(["blind", "unsure", "no_draft"])), max_size=2).map(
        tuple
    ),
    source=st.sampled_from([Source.TREE, Source.OCR]),
    enter_sends=st.booleans(),
)
CRASHES = st.lists(st.builds(Crash, at=st.integers(1, 30), new_run=st.booleans()), min_size=1, max_size=2).map(tuple)


def plans(**parts: st.SearchStrategy[object]) -> st.SearchStrategy[Plan]:
    """Plans of which these parts are drawn; the others are as usual."""
    always = {
        "asked": st.lists(ASKED, min_size=1, max_size=3, unique=True).map(tuple),
        "people": st.lists(st.integers(0, 5), max_size=5).map(tuple),
        "knowledge": st.dictionaries(st.sampled_from(list(TOPICS)), st.sampled_from(KINDS), max_size=4),
    }
    return st.builds(Plan, **{**always, **parts})


SOME_REPLIES = st.lists(st.sampled_from(REPLIES), max_size=6).map(tuple)
SOME_HAPPENINGS = st.lists(HAPPENINGS, max_size=3).map(tuple)


# -- what must hold

SOON = 8  # pictures: what comes so shortly before the end may be for the next run


def _texts(told: Told) -> set[str]:
    """All that may be sent: of records, of people, composed; and their parts."""
    whole = {*told.shelf.given, *told.shelf.composed, *told.people.written}
    return {*whole, *chain.from_iterable(map(parts_of, whole))}


def _standing(told: Told) -> Counter[str]:
    return Counter(m.text for _, m in told.sent if m.state is BubbleState.OK)


def no_text_without_provenance(told: Told) -> Iterator[str]:
    allowed = _texts(told)
    rows = {part: row for row in told.rows for part in (*row.parts, row.text) if part}
    for chat, message in told.sent:
        row = rows.get(message.text)
        if chat != CONTACT:
            yield f"{message.text!r} went to {chat}"
        if message.text not in allowed:
            yield f"{message.text!r} comes from nowhere"
        elif row is None:
            yield f"{message.text!r} stands in no row"
        else:
            known = {
                Provenance.KNOWLEDGE: row.text in told.shelf.given and told.shelf.given[row.text].id == row.record_id,
                Provenance.COMPOSED: row.text in told.shelf.composed,
                Provenance.PERSON: row.text in told.people.written,
            }
            if row.provenance is None or not known[row.provenance]:
                yield f"{message.text!r} is not from {row.provenance}"


def nothing_else_is_typed(told: Told) -> Iterator[str]:
    allowed = _texts(told)
    nowhere = f"nowhere in {QQ}"  # no field has the focus
    names = {"search", nowhere}  # never a chat, not even one that could not be read
    for where, text in told.phone.facts.typed:
        name = CONTACT.startswith(text) and where in names
        ours = any(one.startswith(text) for one in allowed) and where in {CONTACT, nowhere}
        if not name and not ours:
            yield f"{text!r} was typed, {where}"


def no_finish_before_knowledge(told: Told) -> Iterator[str]:
    ways = {
        say("zh", "run.nothing_new", contact=CONTACT),
        *(say("zh", "run.replied", contact=CONTACT, count=count) for count in range(1, 9)),
        *(say("zh", f"run.{key}") for key in ("already_skipped", "skipped", "sent_and_skipped")),
    }
    for session in told.sessions:
        if session.gate.knowledge_done:
            continue
        if session.status is Status.SUCCEEDED and session.message not in ways:
            yield f"succeeded without knowledge: {session.message}"
        last = session.steps[-1].action if session.steps else None
        if last is not None and last["kind"] == "finish":
            yield "the model ended it"


def no_second_copy(told: Told) -> Iterator[str]:
    plan = told.plan
    written = [TOPICS.get(one, one) for one in (*plan.asked, *plan.later)]
    written += [one.text for one in plan.happenings if one.what == "write" and one.contact == CONTACT]
    written += [CROSSED] * plan.flaws.sends.count("crossed")
    asked = Counter(topic_of(words) for words in written)
    whole = {part: text for text in (*told.shelf.given, *told.shelf.composed) for part in parts_of(text)}
    for text, count in _standing(told).items():
        record = told.shelf.given.get(whole.get(text, ""))
        topic = told.shelf.composed.get(text) or (record.id.rstrip("2") if record else "")
        most = 1 if text in told.people.written else asked[topic] + told.people.picked[whole.get(text, "")]
        if count > most:
            yield f"{text!r} stands there {count} times, {most} at most"


def nothing_outside_is_touched(told: Told) -> Iterator[str]:
    facts = told.phone.facts
    yield from (f"{package} was opened" for package in facts.opened if package != QQ)
    for act, package, name in facts.touched:
        leaving = act in {"key:BACK", "key:HOME"}
        home = package == LAUNCHER and act == "tap" and name == "icon:QQ"
        if package != QQ and not leaving and not home:
            yield f"{act} on {name!r} in {package}"
        if name in {"ai", "call", "pay", "popup:update", f"row:{AI}"} or act in {"double_tap", "long_press"}:
            yield f"{act} on {name!r}"


def the_ledger_says_what_stands_there(told: Told) -> Iterator[str]:
    said, standing = claimed(told.ledger), _standing(told)
    undecided = Counter(row.part_text for row in told.rows if row.state in {ReplyState.SENDING, ReplyState.UNKNOWN})
    yield from (f"{text!r} is said to be sent" for text in said if not standing[text])
    for text, count in standing.items():
        if count > said[text] + undecided[text]:
            yield f"{text!r} stands there {count} times, the ledger says {said[text]}"


def no_question_is_lost(told: Told) -> Iterator[str]:
    """One that our own bubble stands below is never looked at again: it must have been answered, or a person told."""
    if any(session.status is not Status.SUCCEEDED for session in told.sessions):
        return
    closed = {ReplyState.SENT, ReplyState.SKIPPED, ReplyState.WITHDRAWN}
    if any(crash.new_run for crash in told.plan.crashes):
        closed.add(ReplyState.FAILED)  # the run that died tells it with its own next attempt
    done = [row.question for row in told.rows if row.state in closed]
    if any(crash.new_run for crash in told.plan.crashes):
        done.append(CROSSED)  # and it looks above its answer then
    for index, message in enumerate(told.messages):
        mine = [m for m in told.messages[index + 1 :] if m.side is Side.ME]
        ours = bool(mine) and all(m.from_here for m in mine)
        asked = message.side is Side.THEM and topic_of(message.text)
        if asked and ours and not any(message.text in words for words in done):
            yield f"{message.text!r} is lost"
    newest, last = told.messages[-1], told.sessions[-1]
    stood = newest.side is Side.THEM and newest.since < told.phone.pictures - SOON
    answered = last.gate.knowledge_done or any(newest.text in words for words in done)
    if stood and topic_of(newest.text) and not answered:
        yield f"{newest.text!r} is overlooked"


def nothing_of_ours_is_left(told: Told) -> Iterator[str]:
    draft = told.phone.chats[CONTACT].draft
    if draft and told.sessions[-1].status is Status.SUCCEEDED and any(t.startswith(draft) for t in _texts(told)):
        yield f"{draft!r} stands in the input"


RULES: tuple[Callable[[Told], Iterator[str]], ...] = (
    no_text_without_provenance,
    nothing_else_is_typed,
    no_finish_before_knowledge,
    no_second_copy,
    nothing_outside_is_touched,
    the_ledger_says_what_stands_there,
    no_question_is_lost,
    nothing_of_ours_is_left,
)


def holds(plan: Plan) -> None:
    told = tell(plan)
    wrong = [f"{rule.__name__}: {found}" for rule in RULES for found in rule(told)]
    if wrong:
        raise AssertionError("\n".join([*wrong, *_story(told)]))


def _story(told: Told) -> Iterator[str]:
    yield f"crashes: {told.crashes}; asked: {[question.kind.value for question in told.people.asked]}"
    for session in told.sessions:
        yield f"run {session.status}: {session.message}"
        yield from (f"  {step.action} {step.result}" for step in session.steps)
    yield from (f"  row {row.state}: {row.question!r} → {row.text!r} part {row.part}" for row in told.rows)
    yield from (f"  {m.side} {m.state} {'here ' if m.from_here else ''}{m.text!r}" for m in told.messages)


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    """Thousands of runs tell too much."""
    with structlog.testing.capture_logs():
        yield


def thorough() -> settings:
    """Return settings that draw the same cases each time, half of them if not all are wanted.

    With the variable ANOTHER_SEED others are drawn, far more, to search for what nobody has met yet.
    """
    phases = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
    return settings(
        max_examples=800 if "ANOTHER_SEED" in os.environ else examples(200),
        deadline=None,
        derandomize="ANOTHER_SEED" not in os.environ,
        print_blob=True,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )


@thorough()
@given(plans(replies=SOME_REPLIES, in_chat=st.booleans(), later=st.lists(ASKED, max_size=1).map(tuple)))
def test_whatever_the_model_says(plan: Plan) -> None:
    holds(plan)


@thorough()
@given(plans(happenings=SOME_HAPPENINGS, flaws=FLAWS, in_chat=st.booleans()))
def test_whatever_the_phone_does(plan: Plan) -> None:
    holds(plan)


@thorough()
@given(plans(crashes=CRASHES, flaws=FLAWS, later=st.lists(ASKED, max_size=1).map(tuple)))
def test_wherever_the_process_dies(plan: Plan) -> None:
    holds(plan)


@thorough()
@given(plans(replies=SOME_REPLIES, happenings=SOME_HAPPENINGS, flaws=FLAWS, crashes=CRASHES, in_chat=st.booleans()))
def test_all_of_it_together(plan: Plan) -> None:
    holds(plan)
