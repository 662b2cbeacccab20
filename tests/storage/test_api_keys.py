"""API keys: shown once, kept as hashes, void once removed."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from storage.api_keys import ApiKeys, NameTaken, hash_of
from storage.engine import Database
from storage.tables import api_keys
from tests.support.clock import Clock


async def test_a_key_is_known_by_its_hash_alone_until_it_is_removed(db: Database, clock: Clock) -> None:
    keys = ApiKeys(db)
    key, row = await keys.add("ide", role="operator", lang="en", serials=["S1"], created_by="terminal")
    other, _ = await keys.add("ci", role="viewer")
    assert (row.name, row.role, row.lang, row.serials, row.last_used_at) == ("ide", "operator", "en", ["S1"], None)
    async with db.read() as connection:
        stored = [dict(found) for found in (await connection.execute(sa.select(api_keys))).mappings()]
    assert key not in repr(stored)
    assert stored[0]["key_hash"] == hash_of(key)
    found = await keys.of(key)
    assert found is not None
    assert found.id == row.id
    for wrong in ("", key[:-1], key + "x", hash_of(key), "ide"):
        assert await keys.of(wrong) is None
    removed = await keys.remove("ide")
    assert removed is not None
    assert removed.id == row.id
    assert await keys.of(key) is None
    assert await keys.remove("ide") is None
    assert [left.name for left in await keys.all()] == ["ci"]
    again, new = await keys.add("ide", role="viewer")
    assert again not in (key, other)
    assert new.id > row.id  # the audit log goes on meaning the old one


async def test_the_last_use_is_written_down_once_a_minute(db: Database, clock: Clock) -> None:
    keys = ApiKeys(db)
    key, _ = await keys.add("ide", role="viewer")
    await keys.of(key)
    first = clock()
    clock.move(seconds=59)
    await keys.of(key)
    assert (await keys.all())[0].last_used_at == first
    clock.move(seconds=1)
    await keys.of(key)
    assert (await keys.all())[0].last_used_at == clock()


async def test_a_name_is_given_once_and_a_role_is_one_that_there_is(db: Database) -> None:
    keys = ApiKeys(db)
    await keys.add("ide", role="viewer")
    with pytest.raises(NameTaken, match="ide"):
        await keys.add("ide", role="owner")
    with pytest.raises(ValueError, match="viewer, operator, owner"):
        await keys.add("other", role="root")
    assert [row.role for row in await keys.all()] == ["viewer"]
