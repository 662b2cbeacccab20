"""Calls of a hostile knowledge service, to be measured in a process of their own. It imports what is measured alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from agent_core.errors import KnowledgeError
from agent_core.ports import KnowledgeBase
from agent_core.reply.choosing import decide
from knowledge.dify import DifyKnowledge
from knowledge.ragflow import RagflowKnowledge
from knowledge.template import TemplateKnowledge


async def ask(
    url: str, token: str, cases: Sequence[str], question: str, timeout: float, together: bool
) -> list[dict[str, Any]]:
    """Ask each provider for each case: what was raised or found, what is sent without a person, and the seconds.

    ``together``: all providers at the same time, which saves time for cases that only wait.
    """
    told: list[dict[str, Any]] = []
    for case in cases:
        bases = (
            DifyKnowledge(f"{url}/{case}", "set", token, timeout=timeout),
            RagflowKnowledge(f"{url}/{case}", "set", token, timeout=timeout),
            TemplateKnowledge(f"{url}/{case}/search", "", token, timeout=timeout),
        )
        asking = [_asked(base, case, question) for base in bases]
        told += await asyncio.gather(*asking) if together else [await one for one in asking]
    return told


async def _asked(base: KnowledgeBase, case: str, question: str) -> dict[str, Any]:
    told: dict[str, Any] = {"case": case, "provider": base.name, "error": "", "message": "", "records": [], "sent": ""}
    begun = time.monotonic()
    try:
        records = await base.retrieve(question)
        chosen = await decide(None, question, question, records)
        told["records"] = [(record.text, record.score, record.sure) for record in records]
        told["sent"] = chosen.text if chosen else ""
    except KnowledgeError as error:
        told |= {"error": type(error).__name__, "message": str(error)}
    finally:
        told["seconds"] = time.monotonic() - begun
        await base.close()
    return told
