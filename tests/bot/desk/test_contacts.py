"""Contacts at the desk."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.desk.actors import AccessDenied, BadRequest, NotFound, Role
from bot.desk.views import ContactView
from tests.support.shop import Shop

ELEVEN = ContactView("qq", "11", "", "12345678", ("老客户",), "n")


async def test_add_list_edit_remove(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    written = ContactView("QQ", " 11 ", "", "１２３４５６７８", ("老客户 ", "老客户"), " n ")
    assert await shop.desk.contacts.add(owner, written) == ELEVEN
    here = await shop.desk.contacts.add(owner, replace(ELEVEN, serial="S1", number="", tags=(), note=""))
    assert await shop.desk.contacts.find(owner) == [ELEVEN, here]
    assert await shop.desk.contacts.find(owner, text="3456") == [ELEVEN]
    assert await shop.desk.contacts.find(owner, tag="老") == []
    changed = await shop.desk.contacts.edit(owner, "11", rename="客户11", number="", tags=["批发"])
    assert changed == replace(ELEVEN, name="客户11", number="", tags=("批发",))
    assert await shop.desk.contacts.remove(owner, "11", serial="S1") == here
    assert await shop.desk.contacts.remove(owner, "客户11") == changed
    assert await shop.desk.contacts.find(owner) == []


async def test_rights(shop: Shop) -> None:
    owner, operator, viewer = [await shop.person(role) for role in (Role.OWNER, Role.OPERATOR, Role.VIEWER)]
    await shop.desk.contacts.add(owner, ELEVEN)
    assert await shop.desk.contacts.find(operator) == [ELEVEN]
    with pytest.raises(AccessDenied):
        await shop.desk.contacts.find(viewer)
    with pytest.raises(AccessDenied):
        await shop.desk.contacts.add(operator, replace(ELEVEN, name="12"))
    with pytest.raises(AccessDenied):
        await shop.desk.contacts.edit(operator, "11", note="x")
    with pytest.raises(AccessDenied):
        await shop.desk.contacts.remove(operator, "11")
    assert await shop.desk.contacts.find(owner) == [ELEVEN]


@pytest.mark.parametrize(
    "wrong",
    [
        {"number": "12a"}, {"number": "1" * 21}, {"number": "+86"}, {"name": " "}, {"name": "a\nb"}, {"name": "x" * 61},
        {"app": "fax"}, {"tags": ("x" * 31,)}, {"note": "x" * 501},
    ],
    ids=str,
)  # fmt: skip
async def test_what_cannot_be_right(shop: Shop, wrong: dict[str, Any]) -> None:
    owner = await shop.person(Role.OWNER)
    with pytest.raises(BadRequest) as caught:
        await shop.desk.contacts.add(owner, replace(ELEVEN, **wrong))
    assert caught.value.advice
    assert await shop.desk.contacts.find(owner) == []


async def test_a_name_that_is_taken_or_unknown(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    await shop.desk.contacts.add(owner, ELEVEN)
    await shop.desk.contacts.add(owner, replace(ELEVEN, name="12"))
    with pytest.raises(BadRequest, match="there already"):
        await shop.desk.contacts.add(owner, ELEVEN)
    with pytest.raises(BadRequest, match="there already"):
        await shop.desk.contacts.edit(owner, "12", rename="11")
    for call in (shop.desk.contacts.remove(owner, "13"), shop.desk.contacts.edit(owner, "11", serial="S1", note="")):
        with pytest.raises(NotFound):
            await call


async def test_ones_own_newest_change_or_removal_is_undone(shop: Shop) -> None:
    owner, other = await shop.person(Role.OWNER), await shop.person(Role.OWNER)
    contacts = shop.desk.contacts
    await contacts.add(owner, ELEVEN)
    here = await contacts.add(owner, replace(ELEVEN, serial="S1", note="here"))
    await contacts.edit(owner, "11", rename="客户11", tags=[], note="")
    assert await contacts.undo(owner, "客户11") == ELEVEN
    with pytest.raises(BadRequest, match="changed since"):
        await contacts.undo(owner, "11")
    await contacts.remove(owner, "11", serial="S1")
    for who, name in ((owner, "11"), (owner, "12"), (other, "11")):
        with pytest.raises(BadRequest, match="nothing to undo"):
            await contacts.undo(who, name, serial="" if name == "11" and who is owner else "S1")
    assert await contacts.undo(owner, "11", serial="S1") == here
    with pytest.raises(BadRequest, match="there already"):
        await contacts.undo(owner, "11", serial="S1")
    assert await contacts.find(owner) == [ELEVEN, here]


async def test_a_change_is_not_undone_if_somebody_has_changed_it_again(shop: Shop) -> None:
    owner, other = await shop.person(Role.OWNER), await shop.person(Role.OWNER)
    contacts = shop.desk.contacts
    await contacts.add(owner, ELEVEN)
    await contacts.edit(owner, "11", note="one")
    newest = await contacts.edit(other, "11", note="two")
    with pytest.raises(BadRequest, match="changed since"):
        await contacts.undo(owner, "11")
    assert await contacts.find(owner) == [newest]
