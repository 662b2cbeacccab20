"""Saved contacts over HTTP. A contact is named by its app and its name, and by its phone if it belongs to one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bot.channels.web.api.operations import ApiCall, Line, Lines, Operations, Shown, Wish
from bot.desk.actors import Role
from bot.desk.views import ContactView

operations = Operations("contacts")


class ApiContactsQuery(Wish):
    app: Line = ""
    text: Line = ""
    tag: Line = ""


class ApiContact(Shown):
    app: str
    name: str
    device: str = Field(validation_alias="serial")
    number: str
    tags: list[str]
    note: str


class ApiContacts(Shown):
    items: list[ApiContact]


class ApiNewContact(Wish):
    """``device``: the serial of the phone that knows this contact; "" for all."""

    app: Line = "qq"
    name: Annotated[Line, Field(min_length=1)]
    device: Line = ""
    number: Line = ""
    tags: Lines = []
    note: Line = ""


class ApiContactChange(Wish):
    """What is left out stays as it is."""

    name: Annotated[Line, Field(min_length=1)] | None = None
    number: Line | None = None
    tags: Lines | None = None
    note: Line | None = None


class ApiOfDevice(Wish):
    device: Line = ""


@operations.get("/contacts", Role.OPERATOR)
async def list_contacts(call: ApiCall, query: ApiContactsQuery) -> ApiContacts:
    """List contacts by app and name."""
    found = await call.desk.contacts.find(call.actor, app=query.app, text=query.text, tag=query.tag)
    return ApiContacts(items=[ApiContact.of(contact) for contact in found])


@operations.post("/contacts", Role.OWNER, status=201)
async def add_contact(call: ApiCall, body: ApiNewContact) -> ApiContact:
    """Save a contact."""
    new = ContactView(body.app, body.name, body.device, body.number, tuple(body.tags), body.note)
    return ApiContact.of(await call.desk.contacts.add(call.actor, new))


@operations.patch("/contacts/{app}/{name}", Role.OWNER)
async def change_contact(call: ApiCall, app: str, name: str, query: ApiOfDevice, body: ApiContactChange) -> ApiContact:
    """Change a contact."""
    changed = await call.desk.contacts.edit(
        call.actor,
        name,
        app=app,
        serial=query.device,
        rename=body.name,
        number=body.number,
        tags=body.tags,
        note=body.note,
    )
    return ApiContact.of(changed)


@operations.delete("/contacts/{app}/{name}", Role.OWNER)
async def remove_contact(call: ApiCall, app: str, name: str, query: ApiOfDevice) -> ApiContact:
    """Remove a contact."""
    return ApiContact.of(await call.desk.contacts.remove(call.actor, name, app=app, serial=query.device))


@operations.post("/contacts/{app}/{name}/undo", Role.OWNER)
async def undo_contact(call: ApiCall, app: str, name: str, query: ApiOfDevice) -> ApiContact:
    """Take back one's own newest change or removal, if it was of this contact."""
    return ApiContact.of(await call.desk.contacts.undo(call.actor, name, app=app, serial=query.device))
