"""The page of a run: one file, with nothing in it that anybody else wrote as markup."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from html.parser import HTMLParser

from agent_core.devices.base import Window
from agent_core.loop.trajectory import ModelRequest
from agent_core.session import ReplyRecord, Session, StepRecord, StepVerdict
from agent_core.texts import say
from bot.channels.chat.texts import texts
from bot.desk.history_views import PastRun, RecordedStep, RecordingView
from bot.desk.views import RunStatus, RunView
from bot.tools.replay.page import page_of
from bot.tools.replay.words import result_of
from tests.bot.desk.past import screen

EVIL = '"><script>alert(1)</script><img src=x onerror="alert(1)">\x1b[31m\u202e'


class Seen(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


def evil_run() -> RecordingView:
    """Everything that somebody else may have written, written by somebody who means harm."""
    swipe = {"kind": "swipe", "start": [100, 900], "end": [100, 100], "duration": 0.5}
    typed = {"kind": "type", "text": EVIL}
    records = [
        StepRecord(
            index=1,
            thinking=EVIL,
            reply=EVIL,
            asked=swipe,
            action=typed,
            ok=False,
            result=EVIL,
            verdicts=[StepVerdict(policy=EVIL, decision="rewrite", message=EVIL)],
            timings={"step": 1.0, EVIL: 2.0},
            tokens_in=1,
        ),
        StepRecord(index=2, action={"kind": "tap", "element": [500, 500]}),
        StepRecord(index=3, action={"kind": EVIL}),
    ]
    asked = ModelRequest(
        step=1, model=EVIL, profile=EVIL, dialect="auto", window=Window(EVIL), size=(108, 240), picture="p"
    )
    messages = ({"role": EVIL, "content": EVIL}, {"role": "user", "content": [{"type": "text", "text": EVIL}]})
    session = Session(run_id="r", task=EVIL, steps=records, message=EVIL)
    session.replies.append(ReplyRecord(contact=EVIL, question=EVIL, text=EVIL, provenance="person"))
    steps = (
        RecordedStep(records[0], asked, messages, picture=screen(1), stored=900),
        RecordedStep(records[1], shown=screen(2)),
        RecordedStep(records[2]),
    )
    run = RunView(id="r", task=EVIL, status=RunStatus.FAILED, serial=EVIL, by=EVIL, message=EVIL)
    part = PastRun(8, "p", EVIL, RunStatus.FAILED, EVIL, EVIL, datetime(2026, 11, 1, tzinfo=UTC), message=EVIL)
    return RecordingView(7, run, session, steps, (part,))


def test_it_holds_all_and_lets_nothing_in() -> None:
    for lang in ("zh", "en"):
        page = page_of(evil_run(), texts(lang))
        seen = Seen(page)
        assert len(seen.all("script")) == len(seen.all("style")) == 1
        assert all(not name.startswith("on") and name != "style" for _, attrs in seen.tags for name in attrs)
        urls = [attrs.get("src") or attrs.get("href") or "" for _, attrs in seen.tags]
        assert all(not url or url.startswith(("data:image/jpeg;base64,", "#s", "#end")) for url in urls)
        assert not re.search(r"https?://|\x1b|\u202e", page)
        # Its policy allows its own style and script by their digests, and no other.
        policy = next(attrs["content"] or "" for attrs in seen.all("meta") if attrs.get("http-equiv"))
        assert policy.startswith("default-src 'none'; img-src data:;")
        assert "unsafe" not in policy
        for tag in ("style", "script"):
            body = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[0]
            assert f"{tag}-src 'sha256-{base64.b64encode(sha256(body.encode()).digest()).decode()}'" in policy
        assert [attrs["id"] for attrs in seen.all("section")] == ["s1", "s2", "s3", "end"]
        assert seen.text.count("<script>alert(1)</script>") >= 12  # as words, wherever they belong
        # The model's own picture with the act drawn over it, else that for people; a broken line was not done.
        assert len(seen.all("image")) == len(seen.all("img")) == 1
        assert any("stroke-dasharray" in attrs for attrs in seen.all("path"))
        assert texts(lang).get("replay.no_picture") in seen.text
        assert texts(lang).get("timings.head_deviation") in seen.text


def kind_run() -> RecordingView:
    """One step that a rule has stopped, and one that was simply done."""
    tap = {"kind": "tap", "element": [500, 500]}
    verdict = StepVerdict(policy="delivery_alone", decision="block", message="不要点")
    records = [
        StepRecord(index=1, thinking="想", asked=tap, ok=False, result="不要点", verdicts=[verdict]),
        StepRecord(index=2, asked=tap, action=tap, result="已执行。"),
    ]
    steps = tuple(RecordedStep(record, shown=screen(record.index)) for record in records)
    run = RunView(id="r", task="QQ回复联系人11", status=RunStatus.FAILED, message="没有人回答")
    return RecordingView(7, run, Session(run_id="r", task=run.task, steps=records), steps)


def test_a_result_does_not_repeat_what_its_rules_have_said() -> None:
    blocked, done = kind_run().session.steps
    assert (result_of(blocked), result_of(done)) == ("", "")
    assert result_of(blocked.model_copy(update={"result": "不要点 演练到此为止。"})) == "演练到此为止。"


def test_what_the_model_was_told_of_an_answer_is_said_to_be_for_the_model() -> None:
    asked = {"kind": "get_knowledge_data", "query": "几天发货"}
    told = say("zh", "run.sent_observation", contact="11", text="明天")
    answered = StepRecord(index=3, asked=asked, action=asked, result=told)
    recording = kind_run()
    recording = replace(recording, steps=(*recording.steps, RecordedStep(answered, shown=screen(3))))
    seen = Seen(page_of(recording, texts("zh")))
    assert f"{texts('zh').get('replay.told_model')}{told}" in seen.text.replace("\n", "")


def test_a_hand_gets_through_it_and_its_head_comes_first() -> None:
    page = page_of(kind_run(), texts("zh"))
    seen = Seen(page)
    # The buttons do nothing without the script, which puts them within reach; the list is one that can be folded.
    assert [attrs["id"] for attrs in seen.all("button")] == ["before", "after"]
    assert "html:not(.paged) button { display: none; }" in page
    assert ".paged #bar { position: fixed; inset: auto 0 0 0;" in page[page.index("@media (max-width: 800px) {") :]
    bar = page[page.index("<details open>") : page.index("</details>")]
    assert re.findall(r'href="#(\w+)"', bar) == ["s1", "s2", "end"]
    assert not re.search(r"\bnav[^{}]*{[^}]*display: none", page)
    assert re.search(r"html:not\(\.paged\)[^{]*section", page) is None  # all steps stand there without it
    # What it is, the task and the outcome, before any step; nothing in the address scrolls them away.
    head = page[page.index("<header>") : page.index("</header>")]
    assert head.index("回放 #7") < head.index("QQ回复联系人11") < head.index("失败 · 没有人回答")
    assert all(texts("zh").get(f"replay.{name}") in head for name in ("how", "how_by_hand"))
    assert page.index("</script>") < page.index("<body>")
    # In the owner's words: neither a rule's own name, nor what only the model needs to be told.
    assert "规则：已拦截 · 发消息只由发送程序来做" in seen.text
    assert "1 已拦截 · 点击 (500, 500)" in seen.text
    assert "delivery_alone" not in page
    assert "已执行。" not in page
    assert 'setAttribute("aria-current", "step")' in page


def test_whoever_was_left_without_an_answer_by_a_stop_is_named() -> None:
    view = kind_run()
    stopped = replace(view.run, status=RunStatus.STOPPED, unanswered="11", message="")
    assert "没有回复 11" in Seen(page_of(replace(view, run=stopped), texts("zh"))).text
    assert "没有回复" not in Seen(page_of(replace(view, run=replace(stopped, unanswered="")), texts("zh"))).text
