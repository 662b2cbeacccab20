"""Builds the knowledge providers that the configuration names, and the chain that asks several of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import assert_never

import structlog

from agent_core import retry
from agent_core.errors import ConfigInvalid, ConfigMissing, KnowledgeError
from agent_core.ports import KnowledgeBase, Record
from agent_core.proxies import Route
from agent_core.reply.choosing import asks_for, sure_record
from agent_core.texts import Listed
from knowledge.config import PREFIX, PROVIDERS, KnowledgeConfig, OwnConfig, Provider, Remote, providers_of
from knowledge.dify import DifyKnowledge
from knowledge.embedded import EmbeddedKnowledge
from knowledge.http_client import Names
from knowledge.ragflow import RagflowKnowledge
from knowledge.template import TemplateKnowledge

log = structlog.get_logger(__name__)


class ChainKnowledge:
    """A chain of providers. ``providers`` are asked in order, and closed with the chain."""

    def __init__(self, providers: Sequence[KnowledgeBase]) -> None:
        self.providers = tuple(providers)

    @property
    def name(self) -> str:
        return ",".join(provider.name for provider in self.providers)

    async def close(self) -> None:
        errors: list[Exception] = []
        for provider in self.providers:
            try:
                await provider.close()
            except Exception as error:  # noqa: BLE001 - the others are to be closed, too; raised below
                errors.append(error)
        if errors:
            raise errors[0]

    async def retrieve(self, query: str) -> Sequence[Record]:
        """Return the records of the first provider that is sure or has the very question; else all, none of them sure.

        They are sorted by score if each has one, else in the order of the providers; each text occurs once. A failing
        provider is ignored if another is sure; otherwise the first failure is raised after all others were asked.
        """
        failure: KnowledgeError | None = None
        found: list[Record] = []
        for provider in self.providers:
            try:
                records = await provider.retrieve(query)
            except KnowledgeError as error:
                log.warning("knowledge_provider_failed", provider=provider.name, kind=error.kind, error=error.message)
                failure = failure or error
                continue
            if sure_record(records) is not None or any(asks_for(query, record) for record in records):
                return records
            found.extend(records)
        if failure is not None:
            raise failure
        return _together(found)


def _together(found: Sequence[Record]) -> Sequence[Record]:
    """Merge the records. No provider was sure of its own, so none is sure, whatever comes first now."""
    scores = [record.score for record in found if record.score is not None]
    if len(scores) == len(found):
        found = sorted(found, key=lambda record: -(record.score or 0.0))
    by_text: dict[str, Record] = {}
    for record in found:
        by_text.setdefault(record.text.strip(), replace(record, sure=False))
    return tuple(by_text.values())


def embedded_in(base: KnowledgeBase) -> EmbeddedKnowledge | None:
    """Return the embedded store, alone or in a chain; None if there is none."""
    parts = base.providers if isinstance(base, ChainKnowledge) else (base,)
    return next((part for part in parts if isinstance(part, EmbeddedKnowledge)), None)


def build(
    config: KnowledgeConfig, *, embedded: EmbeddedKnowledge | None = None, sleep: retry.Sleep = asyncio.sleep
) -> KnowledgeBase:
    """Return the provider, or the chain of them; nothing is opened or asked yet.

    embedded: the shop's own entries, which a configuration that names this provider needs.

    Raises ConfigMissing if a value that a provider needs is blank, ConfigInvalid if one is unusable.
    """
    known = remotes(config, sleep=sleep) | ({"embedded": embedded} if embedded else {})
    providers = [known[name] for name in providers_of(config.provider)]
    return providers[0] if len(providers) == 1 else ChainKnowledge(providers)


def remotes(config: KnowledgeConfig, *, sleep: retry.Sleep = asyncio.sleep) -> dict[Provider, KnowledgeBase]:
    """Return the providers that are services, by their names. Raises what ``build`` raises."""
    try:
        names = providers_of(config.provider)
    except ValueError as error:
        raise ConfigInvalid(
            f"{error}.",
            advice=f"Correct {PREFIX}PROVIDER.",
            key="knowledge_provider",
            name=f"{PREFIX}PROVIDER",
            known=Listed(PROVIDERS),
        ) from None
    return {name: _one(name, config, sleep) for name in names if name != "embedded"}


def routes(config: KnowledgeConfig) -> tuple[Route, ...]:
    """Return how each remote provider is reached, in order. Raises ConfigInvalid if a proxy is none."""
    names = providers_of(config.provider)
    return tuple(config.proxy.route(_remote(name, config)[0].base_url) for name in names if name != "embedded")


def _one(provider: Remote, config: KnowledgeConfig, sleep: retry.Sleep) -> KnowledgeBase:
    remote, names = _remote(provider, config)
    needed = ("base_url",) if provider == "http" else ("base_url", "dataset_id")
    missing = [name for name in needed if not str(getattr(remote, name)).strip()]
    if missing:
        raise ConfigMissing(
            f"The knowledge provider {provider} needs {', '.join(missing)}.",
            advice=f"Set {', '.join(getattr(names, name) for name in missing)}.",
            key="knowledge_missing",
            names=Listed(getattr(names, name) for name in missing),
        )
    made: Callable[..., KnowledgeBase]
    if provider == "dify":
        made = DifyKnowledge
    elif provider == "ragflow":
        made = RagflowKnowledge
    elif provider == "http":
        made = partial(TemplateKnowledge, template=config.template)
    else:
        assert_never(provider)
    return made(
        remote.base_url,
        remote.dataset_id,
        remote.token,
        timeout=config.timeout if remote.timeout is None else remote.timeout,
        min_score=config.min_score if remote.min_score is None else remote.min_score,
        names=names,
        proxy=config.proxy,
        sleep=sleep,
    )


def _remote(provider: Remote, config: KnowledgeConfig) -> tuple[OwnConfig, Names]:
    """Return the values of this provider, and the names of the settings that they come from.

    A provider with its own address does not use the dataset and token of the shared address.
    """
    own = config.own.get(provider, OwnConfig())
    alone = bool(own.base_url.strip())
    prefix = f"{PREFIX}{provider.upper()}__"
    dataset_own, token_own = alone or bool(own.dataset_id.strip()), alone or bool(own.token.strip())
    remote = OwnConfig(
        base_url=own.base_url if alone else config.base_url,
        dataset_id=own.dataset_id if dataset_own else config.dataset_id,
        token=own.token if token_own else config.token,
        timeout=own.timeout,
        min_score=own.min_score,
    )
    names = Names(
        base_url=f"{prefix if alone else PREFIX}BASE_URL",
        dataset_id=f"{prefix if dataset_own else PREFIX}DATASET_ID",
        token=f"{prefix if token_own else PREFIX}TOKEN",
    )
    return remote, names
