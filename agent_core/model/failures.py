"""What went wrong at a model's endpoint, as one of our errors; never with a key in it."""

from __future__ import annotations

import re
import time
from email.utils import parsedate_to_datetime
from typing import Any, cast

import httpx2
import openai

from agent_core import errors

_LONGEST = 300  # characters of an endpoint's own words that are passed on
_KEY_LIKE = re.compile(r"(?i)\b(?:bearer\s+\S+|sk-[\w*.-]+)")
_REFUSED = re.compile(r"(?i)content[_ ]?(?:filter|policy|management)|data_inspection|sensitive|moderation|unsafe|1301")
_SPENT = re.compile(r"(?i)insufficient|balance|arrears|quota")
_TAGS = re.compile(r"<[^>]*>")


class Failures:
    """Makes the errors of one model; ``api_key`` is what is taken out of every text."""

    def __init__(self, name: str, api_key: str) -> None:
        self._name = name
        self._api_key = api_key

    def _clean(self, text: str) -> str:
        if self._api_key:
            text = text.replace(self._api_key, "***")
        text = _KEY_LIKE.sub("***", _TAGS.sub(" ", text))
        return " ".join(text.split())[:_LONGEST]

    def of(self, error: Exception) -> errors.ModelError:
        """``error`` of the library as ours; ``retry_after`` (seconds) is set where the server said it."""
        if isinstance(error, openai.APIStatusError):
            return self._of_status(error)
        if isinstance(error, TimeoutError | openai.APITimeoutError | httpx2.TimeoutException):
            return errors.ModelTimeout(f"The model {self._name} did not answer in time.")
        if isinstance(error, openai.APIConnectionError | httpx2.HTTPError | httpx2.StreamError):
            return errors.ModelUnreachable(f"The connection to the model {self._name} could not be made or broke off.")
        if isinstance(error, openai.APIResponseValidationError | ValueError):
            return errors.ModelFormat(f"The answer of {self._name} is not in the chat completions form.")
        words = self._clean(str(error))
        if isinstance(error, openai.APIError):  # an error event inside the stream
            return self._in_stream(error, words)
        return errors.ModelError(f"The model {self._name} failed: {words}")

    def _of_status(self, error: openai.APIStatusError) -> errors.ModelError:
        status = error.status_code
        words = f"HTTP {status} from the model {self._name}: {self._clean(error.message)}"
        made: errors.ModelError
        if status in {401, 403}:
            made = errors.ModelAuth(words)
        elif status == 404:
            made = errors.ModelFormat(words)
        elif status in {402, 429}:
            made = errors.ModelQuota(words)
        elif status in {408, 504}:
            made = errors.ModelTimeout(words)
        elif status >= 500:
            made = errors.ModelUnreachable(words)
        elif _REFUSED.search(f"{error.code} {error.message}"):
            made = errors.ModelRefused(words)
        elif _SPENT.search(str(error.code)):
            made = errors.ModelQuota(words)
        else:
            made = errors.ModelFormat(words)
        cast("Any", made).retry_after = retry_after(error.response.headers)  # what the retry table looks for
        return made

    def _in_stream(self, error: openai.APIError, words: str) -> errors.ModelError:
        if _REFUSED.search(f"{error.code} {error.message}"):
            return errors.ModelRefused(f"The model {self._name} refused: {words}")
        if str(error.code) in {"429", "rate_limit_exceeded", "insufficient_quota"}:
            return errors.ModelQuota(f"The model {self._name} refuses more: {words}")
        return errors.ModelUnreachable(f"The model {self._name} failed in the middle of its reply: {words}")

    def check_ending(self, reason: str | None, refusal: str | None) -> None:
        """ModelRefused where the provider ended the reply for its content."""
        if refusal or reason in {"content_filter", "sensitive"}:
            raise errors.ModelRefused(
                f"The model {self._name} refused the content. {self._clean(refusal or '')}".strip()
            )

    def empty(self) -> errors.ModelError:
        return errors.ModelFormat(f"The model {self._name} answered with nothing.")

    def not_json(self, body: str) -> errors.ModelError:
        return errors.ModelFormat(
            f"The endpoint of {self._name} answered with something that is no chat completion: {self._clean(body)[:80]}"
        )


def retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds from the header ``Retry-After``: a number or a date; None where it is not there or not readable."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None
