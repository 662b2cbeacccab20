"""Who a program is, by its ``Authorization`` header."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.desk.actors import AccessDenied, Role
from bot.desk.history_views import HistoryAsked
from bot.desk.keys import DeskKeys, actor_of_key
from storage.api_keys import ApiKeys
from storage.people import Audit
from tests.support.shop import Shop


async def test_a_key_is_an_actor_with_its_role_and_its_phones(shop: Shop) -> None:
    key, row = await ApiKeys(shop.db).add("ide", role="operator", lang="en", serials=["S1"])
    for header in (f"Bearer {key}", f"bearer   {key} "):
        actor = await actor_of_key(shop.db, header)
        assert actor is not None
        assert (actor.id, actor.channel, actor.name, actor.lang) == (f"key:{row.id}", "api", "ide", "en")
        assert (actor.role, actor.phones) == (Role.OPERATOR, ("S1",))


async def test_runs_name_the_key_that_began_them(shop: Shop) -> None:
    _, row = await ApiKeys(shop.db).add("ide", role="operator")
    run_id = await shop.service.submit("打开设置", requested_by=f"key:{row.id}")
    view = await shop.desk.runs.get(run_id)
    assert view is not None
    assert view.by == "ide"
    owner = await shop.person(Role.OWNER)
    page = await shop.desk.history.runs(owner, HistoryAsked())
    assert [run.by for run in page.runs] == ["ide"]


@pytest.mark.parametrize("form", ["", "Bearer", "Bearer ", "{key}", "Basic {key}", "Bearer {key}x", "Bearer é{key}"])
async def test_anything_else_is_nobody(shop: Shop, form: str) -> None:
    key, _ = await ApiKeys(shop.db).add("ide", role="owner")
    assert await actor_of_key(shop.db, form.format(key=key)) is None
    assert await actor_of_key(shop.db, "Bearer " + key * 100) is None


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
async def test_only_an_owner_has_keys(shop: Shop, role: Role) -> None:
    who, keys = await shop.person(role), DeskKeys(shop.desk.context)
    for call in (keys.add(who, "x", Role.VIEWER), keys.all(who), keys.remove(who, "x")):
        with pytest.raises(AccessDenied):
            await call
    refused = await Audit(shop.db).refused()
    assert [row.command for row in refused] == ["keys remove", "keys list", "keys add"]
    assert await ApiKeys(shop.db).all() == []


async def test_the_last_use_is_shown_in_the_desks_zone(shop: Shop) -> None:
    shop.desk.context.timezone = "America/New_York"
    key, _ = await ApiKeys(shop.db).add("ide", role="viewer")
    assert await actor_of_key(shop.db, f"Bearer {key}") is not None
    (row,) = await DeskKeys(shop.desk.context).all(await shop.person(Role.OWNER))
    assert row.last_used_at is not None
    assert row.last_used_at == shop.clock()
    assert row.last_used_at.utcoffset() in (timedelta(hours=-4), timedelta(hours=-5))
