"""The main job on an iPhone: the customer gets the right answer, once."""

from __future__ import annotations

from agent_core.devices.wda.server import WdaServer
from agent_core.session import Answer, QuestionKind, Status
from simulator.phone.scenario_file import default_scenario
from simulator.phone.wda.server import serve_iphone
from tests.agent_core.devices.wda.conftest import KNOWN
from tests.support.lab import ANSWER, ASK, FINISH, LAUNCH, Lab, do, on_a_small_phone
from tests.support.model_server import ScriptedModel

TAP_FIRST_ROW = do('do(action="Tap", element=[400,180])')


async def test_the_customer_gets_the_answer_once() -> None:
    async with serve_iphone(on_a_small_phone(default_scenario())) as running:
        server = WdaServer(lambda: [running.address], known_apps=lambda: KNOWN)
        device = server.device(f"wda:{running.address}")
        lab = Lab(running.phone, device)
        lab.people.answers = [Answer(choice="send", by="店长")]
        async with ScriptedModel([LAUNCH, TAP_FIRST_ROW, ASK, FINISH]) as model:
            session = await lab.run(model)
        assert (session.status, session.message) == (Status.SUCCEEDED, "已回复 11，发出 1 条。")
        assert lab.sent == {"11": [ANSWER]}
        assert [question.kind for question in lab.people.asked] == [QuestionKind.FIRST_DELIVERY]
        await device.close()
        await server.close()
