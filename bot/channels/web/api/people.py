"""People, invitations and the audit log over HTTP, for owners."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AliasPath, Field

from bot.channels.web.api.operations import ApiCall, Lines, Operations, Paged, Shown, Wish
from bot.desk.actors import Role

operations = Operations("people")


class ApiPerson(Shown):
    """A paired person. ``devices``: the serials of the only phones that they may use; none for all."""

    id: str
    name: str
    role: str
    lang: str
    user: str = Field(validation_alias="user_id", description="Their id in Telegram, or empty.")
    since: datetime
    seen: datetime | None
    devices: list[str] = Field(validation_alias="phones")
    chats: list[str]


class ApiPeople(Shown):
    items: list[ApiPerson]


class ApiPersonChange(Wish):
    """What is left out stays as it is. ``devices``: none lifts the limit."""

    role: Literal["viewer", "operator", "owner"] | None = None
    devices: Lines | None = None


class ApiNewInvitation(Wish):
    """``hours``: how long the code can be used. ``name``: who is invited to the console; "" for Telegram."""

    role: Literal["viewer", "operator", "owner"] = "operator"
    hours: Annotated[float, Field(gt=0, le=720)] = 24
    name: Annotated[str, Field(max_length=64)] = ""
    devices: Lines = []


class ApiInvitation(Shown):
    """An invitation. ``code``: "" except when it was just made. ``link``: the console's, if it is for the console.

    name: who is invited to the console; "" for somebody who sends the code to the bot.
    """

    id: str
    name: str
    role: str
    by: str
    created_at: datetime
    expires_at: datetime
    code: str
    link: str
    devices: list[str] = Field(validation_alias="phones")


class ApiConsoleLink(Shown):
    """A link that logs a person in to the console once, within a day. It is shown this once."""

    link: str
    name: str


class ApiInvitations(Shown):
    items: list[ApiInvitation]


class ApiAuditRow(Shown):
    """What somebody did, or was refused. ``detail`` depends on ``command``."""

    id: int
    at: datetime
    who: str
    channel: str
    command: str
    detail: Mapping[str, Any]
    allowed: bool


class ApiAuditPage(Shown):
    """A page of the audit log, the newest first. ``next``: the cursor of the next page, "" at the end."""

    items: list[ApiAuditRow]
    next: str


class ApiSettingPlace(Shown):
    """``source``: where a setting is set. ``where``: the variable, or the file and line."""

    source: str = Field(validation_alias="layer")
    where: str


class ApiSetting(Shown):
    """A setting. ``value``: dots for a secret. ``places``: each that names it, the one that wins first."""

    name: str = Field(validation_alias=AliasPath("name", "key"))
    environment: str = Field(validation_alias=AliasPath("name", "environment"))
    value: Any
    places: list[ApiSettingPlace]
    changed: bool


class ApiSettings(Shown):
    items: list[ApiSetting]


@operations.get("/people", Role.OWNER)
async def list_people(call: ApiCall) -> ApiPeople:
    """List the people who are paired."""
    return ApiPeople(items=[ApiPerson.of(each) for each in await call.desk.team.people(call.actor)])


@operations.patch("/people/{person_id}", Role.OWNER)
async def change_person(call: ApiCall, person_id: str, body: ApiPersonChange) -> ApiPerson:
    """Give a person another role, or limit them to certain phones. What is left out stays as it is."""
    person = await call.desk.team.find(call.actor, f"#{person_id}")
    if body.role is not None:
        person = await call.desk.team.set_role(call.actor, f"#{person_id}", Role(body.role))
    if body.devices is not None:
        person = await call.desk.team.limit(call.actor, f"#{person_id}", phones=body.devices)
    return ApiPerson.of(person)


@operations.delete("/people/{person_id}", Role.OWNER)
async def remove_person(call: ApiCall, person_id: str) -> ApiPerson:
    """Remove a person. Their runs and schedules continue."""
    return ApiPerson.of(await call.desk.team.remove(call.actor, f"#{person_id}"))


@operations.post("/people/{person_id}/put-back", Role.OWNER)
async def put_person_back(call: ApiCall, person_id: str) -> ApiPerson:
    """Put back the person whom one has removed last."""
    return ApiPerson.of(await call.desk.team.undo_remove(call.actor, person_id))


@operations.post("/people/{person_id}/console-link", Role.OWNER)
async def make_console_link(call: ApiCall, person_id: str) -> ApiConsoleLink:
    """Make a link that logs this person in to the console."""
    person = await call.desk.team.find(call.actor, f"#{person_id}")
    return ApiConsoleLink(link=await call.desk.console.link_for(call.actor, person), name=person.name)


@operations.get("/invitations", Role.OWNER)
async def list_invitations(call: ApiCall) -> ApiInvitations:
    """List the open invitations, the newest first, without their codes."""
    return ApiInvitations(items=[ApiInvitation.of(each) for each in await call.desk.team.invites(call.actor)])


@operations.post("/invitations", Role.OWNER, status=201)
async def invite_person(call: ApiCall, body: ApiNewInvitation) -> ApiInvitation:
    """Invite one more person: by a link to the console if a name is given, else by a code for the bot (`/start CODE`).

    Either is shown this once.
    """
    made = await call.desk.team.invite(call.actor, Role(body.role), body.hours, name=body.name, phones=body.devices)
    return ApiInvitation.of(made)


@operations.delete("/invitations/{invitation_id}", Role.OWNER)
async def revoke_invitation(call: ApiCall, invitation_id: str) -> ApiInvitation:
    """Revoke an open invitation."""
    return ApiInvitation.of(await call.desk.team.revoke(call.actor, invitation_id))


@operations.get("/audit", Role.OWNER)
async def list_audit(call: ApiCall, query: Paged) -> ApiAuditPage:
    """List what was done and refused, the newest first."""
    rows = await call.desk.team.audit(call.actor, before=int(query.cursor or 0), limit=query.limit)
    more = len(rows) == query.limit
    return ApiAuditPage(items=[ApiAuditRow.of(row) for row in rows], next=str(rows[-1].id) if more else "")


@operations.get("/settings", Role.OWNER)
async def list_settings(call: ApiCall) -> ApiSettings:
    """List the settings with their sources. Secrets are hidden."""
    return ApiSettings(items=[ApiSetting.of(each) for each in await call.desk.team.settings(call.actor)])
