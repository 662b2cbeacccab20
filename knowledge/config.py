"""The settings of the knowledge providers: which ones, where they are, and the general one's template."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr
from pydantic_core import PydanticCustomError

from agent_core.proxies import ProxySetting
from agent_core.texts import Listed

KNOWLEDGE_PROXY = ProxySetting("PHONEDESK_KNOWLEDGE__PROXY")  # for callers that set no proxy
Remote = Literal["dify", "ragflow", "http"]
Provider = Literal["embedded", Remote]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)
PREFIX = "PHONEDESK_KNOWLEDGE__"


ErrorKind = Literal["key", "quota", "not_found", "not_ready", "network", "query"]
PLACEHOLDER = re.compile(r"\{(\w+)\}")  # in a template's texts
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def _good_paths(value: str) -> str:
    for path in value.split(","):
        if path.strip() and not re.fullmatch(r"[^.\s]+(\.[^.\s]+)*", path.strip()):
            raise PydanticCustomError(
                "path_form",
                "“{said}” is no path; write keys with dots between them, such as data.list",
                {"said": path.strip()},
            )
    return value


def _good_headers(headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
    for name, secret in headers.items():
        value = secret.get_secret_value()
        if not _HEADER_NAME.fullmatch(name):
            raise PydanticCustomError("header_name", "“{said}” is no name of a header", {"said": name})
        if not (value.isascii() and value.isprintable()):
            raise PydanticCustomError(
                "header_value", "the value of {name} holds characters that no header has", {"name": name}
            )
        check_placeholders(value, {"token", "dataset_id"})
    return headers


def _good_body(body: dict[str, Any]) -> dict[str, Any]:
    for text in strings_in(body):
        check_placeholders(text, {"query", "dataset_id"})
    return body


def check_placeholders(text: str, known: set[str]) -> None:
    """Raise PydanticCustomError if ``text`` holds a placeholder that is not among the ``known`` ones."""
    unknown = set(PLACEHOLDER.findall(text)) - known
    if unknown:
        said, offered = (Listed("{" + name + "}" for name in sorted(names)) for names in (unknown, known))
        raise PydanticCustomError(
            "placeholders", "{said} is no placeholder; there are {known}", {"said": said, "known": offered}
        )


def strings_in(value: Any) -> list[str]:
    """Return every text in a JSON value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for inner in value.values() for text in strings_in(inner)]
    return [text for inner in value for text in strings_in(inner)] if isinstance(value, list) else []


Paths = Annotated[str, AfterValidator(_good_paths)]


class Template(BaseModel):
    """The format of a service's requests and answers.

    error_path, ok_value: with ``ok_value``, any other value at ``error_path`` is an error; without it, any value that
    is not empty.
    error_kinds: the meaning of a value there.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: Literal["POST", "PUT", "GET"] = "POST"
    headers: Annotated[dict[str, SecretStr], AfterValidator(_good_headers)] = Field(default_factory=dict)
    body: Annotated[dict[str, Any], AfterValidator(_good_body)] = Field(default_factory=lambda: {"query": "{query}"})
    records: Paths = "records"
    text: Paths = "text"
    question: Paths = "question"
    id: Paths = "id"
    source: Paths = "source"
    score: Paths = "score"
    score_types: str = ""  # for scores that are lists of {type, value}: the types that count, the best first
    score_scale: float = Field(default=1.0, gt=0, allow_inf_nan=False)  # the score that means 1
    error_path: Paths = ""
    ok_value: str = ""
    message_path: Paths = "message"
    error_kinds: dict[str, ErrorKind] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OwnConfig:
    """The values of one remote provider; "" and None mean those of all providers."""

    base_url: str = ""
    dataset_id: str = ""
    token: str = field(default="", repr=False)
    timeout: float | None = None
    min_score: float | None = None


@dataclass(frozen=True, slots=True)
class KnowledgeConfig:
    """Plain values, each already checked.

    provider: a name, or several with commas between them in the order in which they are asked.
    base_url and the values after it: apply to every remote provider that has no ``own`` ones.
    timeout: in seconds.
    """

    provider: str = "embedded"
    base_url: str = ""
    dataset_id: str = ""
    token: str = field(default="", repr=False)
    timeout: float = 10.0
    min_score: float = 0.6
    own: Mapping[Provider, OwnConfig] = field(default_factory=dict)
    proxy: ProxySetting = KNOWLEDGE_PROXY  # of all of them
    template: Template = field(default_factory=Template)


def providers_of(written: str) -> tuple[Provider, ...]:
    """Return the providers of a comma-separated list.

    Raises PydanticCustomError if a name is unknown or occurs twice, or if there is none.
    """
    names = [name.strip().lower() for name in written.split(",") if name.strip()]
    known: dict[str, Provider] = {provider: provider for provider in PROVIDERS}
    unknown = [name for name in names if name not in known]
    offered = {"known": Listed(PROVIDERS)}
    several = "there are {known}, or several with commas between them"
    if not names:
        raise PydanticCustomError("provider_none", f"no knowledge provider is named; {several}", offered)
    if unknown:
        said = f"there is no knowledge provider “{{said}}”; {several}"
        raise PydanticCustomError("provider_unknown", said, {"said": unknown[0][:100], **offered})
    if len(set(names)) < len(names):
        raise PydanticCustomError("provider_twice", "a knowledge provider is named twice")
    return tuple(known[name] for name in names)
