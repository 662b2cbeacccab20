"""The models of the settings: the one that operates the phone, its fallbacks, and their prices.

A client that is replaced while in use is closed when its last user is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import structlog

from agent_core.errors import MODEL_NAMES, ModelNames
from agent_core.model.base import Model, Usage
from agent_core.model.client import ChatModel
from agent_core.model.fallback import Fallbacks, Mind
from agent_core.model.profile import ModelProfile, profile_of_model
from agent_core.model.prompt import tools_of
from agent_core.model.usage import Meter, Price, Prices
from bot.app.settings.layers import Settings
from bot.app.settings.sections import EndpointSettings, PriceSettings
from knowledge.choosing import ModelChooser

FALLBACKS = "PHONEDESK_MODEL__FALLBACKS"
FALLBACK_NAMES = ModelNames(base_url=FALLBACKS, name=FALLBACKS, api_key=FALLBACKS)


def build_model(settings: Settings, meter: Meter | None = None, names: ModelNames = MODEL_NAMES) -> Model:
    """Return the model for runs, with its fallbacks.

    meter: counts each call. names: the names of the first model's settings, for errors.
    """
    wanted = settings.model
    first, *others = endpoints(settings)
    if not others:
        return chat_model(first, settings, meter, names=names)
    minds = [
        Mind(chat_model(endpoint, settings, meter, alone=False, names=one), endpoint_profile(endpoint))
        for endpoint, one in ((first, names), *((other, FALLBACK_NAMES) for other in others))
    ]
    return Fallbacks(minds, again_after=wanted.fallback_seconds, meter=meter)


def endpoints(settings: Settings) -> tuple[EndpointSettings, ...]:
    """Return the model's endpoint and its fallbacks', in the order in which they are asked."""
    return (settings.model, *settings.model.fallbacks)


def chat_model(
    endpoint: EndpointSettings,
    settings: Settings,
    meter: Meter | None = None,
    *,
    timeout: float | None = None,
    alone: bool = True,
    names: ModelNames = MODEL_NAMES,
) -> ChatModel:
    """Return a client for an endpoint.

    timeout: in seconds; an upper bound for the endpoint's own. alone, meter, names: as in ``ChatModel``.
    """
    profile = endpoint_profile(endpoint)
    return ChatModel(
        endpoint.base_url,
        endpoint.name,
        endpoint.api_key.get_secret_value(),
        max_tokens=endpoint.max_tokens,
        temperature=endpoint.temperature,
        top_p=endpoint.top_p,
        frequency_penalty=endpoint.frequency_penalty,
        extra_body=endpoint.extra_body,
        timeout=min(endpoint.timeout_seconds, timeout or endpoint.timeout_seconds),
        dialect=profile.dialect,
        vision=profile.vision,
        tools=tools_of(profile, settings.lang),
        alone=alone,
        meter=meter,
        proxy=settings.model_proxy,
        names=names,
    )


def endpoint_profile(endpoint: EndpointSettings) -> ModelProfile:
    """Return how a model is asked: as the settings say, else by its name."""
    profile = profile_of_model(endpoint.name, endpoint.profile)
    own = {"dialect": endpoint.dialect or profile.dialect, "vision": endpoint.vision and profile.vision}
    return profile.model_copy(update=own)


def model_profile_of(settings: Settings) -> ModelProfile:
    """Return the profile of the model that is asked first."""
    return endpoint_profile(settings.model)


def any_sees(settings: Settings) -> bool:
    """Tell whether one of the models can read pictures."""
    return any(endpoint_profile(endpoint).vision for endpoint in endpoints(settings))


def build_chooser(settings: Settings, meter: Meter | None = None) -> ModelChooser | None:
    """Return the text model that chooses among records; None if there is none, and only sure records are sent."""
    chooser = settings.chooser
    if not chooser.base_url.strip():
        return None
    return ModelChooser(
        chooser.base_url,
        chooser.name,
        chooser.api_key.get_secret_value(),
        timeout=chooser.timeout_seconds,
        compose=chooser.compose,
        max_records=chooser.max_records,
        min_score=chooser.min_score,
        meter=meter,
        proxy=settings.model_proxy,
    )


def unpriced(settings: Settings) -> tuple[str, ...]:
    """Return the models that do not count towards a limit by cost, because the settings have no price for them.

    Empty if there is no such limit.
    """
    if not (settings.limits.day_cost or settings.limits.minute_cost or settings.run.max_cost):
        return ()
    prices = prices_of(settings.price)
    others = (settings.chooser, settings.planner)
    names = [*(one.name for one in endpoints(settings)), *(one.name for one in others if one.base_url.strip())]
    return tuple(name for name in dict.fromkeys(names) if prices.of(name, Usage()) is None)


def prices_of(price: PriceSettings) -> Prices:
    """Return the prices by model; empty if the settings have none."""
    usual = price.tokens_in is not None or price.tokens_out is not None
    default = Price(price.tokens_in or 0.0, price.tokens_out or 0.0, price.tokens_cached) if usual else None
    own = {name: Price(one.tokens_in, one.tokens_out, one.tokens_cached) for name, one in price.models.items()}
    return Prices(own, default, price.currency)


log = structlog.get_logger(__name__)

Close = Callable[[], Awaitable[None]]


class ClientRotation:
    """The rotation of clients: it closes replaced clients once nobody uses them.

    Each replacement begins a new generation. Users from an earlier one may still have the clients of that time.
    """

    def __init__(self) -> None:
        self._generation = 0
        self._users: Counter[int] = Counter()
        self._old: dict[int, Sequence[Close]] = {}  # by the last generation that was given them

    @asynccontextmanager
    async def used(self) -> AsyncIterator[None]:
        """Keep the clients of this moment open until the end of the block."""
        generation = self._generation
        self._users[generation] += 1
        try:
            yield
        finally:
            self._users[generation] -= 1
            await self._close_unused()

    async def replaced(self, old: Sequence[Close]) -> None:
        """Begin a new generation, and close ``old`` when no user of an earlier one is left."""
        self._old[self._generation] = old
        self._generation += 1
        await self._close_unused()

    async def close(self) -> None:
        """Close all replaced clients, even if somebody uses them."""
        self._users.clear()
        await self._close_unused()

    async def _close_unused(self) -> None:
        oldest = min((generation for generation, users in self._users.items() if users > 0), default=self._generation)
        for generation in [known for known in self._old if known < oldest]:
            for close in self._old.pop(generation):
                try:
                    await close()
                except Exception as error:  # noqa: BLE001 - it is no longer used, and the others must be closed
                    log.warning("client_not_closed", error=repr(error))
