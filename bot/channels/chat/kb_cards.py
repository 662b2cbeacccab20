"""Cards of the knowledge base, made by pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_core.texts import Listed, filled
from bot.channels.chat.cards import MOST_ACTION_BYTES, Button, Card, Document, Line, cut
from bot.channels.chat.texts import Texts
from bot.desk.actors import Actor, Role
from bot.desk.knowledge_views import ImportStep, ImportView, KnowledgeStats
from knowledge.entries import Entry, Found
from knowledge.importing.messages import in_language
from knowledge.importing.plan import Double, EntryChange, ImportPlan
from knowledge.personal import personal_data

FOUND_A_PAGE = 5
PENDING_A_PAGE = 3
SHOWN_OF_A_GROUP = 5  # of an import's rows
SHOWN_OF_A_TEXT = 60  # characters of a question or an answer that an import changes
LONGEST_COPY = 1200  # characters of an answer to copy, so that a card that is too long is not cut there

Row = tuple[Button, ...]


def row(*buttons: Button) -> tuple[Row, ...]:
    """Return the buttons as one row, without those whose action is too long: an entry may have a long id."""
    fitting = tuple(button for button in buttons if len(button.action.encode()) <= MOST_ACTION_BYTES)
    return (fitting,) if fitting else ()


def pages(texts: Texts, action: str, page: int, count: int) -> tuple[Row, ...]:
    """Return buttons to the previous and the next page. Pages are counted from 0."""
    before = [Button(f"{action}:{page - 1}", texts.get("kb.previous"))] if page > 0 else []
    behind = [Button(f"{action}:{page + 1}", texts.get("kb.next"))] if page + 1 < count else []
    return row(*before, *behind)


def page_count(items: int, size: int) -> int:
    """Return the number of pages."""
    return max(1, -(-items // size))


# Entries --------------------------------------------------------------------------------------------------------------


def entry_lines(entry: Entry, texts: Texts, *, of: str = "", before: Entry | None = None) -> tuple[Line, ...]:
    """Return the lines of an entry.

    of: the question that this one is only another wording of. before: the entry before it was changed.
    """
    lines = [Line(entry.question, texts.get("kb.question"), "quote")]
    if entry.alias_of:
        lines.append(Line(of or texts.number(entry.alias_of), texts.get("kb.alias_of")))
    lines.append(Line(entry.answer, texts.get("kb.answer"), "quote"))
    for key, had, has, between in (
        ("aliases", before.aliases if before else entry.aliases, entry.aliases, " | "),
        ("tags", before.tags if before else entry.tags, entry.tags, " "),
    ):
        if has or had:
            lines.append(Line(between.join(has) or "—", texts.get(f"kb.{key}")))
        if had != has:
            lines.append(Line(between.join(had) or "—", texts.get(f"kb.{key}_before")))
    if entry.origin:
        lines.append(Line(origin(entry, texts), texts.get("kb.origin")))
    if not entry.live:
        lines.append(Line(texts.get("kb.waits")))
        if seen := personal_data(f"{entry.question}\n{entry.answer}"):
            lines.append(Line(texts.get("kb.personal", seen=" ".join(seen))))
    return tuple(lines)


def origin(entry: Entry, texts: Texts) -> str:
    """Return the source of an entry in words."""
    kind, _, name = entry.origin.partition(":")
    pattern = texts.find(f"kb.origin_{'chosen' if kind == 'person' and entry.alias_of else kind}", "")
    values = {"name": texts.person(name or kind), "time": entry.created_at.strftime("%Y-%m-%d")}
    return filled(pattern, values, texts.lang) if pattern else entry.origin


def entry_card(
    entry: Entry,
    texts: Texts,
    actor: Actor,
    *,
    title: str,
    of: str,
    before: Entry | None,
) -> Card:
    """Return the card of an entry, with this person's options and the command to copy that changes it."""
    lines = entry_lines(entry, texts, of=of, before=before)
    owner = actor.role is Role.OWNER
    buttons: tuple[Row, ...] = ()
    if owner or (not entry.live and actor.role is Role.OPERATOR):
        lines = (*lines, Line(texts.get("kb.copy")), Line(edit_command(entry, texts), "", "code"))
        buttons = (
            review(entry, texts, owner=owner) if not entry.live else row(_button(texts, "del", entry.id, "kb.delete"))
        )
    return Card(title or texts.number(entry.id), lines, None, buttons)


def edit_command(entry: Entry, texts: Texts) -> str:
    """Return the command that changes an entry, to copy."""
    answer = entry.answer if len(entry.answer) <= LONGEST_COPY else ""
    return f"/kb {texts.get('kb.verb_edit')} {entry.id} {texts.get('kb.answer')}{texts.get('common.colon')}{answer}"


def review(entry: Entry, texts: Texts, number: str = "", page: int = 0, *, owner: bool) -> tuple[Row, ...]:
    """Return the buttons for a waiting entry. Only an owner may approve."""
    mark = f" {number}" if number else ""
    approve = [Button(f"kb:ok:{page}:{entry.id}", texts.get("kb.approve") + mark, "success")] if owner else []
    return row(
        *approve,
        Button(f"kb:show:{entry.id}", texts.get("kb.edit") + mark),
        Button(f"kb:drop:{page}:{entry.id}", texts.get("kb.reject") + mark, "danger"),
    )


def _button(texts: Texts, verb: str, entry_id: str, key: str) -> Button:
    return Button(f"kb:{verb}:{entry_id}", texts.get(key), "danger" if verb.startswith("del") else "")


def found_card(found: Sequence[Found], words: str, texts: Texts, *, page: int = 0, paged: bool = True) -> Card:
    """Return a page of the entries that were found, or all of them if not ``paged``."""
    if not found:
        return Card(texts.get("kb.nothing_found", words=words), (Line(texts.get("kb.nothing_found_advice")),))
    size = FOUND_A_PAGE if paged else len(found)
    count = page_count(len(found), size)
    page = min(max(0, page), count - 1)
    shown = found[page * size : (page + 1) * size]
    lines: list[Line] = []
    for one in shown:
        state = "" if one.entry.live else f" · {texts.get('kb.waiting')}"
        lines.append(Line(f"{one.entry.question}\n{one.entry.answer}", f"{texts.number(one.entry.id)}{state}", "quote"))
    title = texts.get("kb.found", words=words, count=len(found)) if words else texts.get("kb.newest")
    if count > 1:
        lines.append(Line(texts.get("kb.page", page=page + 1, pages=count)))
    show = row(*(Button(f"kb:show:{one.entry.id}", f"#{one.entry.id}") for one in shown))
    each = tuple((button,) for buttons in show for button in buttons)
    return Card(title, tuple(lines), None, (*each, *pages(texts, "kb:found", page, count)) if paged else ())


def pending_card(
    entries: Sequence[Entry],
    meanings: Mapping[str, str],
    texts: Texts,
    *,
    page: int = 0,
    paged: bool = True,
    owner: bool = True,
) -> Card:
    """Return a page of the waiting entries. ``owner``: may approve.

    meanings: the questions that some are other wordings of, by the entry's id.
    paged: if False, show all entries, named by their ids and not by the numbers of buttons.
    """
    if not entries:
        return Card(texts.get("kb.no_pending"), (Line(texts.get("kb.no_pending_advice")),))
    size = PENDING_A_PAGE if paged else len(entries)
    count = page_count(len(entries), size)
    page = min(max(0, page), count - 1)
    lines: list[Line] = []
    buttons: list[Row] = []
    for number, entry in enumerate(entries[page * size : (page + 1) * size], start=page * size + 1):
        named = Line(texts.number(entry.id), f"{number}." if paged else "")
        lines += [named, *entry_lines(entry, texts, of=meanings.get(entry.alias_of, ""))]
        buttons += review(entry, texts, str(number), page, owner=owner)
    if not owner:
        lines.append(Line(texts.get("kb.owner_approves")))
    if count > 1:
        lines.append(Line(texts.get("kb.page", page=page + 1, pages=count)))
    shown = (*buttons, *pages(texts, "kb:pending", page, count)) if paged else ()
    return Card(texts.get("kb.pending", count=len(entries)), tuple(lines), None, shown)


def delete_card(entry: Entry, texts: Texts) -> Card:
    """Return the card that asks before an entry is deleted."""
    lines = entry_lines(entry, texts)
    sure = row(_button(texts, "delete", entry.id, "kb.delete"))
    if not sure:
        return Card(texts.get("kb.long_id", id=entry.id), lines)
    asked = ((*sure[0], Button("kb:cancel", texts.get("kb.cancel"))),)
    return Card(texts.get("kb.delete_sure", id=entry.id), lines, None, asked)


def undo_button(entry_id: str, texts: Texts) -> tuple[Row, ...]:
    """Return the Undo button."""
    return row(Button(f"kb:undo:{entry_id}", texts.get("kb.undo")))


# Figures and imports --------------------------------------------------------------------------------------------------


def stats_lines(stats: KnowledgeStats, texts: Texts) -> tuple[Line, ...]:
    """Return the figures of the knowledge base."""
    entries = stats.entries
    lines = [
        Line(texts.get("kb.counts", live=entries.live, aliases=entries.aliases)),
        Line(texts.get("kb.count_pending", count=entries.pending)),
    ]
    if entries.newest is not None:
        lines.append(Line(entries.newest.strftime("%Y-%m-%d %H:%M"), texts.get("kb.newest_change")))
    if entries.tags:
        lines.append(Line(" ".join(f"{tag}×{count}" for tag, count in entries.tags[:10]), texts.get("kb.tags")))
    if not entries.live and not entries.pending:
        lines.append(Line(texts.get("kb.empty")))
    asked = Listed(texts.find(f"kb.provider_{name}", name) for name in stats.provider.split(","))
    lines.append(Line(asked.joined(texts.lang), texts.get("kb.provider")))
    if not stats.used:
        lines.append(Line(texts.get("kb.not_used", provider=stats.provider)))
    return tuple(lines)


def overview_card(stats: KnowledgeStats, texts: Texts, actor: Actor) -> Card:
    """Return the card of ``/kb``: the figures, and this person's options."""
    verbs = ["search", "stats"]
    if actor.role is not Role.VIEWER:
        verbs += ["pending", "add", "edit"]
    if actor.role is Role.OWNER:
        verbs += ["delete", "import", "export"]
    said = {"pending": "pending" if actor.role is Role.OWNER else "pending_operator"}
    can = tuple(Line(texts.get(f"kb.can_{said.get(verb, verb)}"), texts.get(f"kb.use_{verb}")) for verb in verbs)
    return Card(texts.get("kb.title"), (*stats_lines(stats, texts), *can))


def import_card(view: ImportView, texts: Texts, *, most: int | None = SHOWN_OF_A_GROUP) -> Card:
    """Return the changes of an import: planned, with its buttons, or made.

    most: how many rows of each kind to show, None for all. The aliases that are lost are all shown.
    """
    plan = view.plan
    lines = [Line(texts.get("kb.import_counts", added=len(plan.added), changed=len(plan.changed), same=len(plan.same)))]
    left_out = _left_out(plan, texts, most)
    if counts := [texts.get(f"kb.import_count_{key}", count=count) for key, _, count in left_out if count]:
        lines.append(Line(" · ".join(counts)))
    lines += [Line(in_language(note, texts.lang)) for note in plan.notes]
    if kept := [change for change in plan.changed if change.kept and change.old.answer != change.new.answer]:
        lines.append(Line(texts.get("kb.import_kept", count=len(kept))))
    if lost := sum(len(one.aliases) for one in plan.lost):
        lines.append(Line(texts.get("kb.import_lost" if view.done else "kb.import_loses", count=lost)))
    if not view.done and not plan.writes and not plan.doubles and not plan.unclear:
        lines.append(Line(texts.get("kb.import_nothing")))
    added = [added.entry.question for added in plan.added[:most]]
    changed = [_change(change, texts) for change in plan.changed[:most]]
    taken = [("added", added, len(plan.added)), ("changed", changed, len(plan.changed))]
    for key, group, count in (*taken, *left_out):
        if group:
            more = [texts.get("kb.more", count=count - len(group))] if count > len(group) else []
            lines.append(Line("\n".join([*group, *more]), texts.get(f"kb.import_{key}"), "quote"))
    if plan.lost:
        said = "\n".join(f"{one.entry.question}: {' | '.join(one.aliases)}" for one in plan.lost)
        lines.append(Line(said, texts.get("kb.import_lost_aliases"), "quote"))
    if plan.unclear:
        lines.append(Line(texts.get("kb.import_decide")))
    if view.done:
        key = "kb.imported" if plan.writes or plan.same else "kb.not_imported"
        return Card(texts.get(key, name=plan.name), tuple(lines))
    return Card(texts.get("kb.import_plan", name=plan.name), tuple(lines), None, _import_buttons(view, texts))


def _left_out(plan: ImportPlan, texts: Texts, most: int | None) -> list[tuple[str, list[str], int]]:
    """Return the rows that are not taken, or not fully: for each kind its key, the first in words, and their number."""
    unclear = [
        texts.get(
            "kb.import_unclear_row",
            place=in_language(one.place, texts.lang),
            question=cut(one.question, SHOWN_OF_A_TEXT),
            answer=cut(one.answer, SHOWN_OF_A_TEXT),
            others=Listed(in_language(place, texts.lang) for place in one.other_places[:SHOWN_OF_A_GROUP]),
        )
        for one in plan.unclear[:most]
    ]
    doubles = [_double(one, texts) for one in plan.doubles[:most]]
    refused = [
        in_language(one.place, texts.lang) + texts.get("common.colon") + in_language(one.reason, texts.lang)
        for one in plan.rejected[:most]
    ]
    return [
        ("unclear", unclear, len(plan.unclear)),
        ("doubles", doubles, len(plan.doubles)),
        ("refused", refused, len(plan.rejected)),
    ]


def _double(one: Double, texts: Texts) -> str:
    key = "kb.import_double_differs" if one.whole and one.differs else "kb.import_double"
    place = in_language(one.place, texts.lang)
    at = texts.get("kb.import_in_base") if one.in_base else in_language(one.other_place, texts.lang)
    ours, theirs = cut(one.answer, SHOWN_OF_A_TEXT), cut(one.other_answer, SHOWN_OF_A_TEXT)
    return texts.get(key, place=place, wording=one.wording, other=one.other, at=at, ours=ours, theirs=theirs)


def left_out_card(plan: ImportPlan, texts: Texts) -> Card | None:
    """Return a file with all rows that are left out, or None if the card of the import shows them all."""
    kinds = _left_out(plan, texts, None)
    if all(count <= SHOWN_OF_A_GROUP for _, _, count in kinds):
        return None
    parts = [[texts.get(f"kb.import_{key}"), *rows, ""] for key, rows, _ in kinds if rows]
    data = "\n".join(line for part in parts for line in part).encode("utf-8", "replace")
    return Card(texts.get("kb.import_left_out"), (), document=Document("left-out.txt", data))


def progress_card(step: ImportStep, name: str, texts: Texts) -> Card:
    """Return the card that tells how far an import is."""
    return Card(texts.get("kb.importing", name=name), (Line(step_words(step, texts)),))


def step_words(step: ImportStep, texts: Texts) -> str:
    """Return in words how far an import is."""
    return texts.get(f"kb.import_step_{step.kind}", done=f"{step.done:,}", total=f"{step.total:,}")


def _change(change: EntryChange, texts: Texts) -> str:
    """Return the entry, and a line for each field that changes."""
    old, new = change.old, change.new
    told = [new.question]
    for key, before, after in (("question", old.question, new.question), ("answer", old.answer, new.answer)):
        if before != after:
            told.append(f"  {texts.get(f'kb.{key}')}{texts.get('common.colon')}{_differing(before, after)}")
    if change.kept and old.answer != new.answer:
        told.append(f"  {texts.get('kb.kept_aliases')}{texts.get('common.colon')}{' | '.join(change.kept)}")
    for key, had, has in (("aliases", old.aliases, new.aliases), ("tags", old.tags, new.tags)):
        parts = [f"-{one}" for one in _less(had, has)] + [f"+{one}" for one in _less(has, had)]
        if parts or had != has:
            told.append(f"  {texts.get(f'kb.{key}')}{texts.get('common.colon')}{' '.join(parts) or ' | '.join(has)}")
    if old.live != new.live:
        told.append(f"  {texts.get('kb.goes_live' if new.live else 'kb.waits_again')}")
    return "\n".join(told)


def _less(some: Sequence[str], others: Sequence[str]) -> list[str]:
    known = set(others)
    return [one for one in some if one not in known]


def _differing(before: str, after: str) -> str:
    """Return both texts on one line, cut to the part in which they differ."""
    before, after = " ".join(before.split()), " ".join(after.split())
    same = next((at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), 0)
    start = max(0, same - SHOWN_OF_A_TEXT // 3) if same > SHOWN_OF_A_TEXT // 2 else 0
    return f"{_piece(before, start)} → {_piece(after, start)}"


def _piece(text: str, start: int) -> str:
    end = start + SHOWN_OF_A_TEXT
    return ("…" if start else "") + text[start:end] + ("…" if len(text) > end else "")


def _import_buttons(view: ImportView, texts: Texts) -> tuple[Row, ...]:
    plan = view.plan
    buttons: list[Row] = []
    if plan.writes:
        buttons.append((Button(f"kb:import:skip:{view.mark}", texts.get("kb.import_go"), "success"),))
    if plan.unclear or any(not double.fixed for double in plan.doubles):
        buttons.append((Button(f"kb:import:replace:{view.mark}", texts.get("kb.import_replace"), "primary"),))
    if buttons:
        buttons.append((Button("kb:cancel", texts.get("kb.cancel")),))
    return tuple(buttons)
