"""Contacts over both databases."""

from __future__ import annotations

import pytest

from storage.contacts import Contacts, ContactThere, NewContact
from storage.engine import Database
from tests.support.clock import Clock


async def test_add_edit_remove(db: Database, clock: Clock) -> None:
    contacts = Contacts(db)
    added = await contacts.add(NewContact("qq", "11", number="12345", tags=("老客户",), note="n"))
    assert (added.app, added.name, added.serial, added.number, added.tags) == ("qq", "11", "", "12345", ["老客户"])
    clock.move(seconds=1)
    changed = await contacts.edit(added.id, number="", tags=())
    assert changed is not None
    assert (changed.number, changed.tags, changed.note, changed.name) == ("", [], "n", "11")
    assert changed.updated_at > changed.created_at
    assert await contacts.get("qq", "11") == changed
    assert await contacts.remove(added.id)
    assert not await contacts.remove(added.id)
    assert await contacts.edit(added.id, note="x") is None


async def test_a_name_stands_once_an_app_and_phone(db: Database) -> None:
    contacts = Contacts(db)
    await contacts.add(NewContact("qq", "11"))
    other = await contacts.add(NewContact("qq", "12"))
    await contacts.add(NewContact("wechat", "11"))
    await contacts.add(NewContact("qq", "11", serial="a"))
    with pytest.raises(ContactThere):
        await contacts.add(NewContact("qq", "11", number="1"))
    with pytest.raises(ContactThere):
        await contacts.edit(other.id, name="11")
    assert [(row.app, row.name, row.serial) for row in await contacts.all()] == [
        ("qq", "11", ""), ("qq", "11", "a"), ("qq", "12", ""), ("wechat", "11", ""),
    ]  # fmt: skip


async def test_the_row_of_the_phone_wins(db: Database) -> None:
    contacts = Contacts(db)
    assert await contacts.find("qq", "11", "a") is None
    anywhere = await contacts.add(NewContact("qq", "11", number="1"))
    here = await contacts.add(NewContact("qq", "11", serial="a", number="2"))
    await contacts.add(NewContact("qq", "12", serial="b"))
    assert await contacts.find("qq", "11", "a") == here
    assert await contacts.find("qq", "11", "b") == anywhere
    assert await contacts.find("qq", "11", "") == anywhere
    assert await contacts.find("qq", "12", "a") is None
    assert await contacts.find("qq", "1", "a") is None


async def test_search(db: Database) -> None:
    contacts = Contacts(db)
    await contacts.add(NewContact("qq", "客户_一", number="12345", tags=("老客户", "批发")))
    await contacts.add(NewContact("qq", "客户二", note="总问运费", tags=("老",)))
    assert [row.name for row in await contacts.all(text="_")] == ["客户_一"]
    assert [row.name for row in await contacts.all(text="234")] == ["客户_一"]
    assert [row.name for row in await contacts.all(text="运费")] == ["客户二"]
    assert [row.name for row in await contacts.all(tag="老")] == ["客户二"]
    assert await contacts.all(app="wechat") == []
