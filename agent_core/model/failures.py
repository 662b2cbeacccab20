"""What went wrong at a model's endpoint, as one of our errors; never with a key in it."""

from __future__ import annotations

import math
import re
import time
from email.utils import parsedate_to_datetime
from typing import Any, cast

import httpx2
import openai
from socksio.exceptions import SOCKSError  # of a proxy that speaks no SOCKS; the HTTP client lets it through

from agent_core import errors
from agent_core.model.http import refusal_in
from agent_core.proxies import Route

_LONGEST = 300  # characters of an endpoint's own words that are passed on
_LONGEST_READ = 4000  # characters of them that are looked at
_KEY_LIKE = re.compile(r"(?i)\b(?:bearer\s+\S+|sk-[\w*.-]+)")
# How providers say that they refuse the content: OpenAI and Azure (content_filter, content_policy_violation,
# invalid_prompt with "usage policy", ResponsibleAIPolicyViolation), Zhipu (1301), DashScope (data_inspection_failed),
# DeepSeek ("Content Exists Risk"), Volcengine (…SensitiveContentDetected), gateways (sensitive_words_detected,
# prompt_blocked, moderation).
_REFUSED_CODES = frozenset({"1301", "invalid_prompt", "prompt_blocked", "policy_violation"})
LIBRARY_ERRORS = (openai.OpenAIError, httpx2.HTTPError, httpx2.StreamError, SOCKSError)
_REFUSED = re.compile(
    r"(?i)content[_ ]?(?:filter|policy|management|exists risk)|data_?inspection|inappropriate content"
    r"|sensitive[_ ]?(?:content|words?|info)|\bunsafe\b|usage polic|PolicyViolation|敏感"
)
# These words may as well be about the account, or a setting: then nothing of the request was refused.
_MAYBE_REFUSED = re.compile(r"(?i)moderation|违规")
_ACCOUNT = re.compile(r"(?i)account|auth|banned|suspend|not (?:enabled|supported)|账号|账户|帐号|封禁|未开通")
_REFUSED_ENDINGS = ("content_filter", "content-filter", "sensitive", "safety", "prohibited", "refusal", "blocklist")
_UNKNOWN = {"model_not_found", "1211"}  # the second is Zhipu's
_FORBIDDEN = frozenset({400, 403, 422, 451})  # the statuses with which content is refused
_QUOTA = re.compile(r"(?i)insufficient|balance|arrear|quota")
# The account is empty: waiting does not help. Codes of OpenAI, Moonshot, DashScope, Zhipu (1113); by the words only
# where they can mean nothing else, for "quota" is also what is allowed a minute.
_SPENT = re.compile(r"(?i)insufficient|balance|arrear|billing|exceeded_current_quota|\b1113\b")
_SPENT_WORDS = re.compile(r"(?i)insufficient[_ ]balance|余额不足|欠费")
_TAGS = re.compile(r"<[^>]*>")


class Failures:
    """Makes the errors of one model, which is asked by ``route``; ``api_key`` is what is taken out of every text."""

    def __init__(self, name: str, api_key: str, route: Route) -> None:
        self._name = name
        self._api_key = api_key
        self._route = route

    def _clean(self, text: str) -> str:
        text = text[:_LONGEST_READ]
        if self._api_key:
            text = text.replace(self._api_key, "***")
        text = _KEY_LIKE.sub("***", _TAGS.sub(" ", text))
        return " ".join(text.split())[:_LONGEST]

    def of(self, error: Exception) -> errors.ModelError:
        """``error`` of the library as ours; ``retry_after`` (seconds) is set where the server said it."""
        if (refusal := refusal_in(error)) is not None:
            return errors.ModelFormat(f"The answer of {self._name} was not read: {refusal}.")
        if isinstance(error, openai.APIStatusError):
            return self._of_status(error)
        if isinstance(error, TimeoutError | openai.APITimeoutError | httpx2.TimeoutException):
            return self._timeout(f"The model {self._name} did not answer in time.")
        if isinstance(error, openai.APIConnectionError | httpx2.HTTPError | httpx2.StreamError | SOCKSError):
            return self._unreachable(f"The connection to the model {self._name} could not be made or broke off.")
        if isinstance(error, openai.APIResponseValidationError | ValueError | RecursionError):
            return errors.ModelFormat(f"The answer of {self._name} is not in the chat completions form.")
        words = self._clean(str(error))
        if isinstance(error, openai.APIError):  # an error event inside the stream
            return self._in_stream(error, words)
        return errors.ModelError(f"The model {self._name} failed: {words}")

    def _of_status(self, error: openai.APIStatusError) -> errors.ModelError:
        status = error.status_code
        words = f"HTTP {status} from the model {self._name}: {self._clean(error.message)}"
        made: errors.ModelError
        if status < 400:
            made = self._redirected(error)
        elif status in _FORBIDDEN and _is_refused(error):
            made = self.refused(words)
        elif status in {401, 403}:
            made = errors.ModelAuth(words)
        elif status == 404 or str(error.code) in _UNKNOWN:
            made = errors.ModelUnknown(words)
        elif status == 402 or (status in {400, 429} and _is_spent(error)):
            made = errors.ModelSpent(words)
        elif status == 429:
            made = errors.ModelQuota(words)
        elif status in {408, 504}:
            made = self._timeout(words)
        elif status >= 500 or status == 407:  # also what a proxy answers by itself
            made = self._unreachable(words)
        elif _QUOTA.search(str(error.code)):
            made = errors.ModelQuota(words)
        else:
            made = errors.ModelFormat(words)
        cast("Any", made).retry_after = retry_after(error.response.headers)  # what the retry table looks for
        return made

    def _timeout(self, message: str) -> errors.ModelTimeout:
        if not self._route.proxy:
            return errors.ModelTimeout(message)
        advice = f"{errors.ModelTimeout.default_advice} {self._route.advice}"
        return errors.ModelTimeout(message, advice=advice, key="timeout_by_proxy", **self._values())

    def _unreachable(self, message: str) -> errors.ModelUnreachable:
        if not self._route.proxy:
            return errors.ModelUnreachable(message)
        return errors.ModelUnreachable(message, advice=self._route.advice, key="unreachable_by_proxy", **self._values())

    def _values(self) -> dict[str, str]:
        return {"model": self._name, **self._route.values}

    def _redirected(self, error: openai.APIStatusError) -> errors.ModelError:
        """The key and the pictures go to the address that the owner has set, and to no other."""
        host = self._clean(error.response.headers.get("location", ""))
        return errors.ModelFormat(
            f"The endpoint of {self._name} redirects (HTTP {error.status_code}) to {host or 'nowhere'}; "
            "a redirect is not followed.",
            advice="Set PHONEDESK_MODEL__BASE_URL to the address of the chat completions themselves.",
        )

    def _in_stream(self, error: openai.APIError, words: str) -> errors.ModelError:
        if _is_refused(error):
            return self.refused(words)
        if _is_spent(error):
            return errors.ModelSpent(f"The model {self._name} refuses more: {words}")
        if str(error.code) in {"429", "rate_limit_exceeded"}:
            return errors.ModelQuota(f"The model {self._name} refuses more: {words}")
        return errors.ModelUnreachable(f"The model {self._name} failed in the middle of its reply: {words}")

    def check_ending(self, reason: str | None, refusal: str | None) -> None:
        """ModelRefused where the provider ended the reply for its content; ModelUnreachable where it failed inside."""
        if reason == "network_error":  # Zhipu
            raise errors.ModelUnreachable(f"The model {self._name} failed in the middle of its reply.")
        if refusal or (reason or "").lower().startswith(_REFUSED_ENDINGS):
            raise self.refused(self._clean(refusal or ""))

    def refused(self, words: str) -> errors.ModelRefused:
        """The provider refuses this content; ``words`` are its own."""
        said = f"The model {self._name} refused the content. {words}".strip()
        return errors.ModelRefused(said, key="refused", model=self._name, words=words)

    def empty(self) -> errors.ModelError:
        return errors.ModelFormat(f"The model {self._name} answered with nothing.")

    def not_json(self, body: str) -> errors.ModelError:
        return errors.ModelFormat(
            f"The endpoint of {self._name} answered with something that is no chat completion: {self._clean(body)[:80]}"
        )


def _is_refused(error: openai.APIError) -> bool:
    codes = {str(error.code), str(error.type), str(_inner(error.body, "code"))}
    words = f"{' '.join(codes)} {error.message}"
    if codes & _REFUSED_CODES or _REFUSED.search(words):
        return True
    return _MAYBE_REFUSED.search(words) is not None and _ACCOUNT.search(words) is None


def _is_spent(error: openai.APIError) -> bool:
    return _SPENT.search(f"{error.code} {error.type}") is not None or _SPENT_WORDS.search(error.message) is not None


def _inner(body: object, name: str) -> object:
    """Of the error inside an error, as Azure has it."""
    inner = body.get("innererror") if isinstance(body, dict) else None
    return inner.get(name) if isinstance(inner, dict) else None


def retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds from the header ``Retry-After``: a number or a date; None where it is not there or not readable."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        pass
    else:
        return max(0.0, seconds) if math.isfinite(seconds) else None
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None
