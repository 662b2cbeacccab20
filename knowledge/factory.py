"""Builds the knowledge providers that the configuration names."""

from __future__ import annotations

import asyncio
from typing import assert_never

from agent_core import retry
from agent_core.errors import ConfigInvalid, ConfigMissing
from agent_core.ports import KnowledgeBase
from agent_core.proxies import Route
from agent_core.texts import Listed
from knowledge.chain import ChainKnowledge
from knowledge.config import PREFIX, PROVIDERS, KnowledgeConfig, OwnConfig, Provider, Remote, providers_of
from knowledge.dify import DifyKnowledge
from knowledge.embedded import EmbeddedKnowledge
from knowledge.http_client import Names
from knowledge.ragflow import RagflowKnowledge
from knowledge.template import TemplateKnowledge


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
    timeout = config.timeout if remote.timeout is None else remote.timeout
    min_score = config.min_score if remote.min_score is None else remote.min_score
    values = (remote.base_url, remote.dataset_id, remote.token)
    if provider == "dify":
        return DifyKnowledge(
            *values, timeout=timeout, min_score=min_score, names=names, proxy=config.proxy, sleep=sleep
        )
    if provider == "ragflow":
        return RagflowKnowledge(
            *values, timeout=timeout, min_score=min_score, names=names, proxy=config.proxy, sleep=sleep
        )
    if provider == "http":
        return TemplateKnowledge(
            *values,
            template=config.template,
            timeout=timeout,
            min_score=min_score,
            names=names,
            proxy=config.proxy,
            sleep=sleep,
        )
    assert_never(provider)


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
