"""Turns failures of a model's endpoint into our errors, never with a key in them; and retries calls."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from http.client import responses
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import httpx2

from agent_core import errors, http
from agent_core.errors import MODEL_NAMES, ModelError, ModelLimit, ModelNames
from agent_core.model.endpoint import AnswerRefused, EndpointError, StatusError
from agent_core.proxies import Route
from agent_core.retry import Sleep, with_retries

E = TypeVar("E", bound=errors.ModelError)

_LONGEST = 300  # characters of an endpoint's own words that are passed on
_LONGEST_READ = 4000  # characters of them that are examined
_KEY_LIKE = re.compile(r"(?i)\b(?:bearer\s+\S+|sk-[\w*.-]+)")
# How providers say that they refuse the content: OpenAI and Azure (content_filter, content_policy_violation,
# invalid_prompt with "usage policy", ResponsibleAIPolicyViolation), Zhipu (1301), DashScope (data_inspection_failed),
# DeepSeek ("Content Exists Risk"), Volcengine (…SensitiveContentDetected), gateways (sensitive_words_detected,
# prompt_blocked, moderation).
_REFUSED_CODES = frozenset({"1301", "invalid_prompt", "prompt_blocked", "policy_violation"})
_REFUSED = re.compile(
    r"(?i)content[_ ]?(?:filter|policy|management|exists risk)|data_?inspection|inappropriate content"
    r"|sensitive[_ ]?(?:content|words?|info)|\bunsafe\b|usage polic|PolicyViolation|敏感"
)
# These words may also be about the account or a setting, and then the request itself was not refused.
_MAYBE_REFUSED = re.compile(r"(?i)moderation|违规")
_ACCOUNT = re.compile(r"(?i)account|auth|banned|suspend|not (?:enabled|supported)|账号|账户|帐号|封禁|未开通")
_REFUSED_ENDINGS = ("content_filter", "content-filter", "sensitive", "safety", "prohibited", "refusal", "blocklist")
_UNKNOWN = {"model_not_found", "1211"}  # the second is Zhipu's
_FORBIDDEN = frozenset({400, 403, 422, 451})  # the statuses for refused content
_QUOTA = re.compile(r"(?i)insufficient|balance|arrear|quota")
# The account is empty, so waiting does not help. Codes of OpenAI, Moonshot, DashScope, Zhipu (1113); words count only
# if they can mean nothing else, because "quota" may also be a limit per minute.
_SPENT = re.compile(r"(?i)insufficient|balance|arrear|billing|exceeded_current_quota|\b1113\b")
_SPENT_WORDS = re.compile(r"(?i)insufficient[_ ]balance|余额不足|欠费")
_CAUSES: dict[http.Cause, str] = {
    "certificate": "its certificate is not trusted",
    "tls": "it does not speak TLS",
    "name": "the host is not known",
    "refused": "nothing listens there",
}
_VERSION = re.compile(r"/v\d")  # in the path of most endpoints' addresses
_TAGS = re.compile(r"<[^>]*>")


# What a request to an endpoint raises, beside ValueError and RecursionError for what it cannot send or read.
REQUEST_ERRORS = (EndpointError, *http.REQUEST_ERRORS, TimeoutError)


class Failures:
    """The errors of one model at ``url``; ``api_key`` is removed from every text.

    route: how the endpoint is reached; its proxy is named in errors that it may have caused.
    """

    def __init__(self, url: str, name: str, api_key: str, route: Route, names: ModelNames = MODEL_NAMES) -> None:
        self._name = name
        self._api_key = api_key
        self._route = route
        parts = urlsplit(url)
        self._address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"  # without a password
        self._values = {"model": name, "address": self._address, **asdict(names)}

    def _clean(self, text: str) -> str:
        text = text[:_LONGEST_READ]
        if self._api_key:
            text = text.replace(self._api_key, "***")
        text = _KEY_LIKE.sub("***", _TAGS.sub(" ", text))
        text = "".join(letter if letter.isprintable() else " " for letter in text)
        return " ".join(text.split())[:_LONGEST]

    def of(self, error: Exception) -> errors.ModelError:
        """Return a request's ``error`` as ours; ``retry_after`` (seconds) is set if the server gave it."""
        if isinstance(error, AnswerRefused):
            said = f"The answer of {self._name} was not read: {error}."
            return self._made(errors.ModelFormat, said, error.key, **error.values)
        if isinstance(error, StatusError):
            return self._of_status(error)
        if isinstance(error, EndpointError):
            return self._in_stream(error)
        if isinstance(error, TimeoutError | httpx2.TimeoutException):
            return self._made(errors.ModelTimeout, f"The model {self._name} did not answer in time.", "model_no_answer")
        if isinstance(error, http.REQUEST_ERRORS):
            return self._unreachable(error)
        if isinstance(error, ValueError | RecursionError):
            said = f"The answer of {self._name} is not in the chat completions form."
            return self._made(errors.ModelFormat, said, "model_other_form")
        words = self._clean(str(error))
        return self._made(errors.ModelError, f"The model {self._name} failed: {words}", "model_failed", words=words)

    def _unreachable(self, error: Exception) -> errors.ModelUnreachable:
        cause = None if self._route.proxy else http.cause_of(error)
        if cause is None:
            said = f"The connection to the model {self._name} at {self._address} could not be made or broke off."
            return self._made(errors.ModelUnreachable, said, "model_no_connection")
        said = f"There is no connection to the model {self._name} at {self._address}: {_CAUSES[cause]}."
        return self._made(errors.ModelUnreachable, said, f"model_no_connection_{cause}")

    def _made(self, kind: type[E], said: str, key: str, **values: object) -> E:
        """Make the error; mention the proxy if it may be the cause."""
        by_proxy = self._route.proxy and issubclass(kind, errors.ModelUnreachable | errors.ModelTimeout)
        advice = None
        if by_proxy:
            advice = f"{kind.default_advice} {self._route.advice}"
            values = {**values, **self._route.values}
        return kind(said, advice=advice, key=key, **{**self._values, **values})

    def _of_status(self, error: StatusError) -> errors.ModelError:
        status, words = error.status, self._clean(error.words)
        if status < 400:
            made = self._redirected(error)
        elif status in _FORBIDDEN and _is_refused(error):
            made = self.refused(f"HTTP {status}: {words}")
        else:
            words = words or responses.get(status) or responses.get(status // 100 * 100, "?")
            said = f"HTTP {status} from the model {self._name}: {words}"
            meant = self._with_version() if status == 404 else ""
            values: dict[str, object] = {"status": status, "words": words, **({"meant": meant} if meant else {})}
            made = self._made(_kind_of_status(error), said, "model_no_version" if meant else "model_http", **values)
        pause = http.retry_after(error.headers.get("Retry-After", ""))
        cast("Any", made).retry_after = pause  # read by the retry table
        return made

    def _with_version(self) -> str:
        """Return the address as it may be meant, without secrets: with a version, and without what is added to it.

        "" if it is so already.
        """
        base = self._address.rstrip("/").removesuffix("/chat/completions")
        meant = base if _VERSION.search(urlsplit(base).path) else f"{base}/v1"
        return "" if meant == self._address.rstrip("/") else meant

    def _redirected(self, error: StatusError) -> errors.ModelError:
        """Return the error of a redirect. Key and pictures go to the address that the owner set, and to no other."""
        host = self._clean(error.headers.get("location", ""))
        return self._made(
            errors.ModelFormat,
            f"The endpoint of {self._name} redirects (HTTP {error.status}) to {host or 'nowhere'}; "
            "a redirect is not followed.",
            "model_redirects",
            status=error.status,
            to=host or "?",
        )

    def _in_stream(self, error: EndpointError) -> errors.ModelError:
        words = self._clean(error.words)
        if _is_refused(error):
            return self.refused(words)
        if _is_spent(error) or error.code in {"429", "rate_limit_exceeded"}:
            kind = errors.ModelSpent if _is_spent(error) else errors.ModelQuota
            return self._made(kind, f"The model {self._name} refuses more: {words}", "model_refuses_more", words=words)
        said = f"The model {self._name} failed in the middle of its reply: {words}"
        return self._made(errors.ModelUnreachable, said, "model_failed_inside", words=words)

    def check_ending(self, reason: str | None, refusal: str | None) -> None:
        """Raise ModelRefused if the provider ended the reply for its content; ModelUnreachable if it failed inside."""
        if reason == "network_error":  # Zhipu
            said = f"The model {self._name} failed in the middle of its reply."
            raise self._made(errors.ModelUnreachable, said, "model_failed_inside", words=reason)
        if refusal or (reason or "").lower().startswith(_REFUSED_ENDINGS):
            raise self.refused(self._clean(refusal or ""))

    def refused(self, words: str) -> errors.ModelRefused:
        """Return the error of a provider that refuses this content; ``words`` are its own."""
        said = f"The model {self._name} refused the content. {words}".strip()
        return self._made(errors.ModelRefused, said, "refused", words=words)

    def empty(self) -> errors.ModelError:
        return self._made(errors.ModelFormat, f"The model {self._name} answered with nothing.", "model_empty")

    def broke_off(self) -> errors.ModelError:
        said = f"The reply of {self._name} broke off in the middle."
        return self._made(errors.ModelUnreachable, said, "model_broke_off")

    def not_json(self, body: str) -> errors.ModelError:
        words = self._clean(body)[:80]
        said = f"The endpoint of {self._name} answered with something that is no chat completion: {words}"
        return self._made(errors.ModelFormat, said, "model_not_json", words=words)

    def misread(self, said: str, right: str) -> errors.ModelError:
        """Return the error of a model that misread the number in a picture."""
        told = f"The model answers, but read {said!r} in a picture of the number {right}."
        return self._made(errors.ModelFormat, told, "model_misread", read=said, right=right)

    def blind(self) -> errors.ModelError:
        return self._made(
            errors.ModelFormat,
            f"The model {self._name} is set up without vision and cannot read a picture.",
            "model_blind",
        )


def _kind_of_status(error: StatusError) -> type[errors.ModelError]:
    status = error.status
    if status in {401, 403}:
        return errors.ModelAuth
    if status == 404 or error.code in _UNKNOWN:
        return errors.ModelUnknown
    if status == 402 or (status in {400, 429} and _is_spent(error)):
        return errors.ModelSpent
    if status == 429:
        return errors.ModelQuota
    if status in {408, 504}:
        return errors.ModelTimeout
    if status >= 500 or status == 407:  # proxies answer with these, too
        return errors.ModelUnreachable
    return errors.ModelQuota if _QUOTA.search(error.code) else errors.ModelFormat


def _is_refused(error: EndpointError) -> bool:
    words = f"{' '.join(error.codes)} {error.words}"
    if error.codes & _REFUSED_CODES or _REFUSED.search(words):
        return True
    return _MAYBE_REFUSED.search(words) is not None and _ACCOUNT.search(words) is None


def _is_spent(error: EndpointError) -> bool:
    return _SPENT.search(f"{error.code} {error.type}") is not None or _SPENT_WORDS.search(error.words) is not None


T = TypeVar("T")


async def tried(
    call: Callable[[], Awaitable[T]],
    *,
    sleep: Sleep,
    patience: Callable[[], float],
    failed: Callable[[ModelError], None],
) -> T:
    """Run ``call`` with its retries.

    patience: as in ``with_retries``.
    failed: called for each failed try, except those that our own limit stopped.
    """

    async def once() -> T:
        try:
            return await call()
        except ModelError as error:
            if not isinstance(error, ModelLimit):
                failed(error)
            raise

    return await with_retries(once, sleep=sleep, patience=patience)
