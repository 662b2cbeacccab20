"""The console through a real browser, on the whole product."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.async_api import Page, Route, expect

from bot.channels.web.console.routes import NAVIGATION
from tests.acceptance.stage import OPEN_QUESTION, asked, stage, until
from tests.support.browser import DESK, PATIENCE, PHONE, barriers, chromium, log_in, opened
from tests.support.days import todays

OWN_WORDS = "可以带上高铁。"

expect.set_options(timeout=PATIENCE)


async def test_a_shop_is_served_from_the_console_alone(tmp_path: Path) -> None:
    async with stage(tmp_path, asked(OPEN_QUESTION)) as on, chromium() as browser:
        server = await on.serve(PHONEDESK_TELEGRAM__TOKEN="")
        async with opened(browser, refused=True) as page:
            await log_in(page, await on.console_link(server))
            await page.get_by_label("任务", exact=True).fill("QQ回复联系人11")
            await page.get_by_role("button", name="开始").click()
            # The run's page follows it: its steps come, then its question.
            await expect(page.locator("#step-1")).to_be_visible()
            question = page.get_by_role("article")
            await expect(question).to_contain_text(OPEN_QUESTION)
            assert on.sent == {}
            assert await barriers(page) == []
            assert await page.locator("#step-1 img").evaluate("image => image.decode().then(() => image.naturalWidth)")
            await question.get_by_label("自己写").fill(OWN_WORDS)
            await question.get_by_role("button", name="发送").click()
            await expect(page.locator("#run-title")).to_contain_text("已完成")
            assert on.sent == {"11": [OWN_WORDS]}
            # What the person has written waits for approval, and becomes an entry.
            await question.get_by_role("button", name="是", exact=True).click()
            await expect(question).to_be_hidden()
            await page.get_by_role("link", name="问答记录").click()
            await expect(page.get_by_role("main")).to_contain_text(OWN_WORDS)
            await _answer_is_in_the_charts(page)
            await _sweep_is_added(page)
            await _removals_are_undone(page)
            await page.get_by_role("button", name="退出登录").click()
            await expect(page.get_by_role("heading", level=1)).to_have_text("登录")
        found = (await on.command("kb", "search", OPEN_QUESTION, "--json")).json
        assert (found[0]["answer"], found[0]["live"]) == (OWN_WORDS, True)


async def _answer_is_in_the_charts(page: Page) -> None:
    """Look at the one answer in the chart, and in the table beside it."""
    await page.get_by_role("link", name="统计", exact=True).click()
    questions = page.get_by_role("region", name="每天的客户问题")
    await expect(questions.get_by_role("img", name="每天的客户问题")).to_be_visible()
    await expect(questions.locator("svg.chart rect.series-1")).to_have_count(1)
    await questions.get_by_text("用表格看数据").click()
    await expect(questions.get_by_role("row").last.get_by_role("cell")).to_have_text(["0", "1", "0"])
    await page.get_by_role("link", name="90 天").click()
    await expect(page.get_by_role("row", include_hidden=True)).not_to_have_count(0)
    assert await barriers(page) == []


async def _sweep_is_added(page: Page) -> None:
    """Save a contact, then add a sweep of it through the form, after what is wrong was said beside its field."""
    await page.get_by_role("link", name="联系人", exact=True).click()
    await page.get_by_label("应用里的名字").fill("11")
    await page.get_by_role("button", name="保存").click()
    await expect(page.locator("#contacts")).to_contain_text("11")
    await page.get_by_role("link", name="定时任务", exact=True).click()
    await page.get_by_role("link", name="巡检", exact=True).click()
    form = page.locator("#sweep")
    await expect(form.get_by_label("11")).to_be_hidden()
    await form.get_by_label("只回复这些联系人").check()
    await form.get_by_label("从").fill("09:00")
    await form.get_by_role("button", name="添加巡检").click()
    await expect(form.get_by_role("alert")).to_contain_text("时段要有开始")
    await expect(form.get_by_label("从")).to_have_attribute("aria-invalid", "true")
    await form.get_by_label("到").fill("18:00")
    await form.get_by_label("11").check()
    await form.get_by_label("周日").uncheck()
    coming = form.locator("output:visible")
    await expect(coming).to_contain_text(re.compile(r"接下来：(\d\d-\d\d \d\d:\d\d( · )?){3}"))
    assert await barriers(page) == []
    await form.get_by_role("button", name="添加巡检").click()
    added = page.locator("#sweeps").get_by_role("article")
    await expect(added).to_contain_text("09:00–18:00 之间每 15 分钟")
    await expect(form.get_by_label("到")).to_have_value("")
    await added.get_by_role("link", name="修改").click()
    await expect(form.get_by_label("11")).to_be_checked()
    await expect(form.get_by_label("周日")).not_to_be_checked()
    await expect(coming).to_contain_text(re.compile(r"接下来：(\d\d-\d\d \d\d:\d\d( · )?){3}"))
    await form.get_by_label("到").fill("")
    await form.get_by_role("button", name="保存").click()
    await expect(form.get_by_role("alert")).to_contain_text("时段要有开始")
    await form.get_by_label("从").fill("")
    await form.get_by_label("多久一次").select_option("每 1 小时")
    assert await barriers(page) == []
    await form.get_by_role("button", name="保存").click()
    await expect(added).to_contain_text("每周一至周六 每 1 小时")
    await page.get_by_role("button", name="撤销").click()
    await expect(added).to_contain_text("09:00–18:00 之间每 15 分钟")
    await added.get_by_role("button", name="暂停").click()
    await expect(added).to_contain_text("已暂停")


async def _removals_are_undone(page: Page) -> None:
    """Remove the sweep, change and delete the entry, and take each back; the last on the page that comes after it."""
    back, notice = page.get_by_role("button", name="撤销"), page.get_by_role("status").filter(has_text="恢复原样")
    sweep = page.locator("#sweeps").get_by_role("article")
    await sweep.get_by_role("button", name="移除").click()
    await expect(sweep).to_have_count(0)
    assert await barriers(page) == []
    await back.click()
    await expect(sweep).to_have_count(1)
    await expect(notice).to_be_visible()
    await page.get_by_role("link", name="知识库", exact=True).click()
    await page.get_by_label("问题或答案里的词").fill(OPEN_QUESTION)
    await page.get_by_role("button", name="查找").click()
    await page.locator("#found").get_by_role("link").first.click()
    answer = page.get_by_label("答案，会一字不差")
    await answer.fill("不可以。")
    await page.get_by_role("button", name="保存").click()
    await back.click()
    await expect(answer).to_have_value(OWN_WORDS)
    entry = page.url
    other = await page.context.new_page()
    await other.goto(entry)
    await page.get_by_role("button", name="删除").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("知识库")
    await expect(other.locator("#said")).to_contain_text("已经不在了")
    await other.close()
    await back.click()
    await expect(notice).to_be_visible()
    await page.goto(entry)
    await expect(answer).to_have_value(OWN_WORDS)


EVIL = "<img src=x onerror=alert(1)>发货了吗"


@pytest.mark.rotating(parts=2)
async def test_somebody_without_telegram_comes_in_and_works_in_the_chat(tmp_path: Path) -> None:
    async with stage(tmp_path, asked(EVIL)) as on, chromium() as browser:
        server = await on.serve(PHONEDESK_TELEGRAM__TOKEN="")
        async with opened(browser) as owners, opened(browser, size=PHONE) as page:
            await log_in(owners, await on.console_link(server))
            await owners.get_by_role("link", name="人员", exact=True).click()
            form = owners.locator("form").filter(has_text="用控制台：发一个链接")
            await form.get_by_label("名字").fill("小王")
            await form.get_by_role("button", name="生成链接").click()
            await expect(form.locator("output")).to_contain_text("/login#")
            assert await barriers(owners) == []
            await log_in(page, await form.locator("output").inner_text())
            await expect(page.get_by_role("banner")).to_contain_text("小王 · 操作员")
            await expect(page.get_by_role("link", name="人员", exact=True)).to_have_count(0)
            await page.get_by_role("link", name="聊天", exact=True).click()
            words = page.get_by_label("消息", exact=True)
            await words.click()
            await words.press_sequentially("/ru")
            await expect(page.get_by_role("list", name="命令").get_by_role("button")).to_have_count(1)
            await words.press("ArrowDown")
            await page.keyboard.press("Enter")
            await expect(words).to_be_focused()
            await page.keyboard.type("QQ回复联系人11")
            await words.press("Enter")
            # The run's card goes on by itself, and then its question comes; what the customer wrote stays words.
            log = page.get_by_role("log")
            card = log.get_by_role("article").filter(has=page.get_by_role("button", name="停止"))
            await expect(card).to_contain_text(re.compile("第 [1-9] 步"))
            question = log.get_by_role("article").filter(has=page.get_by_role("button", name="自己写"))
            await expect(question).to_contain_text(EVIL)
            assert await question.locator("img[onerror]").count() == 0
            assert await card.locator("img").first.evaluate("image => image.decode().then(() => image.naturalWidth)")
            assert await barriers(page) == []
            wide = await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            assert wide <= 0
            await question.get_by_role("button", name="自己写").click()
            await expect(page.locator("#replying")).to_be_visible()
            await expect(words).to_be_focused()
            await page.keyboard.type(OWN_WORDS)
            low = await words.evaluate("field => field.clientHeight")
            await page.keyboard.press("Shift+Enter")
            await page.keyboard.type(OWN_WORDS)
            assert await words.evaluate("field => field.clientHeight") > low, "it grows with its lines"
            await page.keyboard.press("Enter")
            await expect(page.locator("#replying")).to_be_hidden()
            await expect(words).to_have_value("")
            assert await words.evaluate("field => field.clientHeight") == low
            await expect(log).to_contain_text("已完成")
            assert on.sent == {"11": [f"{OWN_WORDS}\n{OWN_WORDS}"]}
            shown = await log.get_by_role("article").count()
            await page.reload()
            await expect(log.get_by_role("article")).to_have_count(shown)
            assert await barriers(page) == []


async def test_a_button_pressed_before_the_scripts_are_there_counts(tmp_path: Path) -> None:
    async with stage(tmp_path) as on, chromium() as browser:
        server = await on.serve(PHONEDESK_TELEGRAM__TOKEN="")
        async with opened(browser) as page:
            await log_in(page, await on.console_link(server))
            is_pressed = asyncio.Event()

            async def late(route: Route) -> None:
                await is_pressed.wait()
                await route.continue_()

            await page.route("**/static/console.js", late)
            await page.goto(f"{server.url}/console/people", wait_until="commit")
            form = page.locator("form").filter(has_text="用控制台：发一个链接")
            await form.get_by_label("名字").fill("小王")
            await form.get_by_role("button", name="生成链接").click()
            assert "?" not in page.url, "the browser sent the form by itself"
            is_pressed.set()
            await expect(form.locator("output")).to_contain_text("/login#")


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize(("size", "dark"), [(PHONE, False), (DESK, True)])
async def test_pages_fit_their_screen_and_one_can_go_through_them_by_keyboard(
    tmp_path: Path, size: tuple[int, int], dark: bool
) -> None:
    """A third of the pages each day."""
    pages = todays([*(path for _, path, _ in NAVIGATION), "/console/schedules/sweeps"], 3)
    async with stage(tmp_path) as on, chromium() as browser:
        server = await on.serve(PHONEDESK_TELEGRAM__TOKEN="")
        async with opened(browser, size=size, dark=dark) as page:
            await log_in(page, await on.console_link(server))
            for lang in ("English", "中文"):
                await page.get_by_role("button", name=lang).click()
                await expect(page.get_by_role("button", name=lang)).to_be_hidden()
                for path in pages:
                    await page.goto(server.url + path)
                    wide = await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
                    assert wide <= 0, f"{path} is {wide} pixels too wide"
                    await expect(page.locator("header [aria-current]")).to_be_in_viewport()
                    assert lang == "English" or await barriers(page) == [], path
            await page.goto(f"{server.url}/console")
            await page.keyboard.press("Tab")
            await page.keyboard.press("Enter")  # "skip to the content" comes first
            assert await page.evaluate("document.activeElement.id") == "main"
            while await page.evaluate("document.activeElement.id") != "task":
                await page.keyboard.press("Tab")
            await page.keyboard.type("打开设置")
            while await page.evaluate("document.activeElement.type") != "submit":
                await page.keyboard.press("Tab")
            await page.keyboard.press("Enter")
            await expect(page.locator("#run-title")).to_contain_text("已完成")


@pytest.mark.rotating(parts=2)
async def test_a_phone_is_taken_over_and_given_back(tmp_path: Path) -> None:
    async with stage(tmp_path, asked(OPEN_QUESTION)) as on, chromium() as browser:
        server = await on.serve(PHONEDESK_TELEGRAM__TOKEN="")
        async with opened(browser) as page:
            await log_in(page, await on.console_link(server))
            await page.get_by_label("任务", exact=True).fill("QQ回复联系人11")
            await page.get_by_role("button", name="开始").click()
            await expect(page.get_by_role("article")).to_contain_text(OPEN_QUESTION)
            run = page.url
            # The run waits on the phone for its answer; whoever takes the phone over parks it.
            await page.goto(f"{server.url}/console/phones/{quote(on.phone.address, safe='')}")
            screen = page.locator("#screen")
            await expect(screen).to_have_attribute("data-shown", re.compile("[1-9]"))
            await page.get_by_role("button", name="接管").click()
            await expect(page.locator("#hand")).to_contain_text("在你手里")
            await expect(page.locator("#said")).to_contain_text("手机已由你接管")
            assert (await on.runs())[0].hold
            assert await barriers(page) == []
            await page.get_by_role("button", name="主屏幕").click()
            phone = on.phone.phone
            await until(lambda: "launcher" in str(phone.window().package), what="the phone is at its home screen")
            box = await screen.bounding_box()
            assert box is not None
            await screen.click(position={"x": box["width"] * 0.88, "y": box["height"] * 0.72})
            await until(lambda: phone.window().package == "com.android.settings", what="the icon was tapped")
            scrolls = len(on.report["actions"])
            middle = box["x"] + box["width"] / 2
            await page.mouse.move(middle, box["y"] + box["height"] * 0.8)
            await page.mouse.down()
            await page.mouse.move(middle, box["y"] + box["height"] * 0.2, steps=5)
            await page.mouse.up()
            await until(lambda: len(on.report["actions"]) > scrolls, what="the swipe arrived")
            await page.get_by_role("button", name="交还").click()
            await expect(page.get_by_role("button", name="接管")).to_be_visible()
            await expect(page.locator("#said")).to_contain_text("手机已交还")
            assert not (await on.runs())[0].hold
            await page.goto(run)
            question = page.get_by_role("article")
            await question.get_by_label("自己写").fill(OWN_WORDS)
            await question.get_by_role("button", name="发送").click()
            await expect(page.locator("#run-title")).to_contain_text("已完成")
            assert on.sent == {"11": [OWN_WORDS]}
