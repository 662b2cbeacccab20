"""What a run stores for people is covered; what the model gets is not."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from typing import Any

import pytest
from PIL import Image, ImageChops

from agent_core.devices.base import Window
from agent_core.perception.observer import Observer, TreeUse, screen_for_people
from agent_core.perception.page_report import report
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import Source
from agent_core.perception.redaction import COVER as COVERED
from agent_core.ports import Event
from agent_core.session import Answer, Question, Session
from simulator.phone.scenario import ContactPart, MessagePart, PhonePart, Scenario
from simulator.phone.world import Side
from tests.support.lab import FINISH, OCR, Lab, lab
from tests.support.model_server import ScriptedModel
from tests.support.ocr import needs_ocr

pytestmark = needs_ocr
COVER = ((142, 149, 158), (168, 174, 182))
CODE = "验证码 483920"
SCENARIO = Scenario(
    phone=PhonePart(size=(720, 1600)),
    contacts=[
        ContactPart(name="11", number="20110011", history=[MessagePart(side=Side.THEM, text=CODE, ago=60)]),
        ContactPart(name="另一位", number="1002", history=[MessagePart(side=Side.THEM, text="在吗", ago=90)]),
    ],
)


def covered(picture: Image.Image) -> int:
    """How many pixels look like the cover, as JPEG leaves them."""
    small = picture.convert("RGB")
    return sum(
        count
        for count, color in small.getcolors(1 << 24) or ()
        if isinstance(color, tuple)
        and any(all(abs(a - b) <= 3 for a, b in zip(color, one, strict=True)) for one in COVER)
    )


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


class Album:
    """A run store, and a person who is asked: both keep the pictures that they are given."""

    def __init__(self) -> None:
        self.pictures: dict[str, bytes] = {}  # the newest of each kind
        self.steps: list[bytes] = []

    async def save(self, session: Session) -> None:
        return None

    async def event(
        self, run_id: str, event: Event, *, picture: bytes | None = None, session: Session | None = None
    ) -> None:
        if picture is not None:
            self.pictures[event.kind] = picture
            self.steps += [picture] if event.kind == "step" else []

    async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer | None:
        if picture is not None:
            self.pictures["question"] = picture
        return None


def sent_to_model(request: dict[str, Any]) -> Image.Image:
    parts = [part for message in request["messages"] for part in message["content"] if isinstance(part, dict)]
    url = next(part["image_url"]["url"] for part in parts if part["type"] == "image_url")
    return opened(base64.b64decode(url.partition(",")[2]))


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("tree", ["full", "off"])
async def test_events_and_questions_show_no_code_and_the_model_sees_it(tree: str) -> None:
    async with lab(SCENARIO) as bench:
        bench.tree = tree
        album = Album()
        bench.people = album  # type: ignore[assignment]  # it fits the port; the lab's own list is not wanted
        await bench.open_chat()
        async with ScriptedModel(['<answer>do(action="Take_over", message="看一下")</answer>', FINISH]) as model:
            await bench.run(model, "看看屏幕", store=album)
            request = model.requests[0]
    assert set(album.pictures) >= {"step", "question"}
    for kind, data in album.pictures.items():
        assert covered(opened(data)) > 500, kind
    assert covered(sent_to_model(request)) < 50


async def screen(bench: Lab, reader: ScreenReader, **options: Any) -> Image.Image:
    return await Observer(bench.device, reader, **options).picture()


async def test_where_nothing_else_can_read_the_tree_is_asked_for_on_account_of_the_picture() -> None:
    async with lab(SCENARIO) as bench:
        await bench.open_chat()
        for blur, expected in ((True, True), (False, False)):
            observer = Observer(bench.device, ScreenReader(ocr=None, model=None), blur=blur)
            seen = await observer.observe(None, read=False)
            assert (seen.nodes is not None) is expected
            assert bool(await observer.redaction.boxes(seen.frame)) is expected


async def test_the_screen_on_demand_is_covered_by_whatever_can_read_it() -> None:
    async with lab(SCENARIO) as bench:
        await bench.open_chat()
        blind = ScreenReader(ocr=None, model=None, sources=[])
        assert covered(await screen_for_people(bench.device).picture()) > 500
        assert covered(await screen(bench, ScreenReader(ocr=OCR, model=None, sources=[Source.OCR]), tree="off")) > 500
        assert covered(await screen(bench, blind, tree="off")) < 50  # QQ shows no secrets as a rule
        assert covered(await screen(bench, blind, blur=False)) < 50
        await bench.phone.launch("com.eg.android.AlipayGphone")
        whole = await screen(bench, blind, tree="off")
        assert covered(whole) == whole.width * whole.height
        assert covered(await screen(bench, blind, tree="off", blur=False)) < 50


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("tree", ["auto", "off"])
async def test_what_is_read_for_people_tells_no_code_either(tree: TreeUse) -> None:
    async with lab(SCENARIO) as bench:
        await bench.open_chat()
        reader = ScreenReader(ocr=OCR, model=None)
        seen = await Observer(bench.device, reader, tree=tree).page()
        assert covered(seen.image) > 500
        told = report(seen.page)
        assert told.title is not None
        assert told.title.text == "11"
        assert [(message.side, message.text) for message in told.messages] == [("them", COVERED)]
        assert "483920" not in told.model_dump_json()
        seen = await Observer(bench.device, reader, tree=tree, blur=False).page()
        assert "483920" in report(seen.page).model_dump_json()
        await bench.phone.key("BACK")
        rows = report((await Observer(bench.device, reader, tree=tree).page()).page).rows
        assert ("另一位", "在吗") in [(row.name, row.preview) for row in rows]
        assert all("483920" not in row.preview for row in rows)


async def test_a_screen_that_changes_between_picture_and_tree_is_not_read_by_that_tree() -> None:
    """The code comes onto the screen after the tree was taken: what the tree says of it is nothing."""
    async with lab(SCENARIO) as bench:
        await bench.open_chat()
        device = bench.device
        tree, looks = device.tree, 0

        async def late() -> Any:
            nonlocal looks
            looks += 1
            nodes = await tree()
            if looks == 1:
                await bench.phone.key("HOME")
            return nodes

        device.tree = late  # type: ignore[method-assign]  # the moment in between cannot be met otherwise
        await screen_for_people(device).picture()
        assert looks == 2


def count_trees(bench: Lab) -> list[None]:
    """Return a list that grows with each tree that is asked for."""
    asked: list[None] = []
    tree = bench.device.tree

    async def counted() -> Any:
        asked.append(None)
        return await tree()

    bench.device.tree = counted  # type: ignore[method-assign]
    return asked


async def test_what_moves_is_covered_until_it_rests_and_what_stands_around_it_is_shown() -> None:
    """Somebody types: the tree is asked for once, and again when the screen rests."""
    async with lab(SCENARIO) as bench:
        await bench.open_chat()
        seen, phone, people = bench.device.observe, bench.phone, screen_for_people(bench.device)
        field = phone.chat_field()
        assert field is not None
        phone.focus_on(field)
        phone.insert("一")
        resting, asked = await people.picture(), count_trees(bench)

        async def typing() -> Any:
            phone.insert("二")
            return await seen()

        bench.device.observe = typing  # type: ignore[method-assign]  # between two pictures
        moving = [await people.picture() for _ in range(4)]
        assert not asked
        assert all(covered(one) > covered(resting) + 500 for one in moving), "what is typed"
        assert all(covered(one) < one.width * one.height / 4 for one in moving), "all else is shown"
        bench.device.observe = seen  # type: ignore[method-assign]
        await people.picture()
        assert len(asked) == 1
        assert covered(await people.picture()) == pytest.approx(covered(resting), abs=50), "the code, as before"


async def test_what_moves_in_another_window_is_read_by_a_tree_of_that_window() -> None:
    """A dialog over the app looks nearly as the app does."""
    async with lab(SCENARIO) as bench:
        await bench.open_chat()
        seen, people, asked = bench.device.observe, screen_for_people(bench.device), count_trees(bench)
        bench.phone.focus_on(bench.phone.chat_field())
        await people.picture()

        async def of_another() -> Any:
            bench.phone.insert("一")
            looked = await seen()
            return replace(looked, look=replace(looked.look, window=Window("com.another", "Dialog")))

        bench.device.observe = of_another  # type: ignore[method-assign]
        await people.picture()
        assert len(asked) > 1


RING = (255, 45, 85)


def ringed(picture: Image.Image) -> list[float]:
    """Where the marks are: left, top, right, bottom in thousandths of the picture."""
    red, green, blue = picture.convert("RGB").split()
    near = [
        band.point(lambda v, c=c: 255 * (abs(v - c) <= 40)) for band, c in zip((red, green, blue), RING, strict=True)
    ]
    box = ImageChops.multiply(ImageChops.multiply(near[0], near[1]), near[2]).getbbox()
    assert box is not None
    return [1000 * place / side for place, side in zip(box, picture.size * 2, strict=True)]


@pytest.mark.parametrize(
    ("call", "box"),
    [
        ('do(action="Tap", element=[500,300])', (438, 255, 562, 345)),
        ('do(action="Double Tap", element=[250,700])', (188, 655, 312, 745)),
        ('do(action="Long Press", element=[500,500])', (398, 430, 602, 570)),
        ('do(action="Swipe", start=[500,800], end=[500,300])', (475, 300, 525, 807)),
    ],
)
async def test_where_an_action_went_is_drawn_at_its_place_on_the_smaller_picture_too(
    call: str, box: tuple[float, ...]
) -> None:
    """The phone has 1600 pixels of height, the picture in the card 800."""
    async with lab(SCENARIO) as bench:
        album = Album()
        async with ScriptedModel([f"<answer>{call}</answer>", FINISH]) as model:
            session = await bench.run(model, "看看屏幕", store=album)
    assert session.steps[0].ok
    picture = opened(album.steps[0])
    assert picture.size == (360, 800)
    assert ringed(picture) == pytest.approx(box, abs=12)
