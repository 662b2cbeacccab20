"""People, invitations and the audit log over HTTP, for owners."""

from __future__ import annotations

from bot.channels.web.api.models import (
    ApiAuditPage,
    ApiAuditRow,
    ApiConsoleLink,
    ApiInvitation,
    ApiInvitations,
    ApiNewInvitation,
    ApiPeople,
    ApiPerson,
    ApiPersonChange,
    ApiSetting,
    ApiSettings,
    Paged,
)
from bot.channels.web.api.operations import ApiCall, Operations
from bot.desk.actors import Role

operations = Operations("people")


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
