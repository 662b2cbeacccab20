"""What the desk refuses is told in the person's own language."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import bot
from bot.channels.chat.texts import LANGUAGES, Lang, catalogue, texts
from bot.desk.actors import Actor, Role, role_denied
from knowledge.importing import limits
from knowledge.importing.limits import Limit
from tests.bot.channels.chat.member import Member, member
from tests.support.raised import of_a_row
from tests.support.shop import Shop

RAISED = {"BadRequest", "NotFound", "AccessDenied", "RateLimited", "StillLimited", "DoubleEntry"}
SENTENCE = re.compile(r"[A-Za-z']+(?:,? [A-Za-z']+){2,}")


def raised() -> list[tuple[str, ast.Call]]:
    """Each place where desk or conversation make an error of theirs."""
    folder = Path(str(bot.__file__)).parent
    files = [*(folder / "desk").glob("*.py"), *(folder / "channels" / "chat").glob("*.py")]
    calls = [(file.name, node) for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    return [
        (f"{name}:{node.lineno}", node)
        for name, node in calls
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in RAISED
    ]


def test_every_error_of_the_desk_has_a_text_of_its_own() -> None:
    assert len(raised()) > 40
    named = {where: {word.arg: word.value for word in call.keywords} for where, call in raised()}
    assert [where for where, words in named.items() if "key" not in words] == []
    keys = {str(words["key"].value) for words in named.values() if isinstance(words["key"], ast.Constant)}
    assert {"errors." + key for key in keys} - catalogue("zh").keys() == set()


def test_what_a_person_wrote_is_refused_in_their_language() -> None:
    """Tasks, and files for the knowledge base: what a chat takes in."""
    root = Path(str(bot.__file__)).parent.parent
    files = [root / "agent_core" / "loop" / "tasks.py", *(root / "knowledge" / "importing").glob("*.py")]
    files.append(root / "knowledge" / "embedded.py")
    keys = []
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "InputRejected":
                if file.name == "limits.py" or of_a_row(node):  # of each limit, see the next test
                    continue
                key = {word.arg: word.value for word in node.keywords}.get("key")
                either = [key.body, key.orelse] if isinstance(key, ast.IfExp) else [key]
                keys += [_pattern(one) or f"{file.name}:{node.lineno}" for one in either]
    known = {key.removeprefix("errors.") for lang in LANGUAGES for key in catalogue(lang) if key.startswith("errors.")}
    # Handed on as it came.
    unknown = {key for key in keys if not any(re.fullmatch(key, one) for one in known)}
    assert unknown <= {where for where in keys if where.startswith("tasks.py:")}
    assert len(keys) > 15


def _pattern(key: ast.expr | None) -> str:
    """Return the regular expression of the keys that an expression can give; "" if it can give any."""
    match key:
        case ast.Constant(value=str(name)):
            return re.escape(name)
        case ast.JoinedStr(values=parts):
            return "".join(re.escape(str(p.value)) if isinstance(p, ast.Constant) else "[a-z]+" for p in parts)
    return ""


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_limit_of_an_import_says_what_it_is_and_what_to_do(lang: Lang) -> None:
    found = [limit for limit in vars(limits).values() if isinstance(limit, Limit)]
    assert len(found) > 10
    for limit in found:
        said, _, advice = texts(lang).error(limit.passed("faq.xlsx")).partition("\n")
        assert "faq.xlsx" in said
        assert str(limit.most // limit.unit) in said or limit is limits.CHAINED
        assert advice


def test_no_chinese_text_of_an_error_holds_an_english_sentence() -> None:
    said = {key: text for key, text in catalogue("zh").items() if key.startswith(("errors.", "error."))}
    commands = re.compile(
        r"phonedesk (?:apps|config|contacts|devices|kb|keys|people|questions|webhooks(?: incoming)?) \w+"
        r"|docker compose exec -T db \w+"
    )
    plain = {key: commands.sub("", text) for key, text in said.items()}
    assert {key: text for key, text in plain.items() if SENTENCE.search(text)} == {}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_roles_are_called_by_their_names(lang: Lang) -> None:
    error = role_denied(Actor("1", "telegram", "1", "A", lang, Role.OPERATOR), Role.OWNER)
    said = texts(lang).error(error)
    assert ("操作员" in said and "管理员" in said) if lang == "zh" else "is operator; it needs owner" in said
    assert "A operator" not in str(error)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("/people role Chief viewer", "这是最后一位管理员。"),
        ("/schedule pause 9", "没有定时任务 #9。"),
        ("/schedule add every x QQ回复11", "没看懂这个时间：every x"),
        ("/people remove #77", "这里没有叫 #77 的人。"),
        ("/replay 77", "没有任务 77。"),
        ("/screen S99", "没有连接手机 S99。"),
        ("/answers #77", "没有问答记录 #77。"),
        ("/contacts remove 77", "没有联系人 77。"),
        ("/invite owner phone S1", "管理员不能被限制。"),
        ("/people revoke abc", "没有可用的邀请 abc。"),
        ("/settings de", "没有“de”这个选项。"),
        ("/run --policy odd 打开微信", "没有规则“odd”。"),
        ("/run --app 没有的应用 打开微信", "还不认识“没有的应用”这个应用名，装在手机上也一样。"),
        ("/run --policy reply 打开设置", "任务里没有写用哪个应用回复客户。"),
        ("/run --app QQ QQ回复联系人11", "回复客户的任务只用它自己的应用。"),
        ("/run " + "长" * 2001, "任务太长了，最多 2000 个字。"),
        ("/people limit Anna phone NOPE", "没有见过手机 NOPE。"),
        ("/people limit Anna chat -999", "机器人不在编号是 -999 的聊天里。"),
    ],
)
async def test_a_chinese_chat_hears_no_english_sentence(shop: Shop, words: str, told: str) -> None:
    owner: Member = await member(shop, Role.OWNER, "Chief")
    await member(shop, Role.OPERATOR, "Anna")
    said = await owner.say(words)
    assert said.startswith(told)
    assert not SENTENCE.search(said)
