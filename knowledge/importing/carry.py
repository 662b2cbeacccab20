"""An import against the embedded knowledge base: what it would do, then doing it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agent_core.errors import InputRejected
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import Entry
from knowledge.importing.drafts import Draft
from knowledge.importing.plan import ImportPlan, OnDouble, decide


async def plan_import(base: EmbeddedKnowledge, name: str, drafts: Sequence[Draft]) -> ImportPlan:
    """What would happen if doubles are skipped; nothing is written."""
    return await asyncio.to_thread(decide, name, drafts, await base.list(), "skip")


async def carry_out(base: EmbeddedKnowledge, plan: ImportPlan, *, doubles: OnDouble = "skip") -> ImportPlan:
    """Write it, all or nothing. Returns what was done: with doubles replaced it changes more than ``plan`` shows.

    InputRejected where the base has changed since, so that the plan is no longer what would happen.
    """
    done = plan

    def change(entries: Sequence[Entry]) -> Sequence[Entry]:
        nonlocal done
        done = decide(plan.name, plan.drafts, entries, "skip")
        if done != plan:
            raise InputRejected(
                "The knowledge base has changed since this import was planned; nothing was written.",
                advice="Look at what it would change now, and confirm again.",
                key="base_changed",
            )
        if doubles == "replace":
            done = decide(plan.name, plan.drafts, entries, doubles)
        return [*(added.entry for added in done.added), *(changed.new for changed in done.changed)]

    await base.rewrite(change)
    return done
