"""Reading a person's words as the answer to a question, the same in every channel."""

from __future__ import annotations

import re

from agent_core.loop.questions import RECORD, SKIP
from agent_core.session import TO_CUSTOMER, Answer, Question
from agent_core.texts import sentences
from bot.channels.chat.commands import is_like_a_command
from bot.channels.chat.questions import answer_label, choice_label
from bot.channels.chat.texts import Texts
from bot.channels.chat.turn import Turn
from bot.desk.views import AnswerOutcome, QuestionView

# Words that answer a yes-or-no question, whatever its buttons say. Only as the whole answer, not within a sentence.
_YES = frozenset({"是", "是的", "对", "yes", "y"})
_NO = frozenset({"不是", "否", "不", "no", "n"})
_CONFIRMED = {"yes": _YES, "allow": _YES, "no": _NO, "deny": _NO}
_A_NUMBER = re.compile(r"\d{1,2}")
# The placeholder in our advice, which people copy with the command: its words in any order, with any marks around.
_PLACEHOLDERS = frozenset({"number", "or", "words", "word", "序号或要说的话", "序号", "要说的话"})
_BETWEEN = frozenset({"a", "the", "your", "own"})
_MISTYPED = re.compile(r"[\d\s.。,，、]{1,4}")  # a number that was meant for a button


def read_answer(question: Question, said: str, *, by: str = "", own: bool = False) -> Answer | None:
    """Return the choice that is named by its number (from 1), words or value, else free text if the question takes it.

    Returns None if it is neither, or the placeholder of our advice. A bare number that no choice has is None, too: it
    was meant for a choice, and must not go to a customer.
    own: the person was asked for their own words. Then these name no number and no candidate, but may say to skip.
    """
    text = said.strip()
    own = own and question.free_text
    wanted = text.rstrip(".。").casefold()
    if _is_placeholder(said):
        return None
    for number, choice in enumerate(question.choices, start=1):
        if own and choice.value.startswith(RECORD):
            continue
        meant = set() if own else {str(number)}
        if not question.free_text:
            meant |= _CONFIRMED.get(choice.value, frozenset())
        if choice.means(wanted) or wanted in meant:
            return Answer(choice=choice.value, by=by)
    to_customer = question.kind in TO_CUSTOMER and _MISTYPED.fullmatch(text)
    if not own and (to_customer or (question.choices and _A_NUMBER.fullmatch(text))):
        return None
    answer = Answer(text=text, by=by)
    return answer if question.accepts(answer) else None


def _is_placeholder(said: str) -> bool:
    """Tell whether the text is only the placeholder of our advice, "NUMBER or your words"."""
    found = set(re.findall(r"[^\W_]+", said.casefold()))
    return bool(found & _PLACEHOLDERS) and found <= _PLACEHOLDERS | (
        _BETWEEN if len(found & _PLACEHOLDERS) > 1 else set()
    )


def no_answer(words: Texts, view: QuestionView, said: str) -> str:
    """Return why ``read_answer`` found no answer in ``said``, and what would be one."""
    labels = " / ".join(choice_label(view, number, words) for number in range(len(view.question.choices)))
    key = "not_a_choice"
    if view.question.free_text:
        key = "own_or_choice" if len(view.question.choices) > 1 else "own_or_only"
        key = key if said.strip() else "own_empty"
    wanted = words.get(f"question.{key}", choices=labels, count=len(view.question.choices))
    wrong, number = "", said.strip().rstrip(".。")
    if _is_placeholder(said):
        wrong = words.get("question.placeholder", said=said.strip())
    elif _A_NUMBER.fullmatch(number):
        wrong = words.get("question.no_such_choice", number=number)
    return sentences([wrong, wanted], words.lang)


def to_confirm(question: Question, answer: Answer) -> bool:
    """Tell whether an answer to a customer looks like a command. Then every channel asks the person first."""
    return question.kind in TO_CUSTOMER and is_like_a_command(answer.text)


def says_yes(said: str) -> bool:
    """Tell whether the whole text means yes."""
    return said.strip().rstrip(".。").casefold() in _YES


def says_no(said: str) -> bool:
    """Tell whether the whole text means no."""
    return said.strip().rstrip(".。").casefold() in _NO


def verdict(words: Texts, view: QuestionView | None, result: AnswerOutcome, *, me: str = "", held: bool = False) -> str:
    """Return the outcome of an answer in words: it counts, it came too late, or there is no such question.

    me: the name of the reader.
    held: the run is held, so nothing happens before Resume.
    """
    if result.state == "accepted":
        said = words.get("question.skipped" if result.answer == SKIP else "question.accepted")
        return said + words.get("question.while_held") if held else said
    if result.state == "unknown" or view is None:
        return words.get("question.unknown")
    if not result.by:
        return words.get("question.late_nobody")
    said = answer_label(view, result.answer, words)
    if result.by == me:
        return words.get("question.late_own", answer=said)
    return words.get("question.late", by=words.person(result.by), answer=said)


def told(turn: Turn, view: QuestionView, result: AnswerOutcome) -> str:
    """Return the ``verdict`` for a person in a chat."""
    return verdict(turn.texts, view, result, me=turn.actor.name, held=view.held)
