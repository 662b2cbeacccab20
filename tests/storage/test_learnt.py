from __future__ import annotations

from dataclasses import replace

from agent_core.apps.learnt import AppLook, LearntApp
from storage.engine import Database
from storage.learnt import AppLabels, LearntApps

LEARNT = LearntApp("wechat", "8.0.58", "enter", looks=(AppLook(ground="#ededed"),))


async def test_what_was_learnt_is_of_one_phone_app_and_version(db: Database, other_db: Database) -> None:
    apps = LearntApps(db)
    assert await apps.get("p1", "wechat", "8.0.58") is None
    await apps.put("p1", LEARNT)
    assert await LearntApps(other_db).get("p1", "wechat", "8.0.58") == LEARNT
    assert await LearntApps(other_db).all() == {("p1", "wechat", "8.0.58"): LEARNT}
    for key in (("p2", "wechat", "8.0.58"), ("p1", "qq", "8.0.58"), ("p1", "wechat", "8.0.59")):
        assert await apps.get(*key) is None


async def test_what_was_learnt_later_takes_its_place(db: Database) -> None:
    apps = LearntApps(db)
    await apps.put("p1", LEARNT)
    await apps.put("p1", replace(LEARNT, sends_by="button", looks=()))
    assert await apps.get("p1", "wechat", "8.0.58") == replace(LEARNT, sends_by="button", looks=())


async def test_what_a_label_opened_is_of_one_phone_and_the_newest_counts(db: Database, other_db: Database) -> None:
    labels = AppLabels(db)
    assert await labels.get("p1", "小店助手") is None
    await labels.put("p1", "小店助手", "com.example.old")
    await labels.put("p1", "小店助手", "com.example.shop")
    await labels.put("p2", "小店助手", "com.example.other")
    assert await AppLabels(other_db).get("p1", "小店助手") == "com.example.shop"
    assert await labels.get("p1", "大店助手") is None
    assert [(one.serial, one.package) for one in await labels.all()] == [
        ("p1", "com.example.shop"),
        ("p2", "com.example.other"),
    ]
    assert await labels.forget("小店助手", "p2") == 1
    assert await labels.forget("小店助手", "p2") == 0
    assert await labels.get("p1", "小店助手") == "com.example.shop"
    await labels.put("p2", "小店助手", "com.example.other")
    assert await labels.forget("小店助手") == 2
    assert await labels.all() == []
