from __future__ import annotations

from pathlib import Path

import pytest

from agent_core.model.client import ChatModel
from bot.app.config_check import incomplete
from bot.app.settings.layers import Settings
from knowledge.choosing import ModelChooser
from knowledge.dify import DifyKnowledge

URL = "http://127.0.0.1:9/v1"


def test_what_is_built_for_the_check_is_closed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    for kind in (ChatModel, ModelChooser, DifyKnowledge):
        close = kind.close

        async def told(part: object, name: str = kind.__name__, close: object = close) -> None:
            closed.append(name)
            await close(part)  # type: ignore[operator] # one of three

        monkeypatch.setattr(kind, "close", told)
    dify = {"provider": "dify", "base_url": URL, "dataset_id": "d", "token": "t"}
    model = {"fallbacks": [{"base_url": URL, "name": "other"}]}
    given = {"data_dir": tmp_path, "chooser": {"base_url": URL, "name": "text"}, "model": model}
    assert incomplete(Settings.model_validate({**given, "knowledge": dify})) == []
    assert sorted(closed) == ["ChatModel", "ChatModel", "DifyKnowledge", "ModelChooser"]

    closed.clear()
    wrong = incomplete(Settings.model_validate({**given, "knowledge": {**dify, "dataset_id": ""}}))
    assert [problem.path for problem in wrong] == [("knowledge", "provider")]
    assert sorted(closed) == ["ChatModel", "ChatModel", "ModelChooser"]  # what could be built is closed in any case
