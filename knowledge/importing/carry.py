"""Plans an import into the embedded knowledge base, and carries it out.

Only the part of the base that the rows refer to is read and split into words: four rows cost the same in a base of ten
thousand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from agent_core.errors import InputRejected
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import Entry, Forms, Related
from knowledge.importing.drafts import Draft
from knowledge.importing.plan import ImportPlan, OnDouble, decide, wanted_by


async def plan_import(
    base: EmbeddedKnowledge, name: str, drafts: Sequence[Draft], *, drop_aliases: bool = False
) -> ImportPlan:
    """Return the import's result if doubles are skipped; nothing is written. ``drop_aliases``: see ``decide``."""
    forms = Forms()
    wanted = await asyncio.to_thread(wanted_by, drafts, forms)
    related = await base.related(wanted, forms)
    return await asyncio.to_thread(decide, name, drafts, related, "skip", forms, drop_aliases=drop_aliases)


async def carry_out(
    base: EmbeddedKnowledge,
    plan: ImportPlan,
    *,
    doubles: OnDouble = "skip",
    wrote: Callable[[int, int], None] | None = None,
) -> ImportPlan:
    """Write the plan, all or nothing. Returns the changes: with doubles replaced it changes more than ``plan`` shows.

    wrote: is called now and then with the number of entries written, and of all.

    Raises InputRejected if the base has changed since, so that the plan is out of date.
    """
    done = plan

    def change(now: Related) -> Sequence[Entry]:
        nonlocal done

        def decided(on_double: OnDouble) -> ImportPlan:
            return decide(plan.name, plan.drafts, now, on_double, plan.forms, drop_aliases=plan.drop_aliases)

        if now != plan.base and decided("skip") != plan:
            raise InputRejected(
                "The knowledge base has changed since this import was planned; nothing was written.",
                advice="Look at what it would change now, and confirm again.",
                key="base_changed",
            )
        if doubles == "replace":
            done = decided(doubles)
        return [*(added.entry for added in done.added), *(changed.new for changed in done.changed)]

    wanted = await asyncio.to_thread(wanted_by, plan.drafts, plan.forms)
    await base.revise(wanted, plan.forms, change, wrote=wrote)
    return done
