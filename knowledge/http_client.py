"""The client of every knowledge service over HTTP: one call with JSON in and out, and its possible errors.

A call has a time limit for all its tries, reads at most 4 MB as they arrive, follows no redirect (the token goes to the
configured host and to no other), is retried by the table of ``agent_core.retry``, and ends in the result or in an error
of the KnowledgeError tree without any secret.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import httpx2
from pydantic import ValidationError

from agent_core import retry
from agent_core.errors import (
    ConfigInvalid,
    ConfigMissing,
    KnowledgeAuth,
    KnowledgeError,
    KnowledgeNotFound,
    KnowledgeNotReady,
    KnowledgeQuota,
    KnowledgeUnreachable,
)
from agent_core.http import REQUEST_ERRORS, cause_of, retry_after
from agent_core.proxies import ProxySetting
from agent_core.texts import Listed
from agent_core.texts.clean import clean_text

MAX_BODY = 4 * 1024 * 1024  # bytes
_MAX_FAILURE = 64 * 1024  # bytes that are read of a failed call's answer
_MOST_BRACKETS = 400_000  # 4 MB can hold 1.4 million empty objects: half a second of the event loop, and 140 MB
_MOST_PAUSES = 2  # at the service's request
_LONGEST_MESSAGE = 200  # characters of a service's own words
_SENTENCE_END = re.compile(r"[。！？!?；;\n]|[.](?=\s)")
_CLAUSE_END = re.compile(r"[，,、\s]")
SAID: Mapping[type[KnowledgeError], tuple[str, str]] = {  # in English, and the key of the text
    KnowledgeQuota: ("The knowledge service refuses more for now", "knowledge_says_later"),
    KnowledgeAuth: ("The knowledge service refused the token", "knowledge_says_token"),
    KnowledgeNotFound: ("The knowledge service does not know the dataset", "knowledge_says_dataset"),
    KnowledgeNotReady: ("The dataset cannot be asked yet", "knowledge_says_not_yet"),
    KnowledgeUnreachable: ("The knowledge service failed", "knowledge_says_failed"),
    KnowledgeError: ("The knowledge service refused the query", "knowledge_says_no"),
}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the settings that the error tells a person to check."""

    base_url: str = "PHONEDESK_KNOWLEDGE__BASE_URL"
    dataset_id: str = "PHONEDESK_KNOWLEDGE__DATASET_ID"
    token: str = "PHONEDESK_KNOWLEDGE__TOKEN"  # noqa: S105 - the name of a setting


@dataclass(frozen=True, slots=True)
class ServiceProblem:
    """A problem that a service reports, in its own words. If ``error`` is None, the HTTP status decides the error."""

    code: str = ""
    message: str = ""
    error: type[KnowledgeError] | None = None


class Endpoint:
    """One service, at the host of ``url``. Connections are opened by the first call and closed by ``close``.

    timeout: seconds for a call with all its tries.
    secrets: are removed from every message.
    find_problem: takes the HTTP status and the JSON of an answer (None if there is none); returns its problem, or None.
    proxy: decides how the host is reached; raises ConfigInvalid if it names a proxy that is none.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        secrets: Sequence[str],
        find_problem: Callable[[int, Any], ServiceProblem | None],
        method: str,
        timeout: float,
        names: Names,
        proxy: ProxySetting,
        sleep: retry.Sleep,
    ) -> None:
        self._route = proxy.route(url)
        self._method = method
        self._headers = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
        self._secrets = sorted(filter(None, secrets), key=len, reverse=True)
        self._find_problem = find_problem
        self._timeout = timeout
        self._names = names
        self._http: httpx2.AsyncClient | None = None
        self._sleep = sleep

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def ask(self, url: str, body: object, read: Callable[[Any], T]) -> T:
        """Return the service's JSON answer as read by ``read``; ``body`` None sends none.

        A ValidationError of ``read`` means that the answer has an unknown form. Raises KnowledgeError after the
        retries, and after a pause that the service requests, if there is time for them.
        """
        now = asyncio.get_running_loop().time
        deadline = now() + self._timeout
        pauses = 0
        while True:
            try:
                return await retry.with_retries(
                    lambda: self._once(url, body, read, deadline),
                    sleep=self._sleep,
                    patience=lambda: deadline - now(),
                )
            except KnowledgeQuota as error:
                pause: float | None = getattr(error, "retry_after", None)
                if pause is None or pause > deadline - now() or pauses >= _MOST_PAUSES:
                    raise
            pauses += 1
            await self._sleep(pause)

    async def _once(self, url: str, body: object, read: Callable[[Any], T], deadline: float) -> T:
        status, raw, pause = await self._send(url, body, deadline)
        # In a thread, because parsing 4 MB may block the event loop for too long.
        return await asyncio.to_thread(self._understood, status, raw, pause, read)

    def _understood(self, status: int, raw: bytes, pause: float | None, read: Callable[[Any], T]) -> T:
        if not 200 <= status < 300:
            raise self._failure(status, raw, pause)
        answer = _json(raw)
        problem = self._find_problem(status, answer)
        if problem is not None:
            raise self._of_problem(status, problem)
        try:
            return read(answer)
        except ValidationError as error:
            where = ".".join(str(part) for part in error.errors()[0]["loc"]) or "the answer"
            raise unknown_form(f"{where} is not what it must be.") from None

    async def _send(self, url: str, body: object, deadline: float) -> tuple[int, bytes, float | None]:
        """Return status, body, and the seconds that the service asks to wait."""
        try:
            async with (
                asyncio.timeout_at(deadline),
                self._client().stream(self._method, url, headers=self._headers, json=body) as response,
            ):
                pause = retry_after(response.headers.get("Retry-After", ""))
                return response.status_code, await _body(response), pause
        except TimeoutError:
            raise self._unreachable(
                f"The knowledge service did not answer within {self._timeout:g} s.",
                "knowledge_late",
                seconds=f"{self._timeout:g}",
            ) from None
        except REQUEST_ERRORS as error:
            # not chained and not quoted in full: an error of the client can contain the request's headers
            cause = None if self._route.proxy else cause_of(error)
            why = cause or type(error).__name__
            key = f"knowledge_not_reached_{cause}" if cause else "knowledge_not_reached"
            raise self._unreachable(f"The knowledge service cannot be reached ({why}).", key, why=why) from None

    def _unreachable(self, message: str, key: str, **values: object) -> KnowledgeUnreachable:
        values = {**values, "base_url": self._names.base_url}
        if self._route.proxy:
            return KnowledgeUnreachable(message, advice=self._route.advice, key=key, **values, **self._route.values)
        advice = f"Check {self._names.base_url} and that the service runs."
        return KnowledgeUnreachable(message, advice=advice, key=key, **values)

    def _client(self) -> httpx2.AsyncClient:
        """Return the client, without cookies and time limits of its own: ``ask`` has one for everything."""
        if self._http is None:
            self._http = httpx2.AsyncClient(
                timeout=None,
                proxy=self._route.proxy or None,
                trust_env=False,
                verify=httpx2.create_ssl_context(),  # reads the location of the certificates from the environment
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            )
        return self._http

    def _failure(self, status: int, raw: bytes, pause: float | None) -> KnowledgeError:
        try:
            answer = _json(raw)
        except KnowledgeUnreachable:
            answer = None
        error = self._of_problem(status, self._find_problem(status, answer) or ServiceProblem(), page=answer is None)
        if pause is not None:
            cast("Any", error).retry_after = pause  # read by the retry table
        return error

    def _of_problem(self, status: int, problem: ServiceProblem, *, page: bool = False) -> KnowledgeError:
        said = f"HTTP {status}"
        if problem.code or problem.message:
            said += self._masked(f" ({_one_line(problem.code)}: {_one_line(problem.message)})")[:_LONGEST_MESSAGE]
        if problem.error is None and 300 <= status < 400:
            return KnowledgeUnreachable(
                f"The knowledge service redirects elsewhere: {said}.",
                advice=f"Set {self._names.base_url} to the address that it redirects to.",
                key="knowledge_redirects",
                said=said,
                base_url=self._names.base_url,
            )
        kind = problem.error or _of_status(status)
        what, key = SAID[kind]
        if kind is KnowledgeUnreachable:
            return self._unreachable(f"{what}: {said}.", key, said=said)
        to_check = self._to_check(kind, page=page)
        return kind(
            f"{what}: {said}.",
            advice=f"Check {' and '.join(to_check)}." if to_check else None,
            key=key,
            said=said,
            names=Listed(to_check),
        )

    def _to_check(self, kind: type[KnowledgeError], *, page: bool) -> list[str]:
        """Return the settings that are likely to be wrong."""
        names = self._names
        if kind is KnowledgeAuth:
            return [names.token]
        if kind is KnowledgeNotFound:  # a page instead of JSON: the address is more likely wrong than the dataset
            return [names.base_url, names.dataset_id] if page else [names.dataset_id]
        return []

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def unknown_form(what: str, *, advice: str | None = None) -> KnowledgeUnreachable:
    return KnowledgeUnreachable(
        f"The knowledge service answered in an unknown form: {what}", advice=advice, key="knowledge_form", what=what
    )


def missing(what: str, setting: str) -> ConfigMissing:
    """Return the error of a value that a service needs."""
    said = f"The knowledge {what} is missing."
    return ConfigMissing(said, advice=f"Set {setting}.", key="knowledge_missing", names=setting)


def checked_url(url: str, names: Names) -> str:
    """Return ``url`` without surrounding spaces.

    Raises ConfigInvalid if it is not an http address, or holds a password.
    """
    url = url.strip()
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise ConfigInvalid(
            "The knowledge base URL must begin with http:// or https:// and name a host.",
            advice=f"Check {names.base_url}.",
            key="knowledge_no_address",
            base_url=names.base_url,
        )
    if parts.username or parts.password:
        raise ConfigInvalid(
            "The knowledge base URL must not hold a name or a password.",
            advice=f"Take it out of {names.base_url}.",
            key="knowledge_login",
            base_url=names.base_url,
        )
    return url


def checked_token(token: str, names: Names) -> str:
    """Return ``token`` without surrounding spaces; "" if there is none. Raises ConfigInvalid if it can be no token."""
    token = token.strip()
    if not (token.isascii() and token.isprintable()):
        raise ConfigInvalid(
            "The knowledge token holds characters that no token has.",
            advice=f"Set {names.token} again.",
            key="knowledge_bad_token",
            token=names.token,
        )
    return token


def without_scheme(token: str) -> str:
    """Return ``token`` without the word Bearer before it."""
    return token[len("bearer ") :].strip() if token.lower().startswith("bearer ") else token


def cut_query(query: str, limit: int) -> str:
    """Return ``query`` cut to ``limit`` characters: after a sentence, a clause, or anywhere if need be."""
    query = query.strip()
    if len(query) <= limit:
        return query
    head = query[:limit]
    for pattern in (_SENTENCE_END, _CLAUSE_END):
        ends = [match.end() for match in pattern.finditer(head)]
        if ends and ends[-1] >= limit // 3:
            return head[: ends[-1]].strip()
    return head


def _of_status(status: int) -> type[KnowledgeError]:
    if status in {402, 429}:
        return KnowledgeQuota
    if status in {401, 403}:
        return KnowledgeAuth
    if status == 404:
        return KnowledgeNotFound
    return KnowledgeUnreachable if status >= 500 or status in {407, 408} else KnowledgeError


async def _body(response: httpx2.Response) -> bytes:
    """Read the body, or only the beginning of the body of an error. It is never decompressed."""
    good = 200 <= response.status_code < 300
    most = MAX_BODY if good else _MAX_FAILURE
    if response.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        if not good:
            return b""  # the status says enough
        raise KnowledgeUnreachable(
            "The knowledge service answered with packed data, although it was asked not to.",
            advice="Turn compression off in the service, or in the proxy before it.",
            key="knowledge_packed",
        )
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > most:
            if not good:
                break
            raise KnowledgeUnreachable("The knowledge service answered with more than 4 MB.", key="knowledge_too_long")
    return bytes(body[:most])


def _one_line(said: str) -> str:
    """Return a service's own words as one line that can be shown and stored."""
    return " ".join(clean_text(said[: 10 * _LONGEST_MESSAGE]).split())


def _json(body: bytes) -> Any:
    if body.count(b"{") + body.count(b"[") > _MOST_BRACKETS:
        said = f"The knowledge service answered with more than {_MOST_BRACKETS:,} objects."
        raise KnowledgeUnreachable(said, key="knowledge_too_many", most=f"{_MOST_BRACKETS:,}")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        page = body.lstrip()[:1] == b"<"
        what = "an HTML page" if page else "something that is not JSON"
        key = "knowledge_page" if page else "knowledge_no_json"
        raise KnowledgeUnreachable(f"The knowledge service answered with {what}.", key=key) from None
