"""Each command of the docs is run, against one world of stand-ins; what cannot be run here is at least read.

What people write in a chat is in ``tests/test_docs_chat.py``.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import shlex
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import openpyxl
import pytest
import typer
from typer._click.exceptions import BadOptionUsage, BadParameter, MissingParameter, UsageError
from typer.main import get_command

from bot.channels.cli.main import app
from tests.support.apk import keyboard_apk
from tests.support.docs import PAGES, ROOT, Call, blocks, calls, calls_of, spans
from tests.support.docs_world import ANSWER, PATIENCE, Done, World, call, docs_world, served
from tests.support.proxies import free_port

T = TypeVar("T")
pytestmark = pytest.mark.timeout(300)

END = "$"  # in a row of the tables below: nothing follows
# What is not run here, by how it begins, and why. The options of phonedesk's own commands are read all the same.
NOT_RUN = {
    "phonedesk init": "asks at a terminal: tests/bot/app/setup/test_init.py",
    "phonedesk demo": "brings a world of its own: tests/acceptance/test_cli.py, tests/bot/tools/demo",
    "phonedesk eval": "takes minutes: tests/bot/tools/eval",
    "phonedesk bench": "takes minutes: tests/bot/tools/bench",
    "phonedesk devices pair": "needs a phone that waits for it: tests/bot/channels/cli/commands/test_devices.py",
    "phonedesk read chat.png --app wechat": "reads pictures for seconds: tests/bot/channels/cli/commands/test_read.py",
    "phonedesk apps export": "reads pictures for seconds: tests/bot/channels/cli/commands/test_apps_export.py",
    "phonedesk kb import many.csv": "10,000 entries, to measure: tests/knowledge/test_import_limits.py",
    "phonedesk kb import few.csv": "goes with many.csv",
    f"phonedesk mcp {END}": "ends its process: tests/bot/channels/mcp/test_stdio.py",
    "phonedesk webhooks retry 1 42": "needs a message that was given up after days: tests/bot/desk/test_webhooks.py",
    "curl -N $URL/api/layered-agent/chat": "needs a planner's model: tests/bot/app/test_plans.py",
    "make": "sets up, builds and tests the whole: tests/test_makefile.py",
    "export": "variables of the reader's shell",
    "cd": "folders of the reader's machine",
    "adb": "another adb client: tests/simulator/phone",
    "python": "programs of their own: tests/agent_core/test_alone.py, tests/acceptance/test_cron.py",
    "python3": "environments and made-up tables of the reader's machine",
    "pip": "installs from a package index",
    "pipx": "installs from a package index",
    "uv": "installs from a package index",
    "docker": "needs Docker: tests/test_deploy.py",
    "systemctl": "needs systemd: tests/test_deploy.py",
    "journalctl": "needs systemd",
    "useradd": "changes the machine's users",
    "cp": "copies into the machine's folders",
    "rm": "removes what was copied into the machine's folders",
    "git": "fetches from the reader's remote",
    "jq": "another program, on a log of the reader's",
    "vllm": "serves a model on a GPU",
    "sqlite3": "another program; the table that it names: test_tables_that_a_page_names_are_there",
    "psql": "PostgreSQL's own program",
    "pg_dump": "PostgreSQL's own program: tests/storage/test_dump.py",
    "pg_restore": "PostgreSQL's own program: tests/storage/test_dump.py",
    "createdb": "PostgreSQL's own program: tests/storage/test_dump.py",
}
SERVERS = ("serve", "worker", "virtual-phone", "demo-model", "mcp --http")  # until Ctrl-C
# How a command ends here, by how it begins, if it is not 0.
EXITS = {
    "phonedesk virtual-phone": 130,
    "phonedesk demo-model": 130,
    f"phonedesk restore {END}": 2,  # without a file it is for PostgreSQL
    "phonedesk apps forget 小店助手": 2,  # nothing was learnt of it
    "phonedesk kb add 怎么退货": 2,  # the table that was imported has it already
}
TYPED = {
    "phonedesk config set telegram.token -": "123456789:" + "A" * 35,
    "phonedesk apps learn": "1\n",
}
# What is done before a command, because a page before it has done the same.
BEFORE = {
    "phonedesk keys add my-editor": "keys remove my-editor",
    "phonedesk webhooks incoming add shop": "webhooks incoming remove shop",
}
SERVICES = {"first-run": "dify", "use-a-dify-knowledge-base": "dify", "use-ragflow": "ragflow"}  # by page


def row_of(one: Call, rows: Mapping[str, T]) -> str | None:
    """The row with which a call begins; its end may be in it, as ``END``."""
    said = " ".join([one.program, *one.arguments, END, ""])
    return next((row for row in rows if said.startswith(f"{row} ")), None)


def service_of(one: Call) -> str:
    """The knowledge service with which a command is run on its page; "" for the desk's own entries."""
    asks = one.program == "phonedesk" and one.arguments[:1] in (("doctor",), ("run",))
    return SERVICES.get(one.page.rpartition("/")[2].partition(".")[0], "") if asks else ""


def all_calls() -> list[Call]:
    """Every call of the docs, once for each knowledge service.

    The tutorial comes first, where a reader begins; servers come last, when there is something to serve.
    """
    found: dict[tuple[Call, str], Call] = {}
    for page in sorted(PAGES, key=lambda page: (page.parent.name != "tutorial", page)):
        for one in calls(page):
            found.setdefault((one, service_of(one)), one)
    return sorted(found.values(), key=is_server)


def is_server(one: Call) -> bool:
    return one.program == "phonedesk" and " ".join(one.arguments).startswith(SERVERS)


CALLS = all_calls()
ALL: Any = get_command(app)


# -- what the words of the docs stand for in the world


def meant(world: World, one: Call) -> list[str]:
    """Return the arguments of a call with what there is in the world in place of what the docs name."""
    server = f"http://127.0.0.1:{world.web_port}"
    places = {
        "http://127.0.0.1:8737": server,
        "http://127.0.0.1:16002": world.phone.state_url,
        "127.0.0.1:16001": world.phone.address,
        "192.168.1.20:5555": world.phone.address,
        "http://localhost:8001/v1": world.model_url,
        "https://shop.example.com/phonedesk": world.receiver.url,
        "/media/disk": str(world.folder / "disk"),
        "/var/lib/phonedesk": str(world.folder / "disk"),
        "$KEY": world.key,
        "RUN": world.run_id,
    }
    words = []
    for before, written in pairwise(("", *one.arguments)):
        word = str(free_port()) if before in ("--port", "--state-port") else written
        for said, there in places.items():
            word = word.replace(said, there)
        word = re.sub(r".*phonedesk-\d+-\d+\.zip", lambda _: str(min((world.folder / "disk").glob("*.zip"))), word)
        words.append(re.sub("QUESTION", lambda _: world.question(), word))
    match words:
        case ["questions", "answer", _, *_]:
            words[2] = world.question()
        case ["kb", "approve" | "reject" | "edit" | "delete" as verb, _, *_]:
            words[2] = world.entry(live=verb in ("edit", "delete"))
        case ["people", "role" | "limit" | "remove", _, *_]:
            words[2] = world.person()
        case ["console", "--for", _]:
            words[2] = world.person()
        case ["replay", "12", *_]:
            words[1] = world.run_with_steps()
            words += ["--force"] if "--sheet" in words else []  # a page before has made the same files
        case ["answers", "rate", "12", *_]:
            words[2] = "1"
    return words


# -- running


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("docs")
    with pytest.MonkeyPatch.context() as environment, docs_world(folder, environment) as made:
        prepare(made)
        yield made


def prepare(world: World) -> None:
    """Put into the folder what the docs say that the reader has there, and what an earlier day has left."""
    book = openpyxl.Workbook()
    sheet = book.create_sheet(index=0)
    for row in csv.reader(blocks(ROOT / "docs" / "how-to" / "keep-the-knowledge-base.md", "csv")[0].splitlines()):
        sheet.append(row)
    book.save(world.folder / "faq.xlsx")
    keyboard_apk(world.folder / "ADBKeyboard.apk")
    shutil.copy(ROOT / "tests" / "kits" / "qq-plain-chat.kit.json", world.folder / "wechat.kit.json")
    (world.folder / "disk").mkdir()
    world.open_chat("12")
    world.screen("chat", "dump")
    for earlier in (
        ["contacts", "add", "12", "--tag", "老客户"],
        ["kb", "add", "可以开发票吗", "可以，请把抬头和税号发给我"],
        *(["schedule", "add", f"every day at {hour}", "QQ回复联系人11"] for hour in (9, 10, 11)),
    ):
        assert call(earlier).code == 0


def test_each_command_is_run_and_ends_as_expected(world: World) -> None:
    here = [one for one in CALLS if row_of(one, NOT_RUN) is None]
    of_the_server = [one for one in here if one.program == "curl" and ":8737" in str(one)]
    wrong: list[str] = []

    def try_out(one: Call) -> None:
        asked = of_the_server if one.arguments == ("serve",) else []
        done = run(world, one, lambda: list(map(try_out, asked)))
        expected = EXITS[row] if (row := row_of(one, EXITS)) else 0
        if done.code != expected:
            wrong.append(f"{one.page}: {one}: exit code {done.code}, not {expected}\n{done.out}")

    for one in here:
        if one not in of_the_server:
            try_out(one)
    assert "\n".join(wrong) == ""
    assert world.phone.phone.report()["sent"]["11"][0] == ANSWER  # from Dify, in the tutorial
    assert world.services["dify"].queries


def run(world: World, one: Call, meanwhile: Callable[[], object] = lambda: None) -> Done:
    """Run a call of the docs."""
    words = meant(world, one)
    if one.program == "curl":
        return curl(world, words)
    settings = {**world.settings_of(service_of(one)), **dict(one.settings)}
    if (before := row_of(one, BEFORE)) is not None:
        call(shlex.split(BEFORE[before]))
    if one.arguments[0] == "restore":
        settings["PHONEDESK_DATA_DIR"] = str(world.folder / "restored")
    if is_server(one):
        return served(words, meanwhile, **settings)
    typed = row_of(one, TYPED)
    done = call(words, typed=TYPED[typed] if typed else "", **settings)
    if one.arguments[:2] == ("keys", "add") and "my-shop" in words:
        world.key = done.out.split()[0]
    if one.arguments[:2] == ("webhooks", "add"):
        [world.receiver.secret] = re.findall(r"whsec_\S+", done.out)
    if typed and "telegram" in typed:
        call(["config", "unset", "telegram.token"])
    return done


def curl(world: World, words: Sequence[str]) -> Done:
    """Do as curl does with these options; an option that stands in no page is unknown here."""
    options = argparse.ArgumentParser(exit_on_error=False)
    options.add_argument("--noproxy", choices=["*"], required=True)
    options.add_argument("-f", action="store_true")
    options.add_argument("-N", action="store_true")
    options.add_argument("-H", action="append", default=[])
    options.add_argument("-d")
    options.add_argument("url")
    given = options.parse_args(words)
    headers = {"Content-Type": "application/x-www-form-urlencoded"} if given.d else {}
    headers |= dict(header.split(": ", 1) for header in given.H)
    data = given.d.encode() if given.d else None
    asked = urllib.request.Request(given.url, data, headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(asked, timeout=PATIENCE) as answer:
            said = (answer.readline() if given.N else answer.read()).decode()
    except urllib.error.HTTPError as error:
        return Done(22, error.read().decode())
    if given.url.endswith("/runs"):
        world.run_id = json.loads(said)["id"]
    return Done(0, said)


# -- reading


def test_every_row_of_what_is_not_run_is_of_use_and_names_tests_that_are_there() -> None:
    used = {row_of(one, NOT_RUN) for one in CALLS}
    assert {row for row in NOT_RUN if row not in used} == set()
    others: tuple[Mapping[str, object], ...] = (EXITS, TYPED, BEFORE)
    assert {row for rows in others for row in rows if row not in {row_of(one, rows) for one in CALLS}} == set()
    named = [path for why in NOT_RUN.values() for path in re.findall(r"tests/[\w./]+", why)]
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_program_is_run_or_left_out_for_a_reason() -> None:
    known = {"phonedesk", "curl"}
    assert [str(one) for one in CALLS if one.program not in known and row_of(one, NOT_RUN) is None] == []


def test_no_command_stands_in_a_block_of_no_language() -> None:
    """Those are not read here: a block of commands is marked as sh."""
    lines = [line for page in PAGES for block in blocks(page, "", "text") for line in block.splitlines()]
    assert [line for line in lines if re.match(r"(\S*/)?(phonedesk|curl) ", line)] == []


def test_phonedesk_knows_each_option_that_a_page_names() -> None:
    """In commands that are not run, and in those that stand in the prose, where values may be left out."""
    in_prose = dict.fromkeys(one for page in PAGES for span in spans(page) for one in prose_calls(span, page))
    assert len(in_prose) > 80
    read = [*((one, misread(one)) for one in CALLS), *((one, misread(one, whole=False)) for one in in_prose)]
    assert [f"{one.page}: {one}: {why}" for one, why in read if why] == []


def prose_calls(span: str, page: Path) -> Iterator[Call]:
    if re.match(r"(\S*/)?phonedesk -?[a-z]", span):
        yield from calls_of(span, str(page.relative_to(ROOT)))


def misread(one: Call, *, whole: bool = True) -> str:
    """Return what is wrong with the options of a call; "" if nothing is. ``whole``: no value may be missing."""
    if one.program != "phonedesk":
        return ""
    command = ALL
    words, context = list(one.arguments), None
    while words and words[0] in getattr(command, "commands", {}):
        context = command.context_class(command, parent=context, info_name=command.name)
        command, words = command.commands[words[0]], words[1:]
    if not words:
        return ""
    try:
        command.make_context(command.name, words, parent=context)
    except typer.Exit:  # --version
        return ""
    except (MissingParameter, BadOptionUsage) as error:
        return str(error) if whole else ""
    except BadParameter:  # "NAME", "…", a file that is not there
        return ""
    except UsageError as error:
        return str(error)
    return ""
