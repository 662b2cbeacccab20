"""Who is let in to the console, and what keeps everybody else out."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.app.server_names import CONSOLE
from bot.channels.web.callers import COOKIE
from bot.desk.actors import Role
from storage.api_keys import hash_of
from storage.console_sessions import LINK_LIFETIME, SESSION_LIFETIME, ConsoleSessions
from storage.people import Audit, People
from tests.bot.channels.web.console.conftest import TERMINAL, Browser, Shown

RUN = {"task": "打开设置"}


async def person(shown: Shown, role: Role, name: str) -> tuple[str, Browser]:
    """Return the id of a new person, and their browser, logged in."""
    member = await shown.busy.shop.person(role, name)
    browser = await shown.stranger()
    code = await ConsoleSessions(shown.db).add_link(member.id, "en")
    assert await browser.log_in(f"#{code}") == 200
    return member.id, browser


async def test_a_link_works_once_and_for_ten_minutes(shown: Shown) -> None:
    link = await shown.desk.console.link(TERMINAL)
    assert link.startswith(f"{shown.url}{CONSOLE}/login#")
    other = await shown.stranger()
    assert await other.log_in(link) == 200
    assert "Overview" in await other.page()
    assert await (await shown.stranger()).log_in(link) == 403, "it is used"
    late = await shown.desk.console.link(TERMINAL)
    shown.busy.shop.clock.time += LINK_LIFETIME
    assert await (await shown.stranger()).log_in(late) == 403, "it is too old"


async def test_a_link_gives_no_more_rights_than_its_person_has(shown: Shown) -> None:
    link = await shown.desk.console.link(await shown.busy.shop.person(Role.VIEWER, "looks"))
    browser = await shown.stranger()
    assert await browser.log_in(link) == 200
    assert "looks" in await browser.page()
    assert (await browser.get(f"{CONSOLE}/people"))[0] == 403
    assert (await browser.ask("POST", "/api/v1/runs", RUN))[0] == 403


async def test_only_hashes_are_stored(shown: Shown) -> None:
    code = (await shown.desk.console.link(TERMINAL)).partition("#")[2]
    cookie = next(iter(shown.browser.client.cookie_jar)).value
    async with shown.db.read() as connection:
        rows = (await connection.exec_driver_sql("SELECT * FROM console_sessions")).all()
    stored = str(rows)
    assert hash_of(code) in stored
    assert hash_of(cookie) in stored
    assert code not in stored
    assert cookie not in stored


async def test_the_cookie_is_for_our_own_pages_alone(shown: Shown) -> None:
    link = await shown.desk.console.link(TERMINAL)
    stranger = await shown.stranger()
    _, _, response = await stranger.ask("POST", f"{CONSOLE}/login", {"code": link.partition("#")[2]})
    cookie = response.headers["Set-Cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert "Secure" not in cookie, "this browser uses plain HTTP"


async def test_behind_https_the_cookie_is_secure(shown: Shown) -> None:
    code = (await shown.desk.console.link(TERMINAL)).partition("#")[2]
    origin = shown.url.replace("http:", "https:")
    _, _, response = await shown.browser.ask("POST", f"{CONSOLE}/login", {"code": code}, Origin=origin)
    assert "Secure" in response.headers["Set-Cookie"].split("; ")


async def test_a_stranger_is_led_to_the_login_and_sees_nothing(shown: Shown) -> None:
    stranger = await shown.stranger()
    for path in ("", "/runs", "/questions", f"/runs/{shown.busy.run_id}", "/nothing"):
        status, text, response = await stranger.get(CONSOLE + path, allow_redirects=False)
        assert (status, response.headers["Location"]) == (303, f"{CONSOLE}/login"), path
        assert shown.busy.run_id not in text
    assert "phonedesk console" in (await stranger.get(f"{CONSOLE}/login"))[1]
    assert (await stranger.ask("GET", "/api/v1/runs"))[0] == 401
    status, _, response = await stranger.get("/", headers={"Accept": "text/html"}, allow_redirects=False)
    assert (status, response.headers["Location"]) == (303, CONSOLE)


async def test_who_logs_out_is_out_and_the_log_says_so(shown: Shown) -> None:
    cookie = next(iter(shown.browser.client.cookie_jar)).value
    assert (await shown.browser.ask("POST", f"{CONSOLE}/logout"))[0] == 200
    stranger = await shown.stranger()
    headers = {"Cookie": f"{COOKIE}={cookie}"}
    assert (await stranger.get(CONSOLE, headers=headers, allow_redirects=False))[0] == 303, "the session itself is gone"
    written = [(row.command, row.allowed) for row in await Audit(shown.db).last()]
    assert written[:3] == [("console log-out", True), ("console log-in", True), ("console link", True)]


async def test_a_session_ends_by_itself_unless_it_is_used(shown: Shown) -> None:
    for _ in range(3):
        shown.busy.shop.clock.time += SESSION_LIFETIME - timedelta(days=1)
        await shown.browser.page()
    shown.busy.shop.clock.time += SESSION_LIFETIME
    assert (await shown.browser.get(CONSOLE, allow_redirects=False))[0] == 303


@pytest.mark.parametrize("change", ["removed", "role", "removed and put back"])
async def test_whose_rights_change_is_out(shown: Shown, change: str) -> None:
    await shown.busy.shop.person(Role.OWNER, "first")
    person_id, browser = await person(shown, Role.OPERATOR, "op")
    await browser.page()
    if change == "role":
        await shown.desk.team.set_role(TERMINAL, f"#{person_id}", Role.VIEWER)
    else:
        await shown.desk.team.remove(TERMINAL, f"#{person_id}")
        if "back" in change:
            await shown.desk.team.undo_remove(TERMINAL, person_id)
            assert await People(shown.db).get(int(person_id)) is not None
    assert (await browser.get(CONSOLE, allow_redirects=False))[0] == 303
    assert (await browser.ask("GET", "/api/v1/runs"))[0] == 401


async def test_a_session_has_the_role_of_its_person(shown: Shown) -> None:
    _, browser = await person(shown, Role.VIEWER, "looks")
    text = await browser.page()
    assert 'data-api="/api/v1/runs"' not in text
    assert "Your role is viewer" in text
    status, problem, _ = await browser.ask("POST", "/api/v1/runs", RUN)
    assert (status, problem["type"]) == (403, "security.access")


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Requested-By": ""},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Origin": "https://shop.example"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "none"},
    ],
)
async def test_what_another_page_sends_changes_nothing(shown: Shown, headers: dict[str, str]) -> None:
    link = await shown.desk.console.link(TERMINAL)
    requests = {
        "/api/v1/runs": RUN,
        f"{CONSOLE}/login": {"code": link.partition("#")[2]},
        f"{CONSOLE}/logout": None,
        f"{CONSOLE}/language": {"lang": "zh"},
    }
    before = await shown.browser.page("/runs")
    for path, body in requests.items():
        status, problem, _ = await shown.browser.ask("POST", path, body, **headers)
        assert (status, problem["type"] in {"forged", "foreign_origin"}) == (403, True), path
    assert await shown.browser.page("/runs") == before
    assert await (await shown.stranger()).log_in(link) == 200, "the link was not used up"
    assert (await shown.browser.ask("POST", "/api/v1/runs", RUN, **{"Sec-Fetch-Site": "same-origin"}))[0] == 201


async def test_a_program_with_a_key_needs_no_origin_and_no_cookie_helps_a_wrong_key(shown: Shown) -> None:
    status, _, _ = await shown.browser.ask("GET", "/api/v1/runs", Authorization="Bearer wrong")
    assert status == 401


async def test_guessing_is_slowed_down(shown: Shown) -> None:
    stranger = await shown.stranger()
    answers = [await stranger.log_in("#wrong") for _ in range(40)]
    assert (answers[0], answers[-1]) == (403, 429)
    async with stranger.client.post(f"{shown.url}{CONSOLE}/login", data="x" * 5000, headers=stranger.own) as large:
        assert large.status == 413
    assert (await stranger.ask("POST", f"{CONSOLE}/login", {"wrong": "x"}))[0] == 400


async def test_pages_and_files_cannot_be_framed_stored_or_scripted(shown: Shown) -> None:
    for path in ("", "/login", "/runs/none", "/static/console.js"):
        _, _, response = await shown.browser.get(CONSOLE + path)
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert response.headers["Cache-Control"] == ("no-cache" if "static" in path else "no-store")


async def test_a_page_that_looks_again_fills_no_log(shown: Shown) -> None:
    paths = ("", "/runs", "/questions", "/answers", "/knowledge", "/contacts", "/people", "/audit")
    shown.desk.context.pace.per_minute = 1
    for path in paths:
        await shown.browser.page(path)
    written = len(await Audit(shown.db).last(1000))
    for path in paths * 2:
        await shown.browser.page(path)
    assert len(await Audit(shown.db).last(1000)) == written, "the same look is written down once a minute"
    assert (await shown.browser.ask("POST", "/api/v1/runs", RUN))[0] == 201, "and looking uses up nothing"
