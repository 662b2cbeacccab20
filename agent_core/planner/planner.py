"""The planner: a text model with tools. The library behind it is imported when the first plan is made."""

from __future__ import annotations

import asyncio
import importlib
import string
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import httpx2
import structlog

from agent_core.errors import ModelNames, PhonedeskError
from agent_core.model.endpoint import MODEL_PROXY, bounded_client
from agent_core.model.failures import REQUEST_ERRORS, Failures
from agent_core.model.usage import Meter
from agent_core.planner.base import Executor, Memory, PlanDone, PlanEvent, PlanFailed, PlannerTask
from agent_core.planner.tools import PlannerTool
from agent_core.planner.words import texts
from agent_core.proxies import ProxySetting
from agent_core.texts import Lang, told

if TYPE_CHECKING:
    from agents import Agent

    from agent_core.planner.library import Work

log = structlog.get_logger(__name__)

# One proxy setting applies to all models.
NAMES = ModelNames.of("PLANNER")

Tell = Callable[[PlanEvent], Awaitable[None]]


class Planner:
    """A planner that makes any number of plans, also at once, with one endpoint and one set of tools.

    Call ``close`` when no plan is running.

    steps: the most steps of an executor call, for the prompt.
    timeout: seconds without a word from the model.
    meter: gets each call of the model.
    proxy: decides how ``base_url`` is reached.
    """

    def __init__(
        self,
        base_url: str,
        name: str,
        api_key: str,
        *,
        tools: Sequence[PlannerTool],
        max_turns: int = 50,
        steps: int = 5,
        timeout: float = 60.0,
        meter: Meter | None = None,
        proxy: ProxySetting = MODEL_PROXY,
    ) -> None:
        self._meter = meter or Meter()
        self._name = name
        self._tools = tuple(tools)
        self._max_turns = max_turns
        self._steps = steps
        route = proxy.route(base_url)
        self._failures = Failures(base_url, name, api_key, route, NAMES)
        self._url, self._api_key = base_url, api_key
        self._http = bounded_client(httpx2.Timeout(timeout), route)
        self._timeout = timeout
        self._agents: dict[Lang, Agent[Work]] = {}

    def __repr__(self) -> str:
        return f"Planner({self._name!r})"

    async def close(self) -> None:
        await self._http.aclose()

    async def plan(self, order: PlannerTask, executor: Executor, memory: Memory, tell: Tell) -> PlanDone | PlanFailed:
        """Plan the order and have it done; ``tell`` gets each event but the last, which is returned.

        A failure becomes the last event. A cancellation reaches the executor's calls, and is raised after they ended.
        """
        # The first import takes seconds, and the event loop must not block.
        await asyncio.to_thread(importlib.import_module, "agent_core.planner.library")
        from agents.exceptions import AgentsException, MaxTurnsExceeded, UserError
        from openai import OpenAIError

        from agent_core.planner.library import Work, follow, make_agent, make_client, request_error

        if order.lang not in self._agents:
            self._agents[order.lang] = make_agent(
                self._name,
                make_client(self._url, self._api_key, self._http),
                self._meter,
                self._tools,
                order.lang,
                steps=self._steps,
                timeout=self._timeout,
            )
        agent, work = self._agents[order.lang], Work(executor, tell, order)
        try:
            said = await follow(agent, work, memory, max_turns=self._max_turns)
        except MaxTurnsExceeded:
            return PlanDone(texts(order.lang).max_turns, success=False)
        except PhonedeskError as error:
            return PlanFailed(told(error, order.lang))
        except OpenAIError as error:
            return PlanFailed(self._of_endpoint(request_error(error), order.lang))
        except REQUEST_ERRORS as error:
            return PlanFailed(self._of_endpoint(error, order.lang))
        except AgentsException as error:
            cause = error.__cause__
            if isinstance(cause, PhonedeskError):
                return PlanFailed(told(cause, order.lang))
            if isinstance(error, UserError):  # a bug of ours, which the library has wrapped
                kind = type(cause or error).__name__
                log.error("plan_crashed", model=self._name, error=kind)
                return PlanFailed(string.Template(texts(order.lang).crashed).substitute(why=kind))
            log.warning("plan_failed", model=self._name, error=repr(error))
            return PlanFailed(self._of_endpoint(ValueError(str(error)), order.lang))  # about what the model said
        return PlanDone(said or texts(order.lang).nothing_said, success=True)

    def _of_endpoint(self, error: Exception, lang: Lang) -> str:
        """Return the problem with the endpoint, with the names of the planner's own settings."""
        made = self._failures.of(error)
        self._meter.failed(self._name, made)
        return told(made, lang)
