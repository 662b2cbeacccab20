"""The model client against a real HTTP endpoint."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import socket
import time
from contextlib import suppress
from pathlib import Path
from types import AsyncGeneratorType
from typing import Any
from unittest.mock import AsyncMock

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from PIL import Image

from agent_core import errors
from agent_core.actions import parse_reply
from agent_core.actions.types import Back, Finish, Home, Tap
from agent_core.model.client import CHECK_NUMBER, ChatModel
from agent_core.model.profile import model_profile
from agent_core.model.prompt import data_url, tools_of
from agent_core.proxies import ProxySetting
from agent_core.session import StepRecord
from agent_core.texts import fault, told
from tests.support.model_server import Break, Chunks, Hang, Raw, Reply, ScriptedModel, Status, Text, Whole
from tests.support.tls import certificate, leaving_tls

CALL = 'do(action="Tap", element=[500,300])'
REPLY = f"<think>点一下</think><answer>{CALL}</answer>"
KEY = "secret-key-4711"
_BOTH = ((socket.AF_INET6, "::1"), (socket.AF_INET, "127.0.0.1"))


class Pauses:
    """In the place of sleeping between tries: kept, not waited for."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def messages(text: str = "打开微信") -> list[dict[str, Any]]:
    picture = {"type": "image_url", "image_url": {"url": data_url(Image.new("RGB", (40, 80), "white"))}}
    return [
        {"role": "system", "content": "你好"},
        {"role": "user", "content": [picture, {"type": "text", "text": text}]},
    ]


def client(server: ScriptedModel, pauses: Pauses | None = None, **more: Any) -> ChatModel:
    return ChatModel(server.url, "scripted", KEY, sleep=pauses or Pauses(), **more)


async def test_a_reply_is_read_up_to_the_end_of_its_call() -> None:
    async with ScriptedModel([REPLY]) as server:
        model = client(server, extra_body={"top_k": 3})
        done = await model.complete(messages())
        await model.close()
    assert done.text == REPLY.removesuffix("</answer>")
    assert (done.usage.tokens_in, done.usage.tokens_out) == (100, 20)
    first, thought, total = done.usage.first_token, done.usage.thinking_end, done.usage.total
    assert first is not None
    assert thought is not None
    assert 0 < first <= thought <= total
    sent = server.requests[0]
    assert server.invalid == []
    assert sent["stream"] is True
    assert {name: sent[name] for name in ("max_tokens", "temperature", "top_p", "frequency_penalty", "top_k")} == {
        "max_tokens": 3000,
        "temperature": 0.0,
        "top_p": 0.85,
        "frequency_penalty": 0.2,
        "top_k": 3,
    }
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


async def test_talk_after_the_call_is_not_waited_for() -> None:
    talk = Chunks([f"<think>a</think><answer>{CALL}", "</answer>", " 接下来", 30.0, "没有人要听"])
    async with ScriptedModel([talk]) as server:
        model = client(server)
        started = time.monotonic()
        done = await model.complete(messages())
        assert time.monotonic() - started < 5
        await asyncio.wait_for(server.disconnected.wait(), 5)
        await model.close()
    assert done.text.endswith(CALL)
    assert done.rest == "接下来"


@pytest.mark.parametrize(("finish", "ended"), [("stop", True), ("tool_calls", True), ("length", False)])
async def test_whether_the_model_ended_its_reply_is_told(finish: str, ended: bool) -> None:
    """Only then may its last bracket be missing."""
    cut = CALL.removesuffix(")")
    async with ScriptedModel([Text(cut, finish=finish), Whole(cut, finish=finish)]) as server:
        model = client(server)
        for _ in range(2):
            done = await model.complete(messages())
            assert (done.text, done.ended) == (cut, ended)
        await model.close()


async def test_an_endpoint_that_falls_silent_after_the_call_is_not_waited_for() -> None:
    async with ScriptedModel([Hang([f"<think>a</think><answer>{CALL}"])]) as server:
        model = client(server)
        started = time.monotonic()
        done = await model.complete(messages())
        assert time.monotonic() - started < 5
        await model.close()
    assert done.text.endswith(CALL)


async def test_thinking_is_shown_while_it_streams() -> None:
    seen: list[str] = []

    async def on_thinking(text: str) -> None:
        seen.append(text)

    reply = Text('<think>先看屏幕,do(action="Home") 不是动作</think><answer>do(action="Back")</answer>', size=3)
    async with ScriptedModel([reply]) as server:
        model = client(server)
        done = await model.complete(messages(), on_thinking=on_thinking)
        await model.close()
    assert seen[-1] == '先看屏幕,do(action="Home") 不是动作'
    assert len(seen) > 5
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(seen))
    assert done.text.endswith('do(action="Back")')


async def test_reasoning_beside_the_content_is_thinking() -> None:
    seen: list[str] = []

    async def on_thinking(text: str) -> None:
        seen.append(text)

    async with ScriptedModel([Text(CALL, reasoning='也许 do(action="Home")?')]) as server:
        model = client(server)
        done = await model.complete(messages(), on_thinking=on_thinking)
        await model.close()
    assert seen[-1] == '也许 do(action="Home")?'
    assert done.text == f'<think>也许 do(action="Home")?</think>{CALL}'


async def test_an_endpoint_that_ignores_stream_is_read() -> None:
    async with ScriptedModel([Whole(REPLY + "多说一句")]) as server:
        model = client(server)
        done = await model.complete(messages())
        await model.close()
    assert done.text == REPLY.removesuffix("</answer>")
    assert done.rest == "多说一句"
    assert done.usage.tokens_in == 100


def called(arguments: str = "", name: str = "", *, index: int = 0) -> dict[str, Any]:
    """A part of a tool call, as it is streamed."""
    first = {"id": "call_1", "type": "function"} if name else {}
    return {"tool_calls": [{"index": index, **first, "function": {"name": name or None, "arguments": arguments}}]}


async def test_a_tool_call_is_the_answer_and_what_follows_is_not_waited_for() -> None:
    offered = tools_of(model_profile("general"), "zh")
    parts: list[str | float | dict[str, Any]]
    parts = ["点一下", called(name="Tap"), called('{"element": [500'), called(", 300]}"), " 接下来", 30.0]
    async with ScriptedModel([Chunks(parts, finish="tool_calls")]) as server:
        model = client(server, tools=offered, dialect="auto")
        started = time.monotonic()
        done = await model.complete(messages())
        assert time.monotonic() - started < 5
        await model.close()
    assert server.invalid == []
    assert [tool["function"]["name"] for tool in server.requests[0]["tools"]][:2] == ["Launch", "Tap"]
    reply = parse_reply(done.text, "auto")
    assert reply.action == Tap(element=(500, 300))
    assert reply.thinking == "点一下"
    assert done.rest == "接下来"
    assert done.usage.first_token is not None
    assert done.usage.thinking_end is not None


TAP_TOO = '{"action": "Tap", "arguments": {"element": [1, 2]}}'
BACK = '{"action": "Back", "arguments": {}}'
MENTION = '客户写道:\n{"action": "Launch", "app": "支付宝"}\ndo(action="Home")\n我不照做。'


@pytest.mark.parametrize(
    ("parts", "action", "rest"),
    [
        ([MENTION, called('{"element": [500, 300]}', "Tap")], Tap(element=(500, 300)), ""),
        ([called("", "Back"), called('{"element": [1, 2]}', "Tap", index=1)], Back(), TAP_TOO),
        ([called('{"element"', "Tap"), called("{}", "Back", index=1), called(": [1, 2]}")], Tap(element=(1, 2)), BACK),
        ([called("", "Home")], Home(), ""),
        (["没有合适的工具\n", 'do(action="Back")'], Back(), ""),
    ],
    ids=["mentioned", "first of two", "mixed", "no arguments", "no call"],
)
async def test_the_first_tool_call_is_the_answer_and_a_call_in_the_text_is_only_a_mention(
    parts: list[str | float | dict[str, Any]], action: object, rest: str
) -> None:
    async with ScriptedModel([Chunks(parts, finish="tool_calls")]) as server:
        model = client(server, tools=tools_of(model_profile("general"), "zh"), dialect="auto")
        done = await model.complete(messages())
        await model.close()
    assert parse_reply(done.text, "auto").action == action
    assert done.rest == rest


async def test_a_tool_call_that_is_not_streamed() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "finish", "arguments": '{"message": "好了"}'}}
    async with ScriptedModel([Whole(None, finish="tool_calls", tool_calls=[call])]) as server:
        model = client(server, tools=tools_of(model_profile("general"), "en"), dialect="auto")
        done = await model.complete(messages())
        await model.close()
    assert parse_reply(done.text, "auto").action == Finish(message="好了")


async def test_an_endpoint_that_knows_no_tools_is_asked_without() -> None:
    async with ScriptedModel([Status(400, "this model does not support tools"), REPLY, REPLY]) as server:
        model = client(server, tools=tools_of(model_profile("general"), "zh"))
        assert (await model.complete(messages())).text
        await model.complete(messages())
        await model.close()
    assert ["tools" in request for request in server.requests] == [True, False, False]


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (("max_tokens",), "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."),
        (("temperature",), "Unsupported value: 'temperature' does not support 0.0 with this model."),
        (("top_p",), "`temperature` and `top_p` cannot both be specified for this model."),
        (("max_tokens", "max_completion_tokens", "frequency_penalty"), "{name}: Extra inputs are not permitted"),
    ],
)
async def test_a_number_that_is_refused_as_such_is_left_out_from_then_on(refused: tuple[str, ...], words: str) -> None:
    def strict(data: dict[str, Any]) -> Reply:
        name = next((name for name in refused if name in data), None)
        return Status(400, words.format(name=name)) if name else Text(REPLY)

    async with ScriptedModel([strict], repeat_last=True) as server:
        model = client(server)
        await model.complete(messages())
        tries = len(server.requests)
        assert tries == len(refused) + 1
        await model.transcribe(Image.new("RGB", (8, 8)), "read")
        await model.close()
    assert len(server.requests) == tries + 1
    (*_, sent) = server.requests
    numbers = {"max_tokens", "temperature", "top_p", "frequency_penalty"}
    assert numbers - set(sent) == set(refused) & numbers
    assert sent.get("max_completion_tokens") == (3000 if refused == ("max_tokens",) else None)


async def test_numbers_that_an_error_names_and_does_not_mean_are_sent_again() -> None:
    refusal = Status(400, "Image input is not supported by this model; max_tokens=3000, temperature=0.")
    blind = [True]
    async with ScriptedModel([lambda _: refusal if blind else Text(REPLY)], repeat_last=True) as server:
        model = client(server)
        with pytest.raises(errors.ModelFormat):
            await model.complete(messages())
        blind.clear()
        await model.complete(messages())
        await model.close()
    assert {"max_tokens", "temperature"} <= server.requests[-1].keys()


async def test_a_number_that_is_too_large_is_an_error() -> None:
    async with ScriptedModel([Status(400, "max_tokens is too large: 3000. It supports at most 2048.")]) as server:
        model = client(server)
        with pytest.raises(errors.ModelFormat, match="too large"):
            await model.complete(messages())
        await model.close()
    assert len(server.requests) == 1


PARTS = [{"type": "thinking", "thinking": [{"type": "text", "text": "点一下"}]}, {"type": "text", "text": CALL}, "!"]


async def test_a_content_in_parts_is_joined_and_pings_are_passed_over() -> None:
    ping = 'data: {"type": "ping"}\n\n'
    deltas: list[Any] = [PARTS, " 接", "下来"]
    chunks = [json.dumps({"choices": [{"index": 0, "delta": {"content": content}}]}) for content in deltas]
    events = "".join(f"{ping}data: {chunk}\n\n" for chunk in chunks)
    whole = json.dumps({"choices": [{"index": 0, "message": {"content": [*PARTS, " 接下来"]}}]})
    script = [Raw(events, "text/event-stream"), Raw(whole, "application/json")]
    async with ScriptedModel([*script, script[1]]) as server:
        model = client(server)
        for _ in range(2):
            done = await model.complete(messages())
            assert (done.text, done.rest) == (f"<think>点一下</think>{CALL}", "! 接下来")  # all that has arrived
            assert done.usage.thinking_end is not None
        assert await model.transcribe(Image.new("RGB", (8, 8)), "read") == f"{CALL}! 接下来"
        await model.close()


ODD = st.recursive(
    st.sampled_from([None, True, 0, -1, 12.5, 10**30, "", "do", CALL, REPLY, "\ud83d", "stop"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "text", "thinking"]), inner),
    max_leaves=3,
)
FUNCTION = st.fixed_dictionaries({}, optional={"name": ODD, "arguments": ODD}) | ODD
SAID = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("content", "reasoning", "reasoning_content", "refusal"), ODD),
        "tool_calls": st.lists(st.fixed_dictionaries({}, optional={"index": ODD, "function": FUNCTION}) | ODD) | ODD,
    },
)
CHOICE = st.fixed_dictionaries({}, optional={"delta": SAID | ODD, "message": SAID | ODD, "finish_reason": ODD})
COUNTED = dict.fromkeys(("prompt_tokens", "completion_tokens", "cached_tokens", "prompt_tokens_details"), ODD)
CHUNK = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(CHOICE | ODD, max_size=2) | ODD,
        "usage": st.fixed_dictionaries({}, optional=COUNTED) | ODD,
        "error": st.fixed_dictionaries({}, optional={"message": ODD, "code": ODD, "type": ODD}) | ODD,
    },
)


@settings(max_examples=6, deadline=None, phases=[Phase.generate], database=None, derandomize=True)
@given(st.lists(st.lists(CHUNK, min_size=1, max_size=4), min_size=10, max_size=10))
def test_whatever_an_endpoint_says_it_is_a_reply_or_an_error_of_ours(answers: list[list[Any]]) -> None:
    asyncio.run(_hear(answers))


async def _hear(answers: list[list[Any]]) -> None:
    raws = [Raw("".join(f"data: {json.dumps(chunk)}\n\n" for chunk in each), "text/event-stream") for each in answers]
    wholes = [Raw(json.dumps(each[0]), "application/json") for each in answers]
    async with ScriptedModel([*raws, *wholes, *wholes]) as server:
        model = client(server, alone=False)
        for number in range(len(server.script)):
            with suppress(errors.ModelError):
                if number >= 2 * len(raws):
                    await model.transcribe(Image.new("RGB", (8, 8)), "read")
                    continue
                done = await model.complete(messages(str(number)))
                StepRecord(index=1, tokens_in=done.usage.tokens_in, tokens_out=done.usage.tokens_out)
                assert 0 <= done.usage.tokens_cached <= done.usage.tokens_in < 2**31
                (done.text + done.rest).encode()
        await model.close()


async def test_a_reply_without_a_call_is_handed_on_whole() -> None:
    async with ScriptedModel(["我不知道该做什么"]) as server:
        model = client(server)
        assert (await model.complete(messages())).text == "我不知道该做什么"
        await model.close()


TABLE: list[tuple[Reply, type[errors.ModelError], int]] = [
    (Status(401, f"Incorrect API key provided: {KEY}"), errors.ModelAuth, 1),
    (Status(403), errors.ModelAuth, 1),
    (Status(404, "no such model"), errors.ModelUnknown, 1),
    (Status(400, "模型不存在", "1211"), errors.ModelUnknown, 1),
    (Status(400, "bad field"), errors.ModelFormat, 1),
    (Status(400, "blocked", "content_filter"), errors.ModelRefused, 1),
    (Status(400, "系统检测到输入或生成内容可能包含不安全或敏感内容", "1301"), errors.ModelRefused, 1),
    (Status(400, "Input data may contain it.", "data_inspection_failed"), errors.ModelRefused, 1),
    (Status(400, "Content Exists Risk", "invalid_request_error"), errors.ModelRefused, 1),
    (Status(400, "Invalid prompt: against our usage policy.", "invalid_prompt"), errors.ModelRefused, 1),
    (Status(400, "It may not be.", "InputImageSensitiveContentDetected"), errors.ModelRefused, 1),
    (Status(403, "Your input was flagged: it requires moderation."), errors.ModelRefused, 1),
    (Status(400, "Access denied, is your account in good standing?", "Arrearage"), errors.ModelSpent, 1),
    (Status(429, "You exceeded your current quota, check your plan.", "insufficient_quota"), errors.ModelSpent, 1),
    (Status(429, "You exceeded your current quota, retry in 7 s.", "RESOURCE_EXHAUSTED"), errors.ModelQuota, 3),
    (Status(403, "该账号存在违规行为，已被封禁", "account_banned"), errors.ModelAuth, 1),
    (Status(400, "content moderation is not enabled for this parameter"), errors.ModelFormat, 1),
    (Status(400, "Names are case-sensitive: request 1301"), errors.ModelFormat, 1),
    (Text("抱歉", finish="sensitive"), errors.ModelRefused, 1),
    (Text("", finish="network_error"), errors.ModelUnreachable, 3),
    (Status(429, "slow down"), errors.ModelQuota, 3),
    (Status(402, "balance"), errors.ModelSpent, 1),
    (Status(500), errors.ModelUnreachable, 3),
    (Status(503, body="<html>down</html>"), errors.ModelUnreachable, 3),
    (Raw("<html><body>login</body></html>"), errors.ModelFormat, 1),
    (Raw("not events at all", "text/event-stream"), errors.ModelFormat, 1),
    (Raw("data: {broken\n\n", "text/event-stream"), errors.ModelFormat, 1),
    (Raw('data: {"x": 1}\n\n', "text/event-stream"), errors.ModelFormat, 1),
    (Raw('{"hello": "world"}', "application/json"), errors.ModelFormat, 1),
    (Raw("", "application/json"), errors.ModelFormat, 1),
    (Raw('{"choices": [{"message": {"content": " \\n"}}]}', "application/json"), errors.ModelFormat, 1),
    (Raw('data: {"choices": [null]}\n\n', "text/event-stream"), errors.ModelFormat, 1),
    (Raw('data: {"type": "ping"}\n\ndata: [DONE]\n\n', "text/event-stream"), errors.ModelFormat, 1),
    (Chunks([{"content": {"type": "text", "text": "hi"}}]), errors.ModelFormat, 1),
    (Raw("data: " + "[" * 100_000 + "\n\n", "text/event-stream"), errors.ModelFormat, 1),
    (Chunks([{"tool_calls": [{"index": 0, "function": {"name": "Back", "arguments": {}}}]}]), errors.ModelFormat, 1),
    (Chunks(["好"], finish=7), errors.ModelFormat, 1),  # type: ignore[arg-type] # no form of ours
    (Text(""), errors.ModelFormat, 1),
    (Text("抱歉", finish="content_filter"), errors.ModelRefused, 1),
    (Whole(None, refusal="no"), errors.ModelRefused, 1),
    (Break(["<think>一半"]), errors.ModelUnreachable, 3),
    (Break(), errors.ModelUnreachable, 3),
    (Hang(headers_too=True), errors.ModelTimeout, 3),
    (Hang(["<think>一"]), errors.ModelTimeout, 3),
    (Hang(["<think>一"], pings=0.02), errors.ModelTimeout, 3),
]


@pytest.mark.parametrize(("reply", "kind", "tries"), TABLE, ids=lambda value: str(value)[:40])
async def test_errors_are_of_one_tree_and_retried_by_the_table(
    reply: Reply, kind: type[errors.ModelError], tries: int
) -> None:
    pauses = Pauses()
    async with ScriptedModel([reply], repeat_last=True) as server:
        model = client(server, pauses, timeout=0.15 if isinstance(reply, Hang) else 20.0)
        with pytest.raises(errors.ModelError) as caught:
            await model.complete(messages())
        await model.close()
    assert type(caught.value) is kind
    assert len(server.requests) == tries
    assert pauses.seconds == [2, 4][: tries - 1]
    assert KEY not in str(caught.value) + repr(caught.value)


_ECHO = '"input": {"api_key": "of-a-free-table"}'


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"error": {"message": "Below\\n1, please."}}', "Below 1, please."),
        ('{"message": "no field", "type": "BadRequest", "code": 400}', "no field"),
        ('{"error": "没有这个模型"}', "没有这个模型"),
        ('{"status": 400, "error": "Bad", "message": "top_k must be < 1"}', "top_k must be < 1"),
        ('[{"error": {"code": 400, "message": "no such field"}}]', "no such field"),
        ('{"detail": "down"}', "down"),
        ('\ufeff{"detail": "marked"}', "marked"),
        (
            f'{{"detail": [{{"loc": ["body", 0, "guard"], "msg": "not permitted", {_ECHO}}}]}}',
            "body.0.guard: not permitted",
        ),
        ('{"detail": [{"loc": 7, "msg": "no"}, {"loc": [], "msg": "why"}, 3]}', "no; why"),
        ('{"error_code": 336003, "error_msg": "too long"}', "too long"),
        ('{"success": false, "errors": [{"code": 7, "message": "too long"}]}', "too long"),
        (
            '{"error": {"message": "Provider", "metadata": {"raw": "{\\"message\\": \\"too long\\"}"}}}',
            "Provider: too long",
        ),
        (f"{{{_ECHO}}}", "Bad Request"),
        ("{}", "Bad Request"),
        ("null", "Bad Request"),
        ("<html><b>down</b>", "down"),
        ('{"message": "\\u001b[2J \\ud83d \\u202e!"}', "[2J !"),
        ("[" * 50_000, "[" * 300),
    ],
    ids=lambda value: value[:20],
)
@pytest.mark.parametrize("kind", ["application/json", "text/html; charset=hex", "text/plain; charset=utf-16"])
async def test_an_endpoint_is_quoted_with_its_own_words_and_nothing_else(kind: str, body: str, words: str) -> None:
    async with ScriptedModel([Status(400, body=body, headers={"Content-Type": kind})]) as server:
        model = client(server)
        with pytest.raises(errors.ModelFormat) as caught:
            await model.complete(messages())
        await model.close()
    assert caught.value.message == f"HTTP 400 from the model scripted: {words}"


def _event(data: str) -> Raw:
    return Raw(f"data: {data}\n\n", "text/event-stream")


_FILTERED = '"prompt_filter_results": [{"content_filter_results": {"hate": "safe"}}]'


@pytest.mark.parametrize(
    ("reply", "kind", "tries"),
    [
        (Status(400, body=f'{{"error": {{"message": "Invalid image"}}, {_FILTERED}}}'), errors.ModelFormat, 1),
        (Status(403, body='{"error": {"message": "Needs moderation"}, "account_id": "7"}'), errors.ModelRefused, 1),
        (Status(422, body='{"detail": [{"msg": "bad", "input": "敏感 tools stream_options"}]}'), errors.ModelFormat, 1),
        (
            Status(400, body='{"error": {"message": "Provider", "metadata": {"raw": "stopped by content_filter"}}}'),
            errors.ModelRefused,
            1,
        ),
        (Status(429, body='{"error": "limit", "code": "insufficient_quota"}'), errors.ModelSpent, 1),
        (Status(400, body='{"error": {"innererror": {"code": "ContentPolicyViolation"}}}'), errors.ModelRefused, 1),
        (
            Raw(f'data: {{"error": {{"message": "busy"}}, {_FILTERED}}}\n\n', "text/event-stream"),
            errors.ModelUnreachable,
            3,
        ),
        (
            Raw('data: {"error": 1, "choices": [{"delta": {"content": "敏感"}}]}\n\n', "text/event-stream"),
            errors.ModelUnreachable,
            3,
        ),
        (
            Raw('{"error": {"message": "没有额度", "code": "insufficient_quota"}}', "application/json"),
            errors.ModelSpent,
            1,
        ),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_what_stands_beside_an_error_does_not_say_what_it_is(
    reply: Reply, kind: type[errors.ModelError], tries: int
) -> None:
    async with ScriptedModel([reply], repeat_last=True) as server:
        model = client(server, tools=tools_of(model_profile("general"), "en"), dialect="auto")
        with pytest.raises(errors.ModelError) as caught:
            await model.complete(messages())
        await model.close()
    assert type(caught.value) is kind
    assert len(server.requests) == tries


async def test_what_the_owner_adds_to_requests_is_sent_as_it_is() -> None:
    added = {"stream": False, "temperature": 0.7, "stream_options": None}
    async with ScriptedModel([Status(400, "Unsupported parameter: temperature"), Whole(REPLY)]) as server:
        model = client(server, extra_body=added)
        assert CALL in (await model.complete(messages())).text
        await model.close()
    assert [{name: body[name] for name in added} for body in server.requests] == [added] * 2


@pytest.mark.parametrize("cause", ["refused", "tls", "name", "certificate"])
async def test_why_there_is_no_connection(cause: str, tmp_path: Path) -> None:
    pem = certificate(tmp_path)  # which nobody trusts here
    async with ScriptedModel([]) as server, leaving_tls(pem) as untrusted:
        url = {
            "refused": "http://127.0.0.1:9/v1",
            "tls": server.url.replace("http://", "https://"),
            "name": "http://nobody.invalid/v1",
            "certificate": untrusted,
        }[cause]
        model = ChatModel(url, "scripted", KEY, sleep=Pauses(), proxy=ProxySetting("X", "none"))
        error = await model.unreachable()
        await model.close()
    assert isinstance(error, errors.ModelUnreachable)
    assert error.key == f"model_no_connection_{cause}"
    assert all(url in told(error, lang) for lang in ("zh", "en"))


async def test_an_address_that_holds_the_path_of_a_request_is_told_without_it() -> None:
    async with ScriptedModel([Status(404)]) as server:
        model = ChatModel(f"{server.url}/chat/completions", "scripted", KEY)
        with pytest.raises(errors.ModelUnknown) as caught:
            await model.complete(messages())
        await model.close()
    assert caught.value.values["meant"] == server.url


async def test_nothing_listens_at_any_address_of_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [(family, socket.SOCK_STREAM, 6, "", (host, 9)) for family, host in _BOTH]
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", AsyncMock(return_value=both))
    model = ChatModel("http://model.example:9/v1", "scripted", KEY, sleep=Pauses(), proxy=ProxySetting("X", "none"))
    error = await model.unreachable()
    await model.close()
    assert error is not None
    assert error.key == "model_no_connection_refused"


async def test_a_connection_that_leaves_tls_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pem = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    async with leaving_tls(pem) as url:
        model = ChatModel(url, "scripted", KEY, sleep=Pauses())
        with pytest.raises(errors.ModelUnreachable) as caught:
            await model.complete(messages())
        assert caught.value.key == "model_no_connection"
        assert isinstance(await model.unreachable(), errors.ModelUnreachable)
        await model.close()


@pytest.mark.parametrize(("end", "asked"), [("", ""), ("/", ""), ("?version=7&of=a%2Fb", "version=7&of=a%2Fb")])
@pytest.mark.parametrize("key", ["", KEY])
async def test_requests_go_below_the_address_and_keep_its_query(end: str, asked: str, key: str) -> None:
    async with ScriptedModel([REPLY]) as server:
        model = ChatModel(server.url + end, "scripted", key, extra_body={"top_k": 3, "temperature": 0.5})
        await model.complete(messages())
        assert await model.unreachable() is None
        await model.close()
    assert server.queries == [asked, asked]
    assert [headers.get("Authorization") for headers in server.headers] == [f"Bearer {key}" if key else None] * 2
    assert (server.requests[0]["top_k"], server.requests[0]["temperature"]) == (3, 0.5)


async def test_a_second_try_can_succeed() -> None:
    async with ScriptedModel([Status(503), REPLY]) as server:
        model = client(server)
        assert CALL in (await model.complete(messages())).text
        await model.close()


@pytest.mark.parametrize(("said", "waited"), [("7", [7.0, 4]), ("0", [0.0, 4])])
async def test_retry_after_is_honoured(said: str, waited: list[float]) -> None:
    pauses = Pauses()
    async with ScriptedModel([Status(429, headers={"Retry-After": said}), Status(429), REPLY]) as server:
        model = client(server, pauses)
        await model.complete(messages())
        await model.close()
    assert pauses.seconds == waited


async def test_a_pause_of_an_hour_is_not_waited_for() -> None:
    pauses = Pauses()
    async with ScriptedModel([Status(429, headers={"Retry-After": "3600"})]) as server:
        model = client(server, pauses)
        with pytest.raises(errors.ModelQuota):
            await model.complete(messages())
        await model.close()
    assert pauses.seconds == []


async def test_nobody_listens() -> None:
    async with ScriptedModel([]) as server:
        url = server.url
    model = ChatModel(url, "scripted", KEY, sleep=Pauses())
    with pytest.raises(errors.ModelUnreachable):
        await model.complete(messages())
    assert not (await model.check()).reachable
    await model.close()


async def test_an_endpoint_without_stream_options_is_asked_without() -> None:
    def strict(data: dict[str, Any]) -> Reply:
        return Status(400, "unknown field stream_options") if "stream_options" in data else Text(REPLY, usage=None)

    async with ScriptedModel([strict, strict, strict]) as server:
        model = client(server)
        usage = (await model.complete(messages())).usage
        assert usage.guessed
        assert usage.tokens_in > usage.tokens_out > 0
        await model.complete(messages())
        await model.close()
    assert len(server.requests) == 3  # the refusal is remembered


@pytest.mark.parametrize("talk", ["", " 接下来" * 3000])
async def test_no_generator_is_left_to_the_garbage_collector(talk: str) -> None:
    """It closes them in any thread, and two threads may then run one of them at once."""
    async with ScriptedModel([REPLY + talk]) as server:
        model = client(server)
        gc.disable()
        try:
            before = _generators()  # of tests that ran in this process
            await model.complete(messages())
            for _ in range(10):
                await asyncio.sleep(0)
            left = [one for one in _generators() if one not in before]
        finally:
            gc.enable()
        await model.close()
    assert [one.__qualname__ for one in left if "http" in one.ag_code.co_filename] == []


def _generators() -> list[AsyncGeneratorType[Any, Any]]:
    return [one for one in gc.get_objects() if isinstance(one, AsyncGeneratorType) and _half_done(one)]


def _half_done(generator: AsyncGeneratorType[Any, Any]) -> bool:
    frame = generator.ag_frame
    return frame is not None and frame.f_lasti > 0


async def test_cancelling_closes_the_stream() -> None:
    async with ScriptedModel([Hang(["<think>…"])]) as server:
        model = client(server)
        task = asyncio.create_task(model.complete(messages()))
        while not server.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.disconnected.wait(), 5)
        await model.close()


async def test_without_vision_pictures_are_left_out() -> None:
    async with ScriptedModel([REPLY]) as server:
        model = client(server, vision=False)
        await model.complete(messages())
        with pytest.raises(errors.ModelFormat):
            await model.transcribe(Image.new("RGB", (40, 40)), "read")
        await model.close()
    assert "image_url" not in str(server.requests)
    assert [type(message["content"]) for message in server.requests[0]["messages"]] == [str, str]


async def test_a_transcription_is_a_plain_request_with_one_picture() -> None:
    async with ScriptedModel(["<think>嗯</think><|begin_of_box|>几天发货?<|end_of_box|>"]) as server:
        model = client(server)
        assert await model.transcribe(Image.new("RGB", (200, 60), "white"), "抄写文字") == "几天发货?"
        await model.close()
    (request,) = server.requests
    assert not request.get("stream")
    assert [part["type"] for part in request["messages"][0]["content"]] == ["image_url", "text"]


async def test_a_text_may_take_longer_than_the_time_out_and_is_no_action() -> None:
    said = Text('<think>想</think>先 do(action="Back")，再看。', size=9, delay=0.1)
    async with ScriptedModel([said]) as server:
        model = client(server, timeout=0.3, tools=tools_of(model_profile("general"), "zh"))
        assert (await model.ask(messages())).text == '先 do(action="Back")，再看。'
        await model.close()
    assert "tools" not in server.requests[0]


async def test_an_emoji_that_is_cut_in_two_is_put_together() -> None:
    """Some gateways send UTF-16 by units; half of a pair could be stored nowhere."""
    halves = ["<think>好\ud83d", '\ude00</think><answer>do(action="Type", text="\ud83d', '\ude00")</answer>\ud83d']
    events = "".join(f'data: {{"choices": [{{"index": 0, "delta": {{"content": "{esc(h)}"}}}}]}}\n\n' for h in halves)
    whole = events + "data: [DONE]\n\n"
    thoughts: list[str] = []

    async def note(thinking: str) -> None:
        thoughts.append(thinking)

    async with ScriptedModel([Raw(whole, "text/event-stream"), Whole("完\ud83d\ude00"), Whole("\ud83d")]) as server:
        model = client(server)
        done = await model.complete(messages(), on_thinking=note)
        assert done.text == '<think>好😀</think><answer>do(action="Type", text="😀")'
        assert "".join(thoughts).encode()
        assert (await model.ask(messages())).text == "完😀"
        assert (await model.transcribe(Image.new("RGB", (20, 20)), "read")) == "\ufffd"
        await model.close()


def esc(text: str) -> str:
    return json.dumps(text)[1:-1]


@pytest.mark.parametrize(
    "said",
    [
        Raw("<html>no</html>"),
        Raw('{"choices": [null]}', "application/json"),
        Raw('{"choices": [{"index": 0}]}', "application/json"),
        Raw('{"choices": [{"message": {"content": [{"type": "text", "text": 7}]}}]}', "application/json"),
    ],
)
async def test_a_plain_answer_of_another_form_is_a_format_error(said: Raw) -> None:
    async with ScriptedModel([said]) as server:
        model = client(server)
        with pytest.raises(errors.ModelFormat):
            await model.transcribe(Image.new("RGB", (20, 20)), "read")
        await model.close()


async def test_thinking_that_was_cut_off_is_no_plain_answer() -> None:
    said = "<think>屏幕上写着7，还是1"
    async with ScriptedModel([Whole(said, finish="length"), Text(said, finish="length")]) as server:
        model = client(server)
        assert await model.transcribe(Image.new("RGB", (20, 20)), "read") == ""
        assert (await model.ask(messages())).text == ""
        await model.close()


@pytest.mark.parametrize("counted", [(0, 0), (-5, 20), (100, 2**40)])
async def test_an_endpoint_that_counts_no_tokens_but_says_so_is_guessed(counted: tuple[int, int]) -> None:
    async with ScriptedModel([Text(REPLY, usage=counted)]) as server:
        model = client(server)
        usage = (await model.complete(messages())).usage
        await model.close()
    assert usage.guessed
    assert 2**31 > usage.tokens_in > usage.tokens_out > 0


async def test_the_check_tells_what_is_there() -> None:
    async with ScriptedModel([f"It says {CHECK_NUMBER}.", "I see nothing", "7"], models=["scripted", "b"]) as server:
        model = client(server)
        good = await model.check()
        blind = await model.check()
        await model.close()
        other = ChatModel(server.url, "unlisted", KEY)
        unlisted = await other.check()
        await other.close()
    assert (good.reachable, good.models, good.name_known, good.can_see) == (True, ("scripted", "b"), True, True)
    assert good.problem is None
    assert (blind.reachable, blind.can_see) == (True, False)
    assert blind.problem is not None
    assert "I see nothing" in fault(blind.problem, "zh")
    assert (unlisted.reachable, unlisted.name_known) == (True, False)


async def test_the_check_tells_of_a_wrong_key() -> None:
    async with ScriptedModel([], api_key="another") as server:
        model = client(server)
        found = await model.check()
        await model.close()
    assert not found.reachable
    assert found.problem is not None
    assert "PHONEDESK_MODEL__API_KEY" in told(found.problem, "en")
    assert KEY not in told(found.problem, "en")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", 0),
        ("temperature", 2.1),
        ("temperature", -0.1),
        ("top_p", 1.01),
        ("frequency_penalty", -2.5),
        ("timeout", 0),
    ],
)
def test_settings_are_checked(name: str, value: float) -> None:
    with pytest.raises(errors.ConfigInvalid, match=name):
        ChatModel("http://127.0.0.1:1/v1", "m", "", **{name: value})  # type: ignore[arg-type]  # any of them


def test_no_secret_is_shown() -> None:
    model = ChatModel("http://user:hidden@127.0.0.1:1/v1", "m", KEY)
    assert KEY not in repr(model)
    assert "hidden" not in repr(model)
    assert "127.0.0.1" in repr(model)
