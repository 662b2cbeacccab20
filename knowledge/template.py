"""Any knowledge service over HTTP, described by a template: the request, and the place of the records in the answer.

A path goes through the answer with dots: ``data.list``, ``0.text``. If a field has several paths with commas between
them, the first with a value counts. Placeholders are ``{query}`` and ``{dataset_id}`` in the address and the body,
``{token}`` and ``{dataset_id}`` in headers. In the body they are filled in after it was read as JSON, and in the
address they are percent-encoded, so a customer's text stays inside its value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from pydantic_core import PydanticCustomError

from agent_core.errors import (
    ConfigInvalid,
    KnowledgeAuth,
    KnowledgeError,
    KnowledgeNotFound,
    KnowledgeNotReady,
    KnowledgeQuota,
    KnowledgeUnreachable,
)
from agent_core.ports import Record
from knowledge.config import PLACEHOLDER, Template, check_placeholders, strings_in
from knowledge.http_client import Names, ServiceProblem, cut_query, missing, unknown_form, without_scheme
from knowledge.service import Hit, RemoteKnowledge, best, records_of

MAX_QUERY = 1000  # characters
SETTINGS = "PHONEDESK_KNOWLEDGE__HTTP__"
_ERRORS: Mapping[str, type[KnowledgeError]] = {
    "key": KnowledgeAuth,
    "quota": KnowledgeQuota,
    "not_found": KnowledgeNotFound,
    "not_ready": KnowledgeNotReady,
    "network": KnowledgeUnreachable,
    "query": KnowledgeError,
}
_LEAST_SECRET = 6  # characters; masking a shorter header value would blot out whole messages
_MISSING = object()


class TemplateKnowledge(RemoteKnowledge):
    """A service described by a template. The URL is the complete address of the call.

    If no header contains ``{token}``, a token is sent as ``Authorization: Bearer …``.
    """

    name = "http"

    def __init__(
        self, url: str, dataset_id: str = "", token: str = "", *, template: Template | None = None, **shared: Any
    ) -> None:
        self._template = template or Template()
        self.method = self._template.method
        super().__init__(url, dataset_id, token, **shared)

    def _request(self, query: str) -> tuple[str, object]:
        values = {**self._values, "query": cut_query(query, MAX_QUERY)}
        url = _filled(self._url, {name: quote(value, safe="") for name, value in values.items()})
        return url, None if self.method == "GET" else _filled_all(self._template.body, values)

    # -- the template and the values beside it

    def _address(self, base_url: str, dataset_id: str, names: Names) -> str:
        self._values = {"dataset_id": dataset_id}
        template = self._template
        try:
            check_placeholders(base_url, {"query", "dataset_id"})
        except PydanticCustomError as error:
            raise ConfigInvalid(
                f"{error}.",
                advice=f"Correct {names.base_url}.",
                key="knowledge_template",
                base_url=names.base_url,
                **(error.context or {}),
            ) from None
        sent = [base_url, *([] if template.method == "GET" else strings_in(template.body))]
        if not any("{query}" in text for text in sent):
            raise ConfigInvalid(
                "The knowledge template sends the query nowhere: neither the body nor the URL holds {query}.",
                advice=f"Correct {SETTINGS}BODY, or write {{query}} into {names.base_url}.",
                key="knowledge_no_query",
                base_url=names.base_url,
                body=f"{SETTINGS}BODY",
            )
        sent += [value.get_secret_value() for value in template.headers.values()]
        if not dataset_id and any("{dataset_id}" in text for text in sent):
            raise missing("dataset", names.dataset_id)
        return base_url

    def _headers(self, token: str, names: Names) -> tuple[Mapping[str, str], Sequence[str]]:
        bare = without_scheme(token)
        templates = {name: value.get_secret_value() for name, value in self._template.headers.items()}
        if any("{token}" in value for value in templates.values()):
            if not bare:
                raise missing("token", names.token)
        elif bare and "authorization" not in {name.lower() for name in templates}:
            templates["Authorization"] = "Bearer {token}"
        headers = {name: _filled(value, {**self._values, "token": bare}) for name, value in templates.items()}
        return headers, [bare, *(value for value in headers.values() if len(value) >= _LEAST_SECRET)]

    # -- the answer

    def _find_problem(self, status: int, answer: Any) -> ServiceProblem | None:
        template, good = self._template, 200 <= status < 300
        message = _text(_find(answer, template.message_path))
        if not template.error_path:
            return None if good else ServiceProblem("", message)
        found = _find(answer, template.error_path)
        nothing = found is _MISSING or found is None or found is False or found in ("", [], {})
        value = "" if nothing else _text(found) or "error"
        if good and value == template.ok_value:
            return None
        kind = template.error_kinds.get(value)
        error = _ERRORS[kind] if kind else (KnowledgeError if good else None)
        return ServiceProblem(value, message, error)

    def _records(self, answer: Any) -> Sequence[Record]:
        template = self._template
        found = _find(answer, template.records)
        if found is None:
            return ()
        if not isinstance(found, list):
            raise unknown_form(
                f"there is no list at {template.records or 'its top'!r}.", advice=f"Check {SETTINGS}RECORDS."
            )
        found = best(found, self._score, scale=template.score_scale)
        if found and not any(_find(raw, template.text) is not _MISSING for raw in found):
            raise unknown_form(f"no record has anything at {template.text!r}.", advice=f"Check {SETTINGS}TEXT.")
        hits = [self._hit(raw) for raw in found]
        return records_of(hits, provider=self.name, min_score=self._min_score, scale=template.score_scale)

    def _hit(self, raw: Any) -> Hit:
        template = self._template
        text, question = _text(_find(raw, template.text)), _part(raw, template.question)
        return Hit(
            text=text,
            question="" if question == text else question,
            id=_part(raw, template.id),
            document=_part(raw, template.source),
            score=self._score(raw),
        )

    def _score(self, raw: Any) -> object:
        value = _find(raw, self._template.score) if self._template.score else None
        return self._of_types(value) if isinstance(value, list) else value

    def _of_types(self, scores: list[Any]) -> object:
        """Return the score of the first type that the template names; None if there is none.

        Scores by rank or by words do not measure how well a record fits, so the first one is not simply taken.
        """
        kinds = [score for score in scores if isinstance(score, dict) and isinstance(score.get("type"), str)]
        by_type = {score["type"]: score.get("value") for score in kinds}
        wanted = [name.strip() for name in self._template.score_types.split(",") if name.strip()]
        return next((by_type[name] for name in wanted if name in by_type), None)


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Fill in all values at once: a placeholder inside a value stays as it is."""
    return PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


def _filled_all(value: Any, values: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _filled(value, values)
    if isinstance(value, Mapping):
        return {key: _filled_all(inner, values) for key, inner in value.items()}
    return [_filled_all(inner, values) for inner in value] if isinstance(value, list) else value


def _find(value: Any, paths: str) -> Any:
    """Return the value at the first path that has one; otherwise None or ``_MISSING``."""
    found: Any = _MISSING
    for path in paths.split(","):
        at = _at(value, [key for key in path.strip().split(".") if key])
        if at is not _MISSING and at not in (None, ""):
            return at
        found = at if found is _MISSING else found
    return found


def _at(value: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return _MISSING
    return value


def _part(raw: Any, paths: str) -> str:
    """Return the text at ``paths``; "" if a record has none there."""
    return _text(_find(raw, paths)) if paths else ""


def _text(value: Any) -> str:
    """Return a text or a number as text; "" for anything else."""
    if isinstance(value, str):
        return value.strip()
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""
