"""The pictures of the console in the docs: ``python -m tests.acceptance.console_pictures`` makes them anew.

One is ``docs/images/console/NAME.LANG.png``. A run on the virtual phone has a question, and a browser looks at it.
Times and durations in them are another each time, so nothing compares them. The browser needs fonts for Chinese and
emoji (on Debian fonts-noto-cjk and fonts-noto-color-emoji).
"""

from __future__ import annotations

import asyncio
import io
import tempfile
from pathlib import Path

from PIL import Image
from playwright.async_api import Page, expect

from tests.acceptance.stage import OPEN_QUESTION, asked, stage
from tests.support.browser import DESK, PATIENCE, PHONE, chromium, log_in, opened

FOLDER = Path(__file__).parents[2] / "docs" / "images" / "console"


async def main() -> None:
    expect.set_options(timeout=PATIENCE)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        async with stage(Path(folder), asked(OPEN_QUESTION)) as on, chromium() as browser:
            server = await on.serve(PHONEDESK_TELEGRAM__TOKEN="")
            async with opened(browser, size=DESK) as page, opened(browser, size=PHONE, dark=True) as small:
                await log_in(page, await on.console_link(server))
                await log_in(small, await on.console_link(server))
                await page.get_by_label("任务", exact=True).fill("QQ回复联系人11")
                await page.get_by_role("button", name="开始").click()
                await expect(page.get_by_role("article")).to_contain_text(OPEN_QUESTION)
                run = page.url
                for lang, button in (("zh", "English"), ("en", "中文")):
                    for each in (page, small):
                        await each.goto(f"{server.url}/console")
                        if lang == "en":
                            await each.get_by_role("button", name="English").click()
                        await expect(each.get_by_role("button", name=button)).to_be_visible()
                    await _take(page, f"overview.{lang}")
                    await page.goto(run)
                    await _take(page, f"run.{lang}")
                    await page.goto(f"{server.url}/console/schedules/sweeps")
                    await _take(page, f"sweeps.{lang}")
                    await small.goto(f"{server.url}/console/questions")
                    await _take(small, f"questions-small.{lang}")
                await _chat(page, server.url)


async def _chat(page: Page, url: str) -> None:
    """Give a task in the chat, in either language."""
    for lang, button, written in (("en", "中文", "/run QQ回复联系人12"), ("zh", "English", "/run QQ回复联系人13")):
        await page.goto(f"{url}/console/chat")
        if lang == "zh":
            await page.get_by_role("button", name="中文").click()
        await expect(page.get_by_role("button", name=button)).to_be_visible()
        await page.locator("#words").fill(written)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("log").get_by_role("article")).to_have_count(2 if lang == "en" else 4)
        await _take(page, f"chat.{lang}")


async def _take(page: Page, name: str) -> None:
    """Store what the page shows, once its pictures are there, in few colors: the file is a third as large."""
    pictures = "Promise.all([...document.images].map((image) => image.decode().catch(() => {})))"
    await page.evaluate(pictures)
    shown = Image.open(io.BytesIO(await page.screenshot()))
    shown.convert("RGB").quantize(128).save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    asyncio.run(main())
