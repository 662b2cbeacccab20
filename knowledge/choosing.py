"""Lets a text model choose among records.

The model may pick one record, which is sent word for word, or none. With ``compose`` it may put a short reply together
from several; that is sent only if code finds all of it in them. Then a separate request asks which of the customer's
words are left unanswered: if there are any, or if anything goes wrong, a person is asked.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any, TypeVar

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from agent_core.errors import ConfigInvalid, ConfigMissing, ModelError, ModelNames
from agent_core.model.api_types import ApiCompletion, read_answer
from agent_core.model.endpoint import MODEL_PROXY, ModelEndpoint, Parameters, estimated_if_cut_off, time_limits
from agent_core.model.failures import REQUEST_ERRORS, Failures, tried
from agent_core.model.stream import plain_text, usage_of
from agent_core.model.usage import Meter
from agent_core.ports import Chosen, Record
from agent_core.proxies import ProxySetting
from agent_core.retry import Sleep
from agent_core.texts import load_texts
from knowledge.grounding import problems

log = structlog.get_logger(__name__)

_MAX_TOKENS = 2000  # a thinking model thinks before its one line
_LONGEST_WORDS = 1000  # characters of the customer that are shown
_LONGEST_SHOWN = 1500  # characters of a record that are shown
_FENCE = re.compile(r"\A```(?:json)?\s*(.*?)\s*```\Z", re.DOTALL | re.IGNORECASE)
_HAN = re.compile(r"[\u3400-\u9fff]")
_LATIN = re.compile(r"[A-Za-z]")


class _Pick(BaseModel):
    """The model's line: one number, or several with a reply if it may compose; 0 and [] mean none."""

    model_config = ConfigDict(extra="forbid", strict=True)

    pick: list[int] = Field(max_length=10)
    reply: str = Field(default="", max_length=2000)

    @field_validator("pick", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool):
            return [value] if value else []
        return value


class _Check(BaseModel):
    """The model's second line: the customer's words that the record does not answer; "" for none."""

    model_config = ConfigDict(extra="forbid", strict=True)

    missing: str = Field(max_length=2000)


_Line = TypeVar("_Line", _Pick, _Check)


class _Refusal(Exception):
    """The model's answer cannot be used; the message is for the log."""


NAMES = ModelNames.of("CHOOSER")


class ModelChooser:
    """A ``Chooser`` with an OpenAI-compatible text model.

    timeout: seconds for the whole answer, including retries.
    compose: whether it may put a reply together from several records.
    max_records, min_score: of the first ``max_records`` records, those are shown that score at least ``min_score`` or
    have no score.
    meter: is told of every call.
    proxy: decides how ``base_url`` is reached.
    """

    def __init__(
        self,
        base_url: str,
        name: str,
        api_key: str = "",
        *,
        timeout: float = 20.0,
        compose: bool = False,
        max_records: int = 5,
        min_score: float = 0.3,
        meter: Meter | None = None,
        proxy: ProxySetting = MODEL_PROXY,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            said = f"{NAMES.base_url} must begin with http:// or https://."
            raise ConfigInvalid(said, key="model_no_address", base_url=NAMES.base_url)
        if not name.strip():
            raise ConfigMissing(f"{NAMES.name} is empty.", key="model_no_name", name=NAMES.name)
        self._name = name
        self._timeout = timeout
        self._compose = compose
        self._max_records = max_records
        self._min_score = min_score
        self._meter = meter or Meter()
        self._sleep = sleep
        self._parameters = Parameters()
        route = proxy.route(base_url)
        self._failures = Failures(base_url, name, api_key, route, NAMES)
        self._endpoint = ModelEndpoint(base_url, api_key, time_limits(timeout), route)

    def __repr__(self) -> str:
        return f"ModelChooser({self._name!r})"

    async def close(self) -> None:
        await self._endpoint.close()

    async def choose(self, words: str, query: str, records: Sequence[Record]) -> Chosen | None:
        """Return the record or text of the model, if it then finds none of the customer's words unanswered."""
        shown = self._shown(records)
        if not shown:
            return None
        deadline = asyncio.get_running_loop().time() + self._timeout
        prompt = "choosing.compose" if self._compose else "choosing.pick"
        try:
            answer = await self._ask(prompt, _as_data(words, query, shown), words, deadline)
            chosen = self._chosen(_read(answer, _Pick), shown)
            if chosen is None:
                return None
            checked = await self._ask("choosing.check", _as_check(words, chosen), words, deadline)
            missing = _read(checked, _Check).missing.strip()
            if not missing:
                return chosen
            log.info("choice_leaves_something_open", model=self._name, record=chosen.record.id, missing=missing)
        except ModelError as error:
            log.warning("chooser_failed", model=self._name, kind=error.kind, error=error.message)
        except _Refusal as refusal:
            log.warning("choice_refused", model=self._name, reason=str(refusal))
        return None

    def _shown(self, records: Sequence[Record]) -> Sequence[Record]:
        return [record for record in records[: self._max_records] if record.text.strip() and self._is_near(record)]

    def _is_near(self, record: Record) -> bool:
        """Tell whether a record scores high enough to be shown.

        A lexical score counts common letters, and a paraphrase may have none, so it excludes no record.
        """
        lexical = record.source.startswith("embedded:")
        return record.score is None or lexical or record.score >= self._min_score

    # -- the model

    async def _ask(self, prompt: str, data: str, words: str, deadline: float) -> str:
        lang = "en" if _LATIN.search(words) and not _HAN.search(words) else "zh"
        asked = [
            {"role": "system", "content": load_texts("knowledge.texts", lang)[prompt].strip()},
            {"role": "user", "content": data},
        ]
        await self._meter.admit(self._name)
        now = asyncio.get_running_loop().time
        return await tried(
            lambda: self._once(asked, deadline),
            sleep=self._sleep,
            patience=lambda: deadline - now(),
            failed=lambda error: self._meter.failed(self._name, error),
        )

    async def _once(self, asked: list[dict[str, str]], deadline: float) -> str:
        request = {"model": self._name, "messages": asked, "temperature": 0.0, "max_tokens": _MAX_TOKENS}
        answer = await self._answered(request, asked, deadline)
        choice = answer.choices[0] if answer.choices else None
        if choice is None or choice.message is None:
            raise self._failures.empty()
        said = choice.message.text
        await self._meter.count(self._name, usage_of(answer.usage, asked, lambda: said))
        self._failures.check_ending(choice.finish_reason, choice.message.refusal)
        if choice.finish_reason == "length":
            raise _Refusal("cut off")
        return plain_text(said)

    async def _answered(self, request: dict[str, Any], asked: list[dict[str, str]], deadline: float) -> ApiCompletion:
        given_up = estimated_if_cut_off(self._meter, self._name, asked, _MAX_TOKENS)
        try:
            async with given_up, asyncio.timeout_at(deadline):
                body = await self._parameters.ask(self._endpoint.complete, request)
                return read_answer(body, self._failures)
        except (*REQUEST_ERRORS, ValueError, RecursionError) as error:
            raise self._failures.of(error) from None  # not chained: it may hold the request with its key

    # -- its answer

    def _chosen(self, pick: _Pick, shown: Sequence[Record]) -> Chosen | None:
        if not pick.pick:
            log.info("nothing_chosen", model=self._name, records=len(shown))
            return None
        numbers = list(dict.fromkeys(pick.pick))
        if not all(1 <= number <= len(shown) for number in numbers):
            raise _Refusal("out of range")
        picked = [shown[number - 1] for number in numbers]
        reply = pick.reply.strip()
        if not self._compose and (reply or len(picked) > 1):
            raise _Refusal("composed without leave")
        texts = [record.text.strip() for record in picked]
        if reply and reply not in texts:
            wrong = problems(reply, texts)
            if not wrong:
                return Chosen(reply, picked[0], composed=True, sources=tuple(picked))
            log.warning("composed_reply_refused", model=self._name, problems=wrong, records=len(picked))
        if len(picked) > 1:
            if reply in texts:
                return Chosen(reply, picked[texts.index(reply)])
            raise _Refusal("several records and no reply that stands in them")
        return Chosen(texts[0], picked[0])


def _as_data(words: str, query: str, records: Sequence[Record]) -> str:
    """Return the data for the choice as one JSON object, so that nothing inside a text can end it."""
    listed = [
        {"n": number, "question": record.question[:_LONGEST_SHOWN], "answer": record.text[:_LONGEST_SHOWN]}
        for number, record in enumerate(records, start=1)
    ]
    data = {"customer": words[:_LONGEST_WORDS], "query": query[:_LONGEST_WORDS], "records": listed}
    return json.dumps(data, ensure_ascii=False)


def _as_check(words: str, chosen: Chosen) -> str:
    """Return the data for the check of the chosen answer, without earlier questions, because this check is separate."""
    record = {"question": chosen.record.question[:_LONGEST_SHOWN], "answer": chosen.text[:_LONGEST_SHOWN]}
    return json.dumps({"customer": words[:_LONGEST_WORDS], "record": record}, ensure_ascii=False)


def _read(answer: str, shape: type[_Line]) -> _Line:
    fenced = _FENCE.match(answer)
    try:
        return shape.model_validate_json(fenced[1] if fenced else answer)
    except ValidationError:
        raise _Refusal("unreadable") from None
