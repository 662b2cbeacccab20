"""A real browser: the system's Chromium, driven through Playwright, which downloads none of its own."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, async_playwright, expect

NAMES = ("chromium", "chromium-browser", "google-chrome")
DESK, PHONE = (1280, 800), (390, 844)  # pixels of the two screens that pages are made for
PATIENCE = 60_000.0  # milliseconds; machines may be slow, and nothing waits longer than it has to


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Give a headless Chromium. Skips the test if the system has none."""
    place = next(filter(None, map(shutil.which, NAMES)), None)
    if place is None:
        pytest.skip("No Chromium here: on Debian, apt-get install chromium.")
    async with async_playwright() as playwright:
        # In a container there is no sandbox for root, and little shared memory.
        options = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        browser = await playwright.chromium.launch(executable_path=place, args=options)
        try:
            yield browser
        finally:
            await browser.close()


async def log_in(page: Page, link: str) -> None:
    """Open a log-in link, and wait for the console's first page."""
    await page.goto(link)
    await expect(page).to_have_url(f"{link.partition('/login#')[0]}")


async def barriers(page: Page) -> list[str]:
    """Return what keeps people from using the page as it is now, by the accessibility checker axe: rule and places."""
    found = (await Axe().run(page)).response["violations"]
    grave = [one for one in found if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {[node['html'] for node in one['nodes']]}" for one in grave]


@asynccontextmanager
async def opened(
    browser: Browser, *, size: tuple[int, int] = DESK, lang: str = "zh-CN", dark: bool = False, refused: bool = False
) -> AsyncIterator[Page]:
    """Give a page of a fresh profile. AssertionError at its end if the console or a script has complained.

    refused: the test sends what the server refuses (400), which Chromium writes to the console.
    """
    width, height = size
    context = await browser.new_context(
        viewport={"width": width, "height": height}, locale=lang, color_scheme="dark" if dark else "light"
    )
    context.set_default_timeout(PATIENCE)
    page = await context.new_page()
    complaints: list[str] = []
    page.on(
        "console",
        lambda said: complaints.append(f"{said.text} {said.location}") if said.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    try:
        yield page
        wrong = [said for said in complaints if not (refused and "status of 400" in said)]
        assert wrong == [], wrong
    finally:
        await context.close()
