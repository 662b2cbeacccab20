from __future__ import annotations

from storage.engine import Database
from storage.learnt import LearntApps


async def test_what_was_learnt_is_of_one_phone_app_and_version(db: Database, other_db: Database) -> None:
    learnt = LearntApps(db)
    assert await learnt.get("p1", "wechat", "8.0.58") is None
    await learnt.put("p1", "wechat", "8.0.58", {"sends_by": "enter"})
    assert await LearntApps(other_db).get("p1", "wechat", "8.0.58") == {"sends_by": "enter"}
    for key in (("p2", "wechat", "8.0.58"), ("p1", "qq", "8.0.58"), ("p1", "wechat", "8.0.59")):
        assert await learnt.get(*key) is None


async def test_what_was_learnt_later_takes_its_place(db: Database) -> None:
    learnt = LearntApps(db)
    await learnt.put("p1", "wechat", "8.0.58", {"sends_by": "enter", "theme": "dark"})
    await learnt.put("p1", "wechat", "8.0.58", {"sends_by": "button"})
    assert await learnt.get("p1", "wechat", "8.0.58") == {"sends_by": "button"}
