"""What the models of the API have in common. Each subject's models are beside its operations.

Times are ISO 8601 with their offset. An empty text stands for *none*.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MOST_LISTED = 100


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("The character U+0000 is not allowed.")
    return text


Text = Annotated[str, AfterValidator(_no_nul), Field(max_length=10_000)]
Line = Annotated[str, AfterValidator(_no_nul), Field(max_length=500)]
Lines = Annotated[list[Line], Field(max_length=100)]
ClockTime = Annotated[str, Field(pattern=r"^(([01][0-9]|2[0-3]):[0-5][0-9])?$", examples=["09:00"])]


class Wish(BaseModel):
    """Base of what a client sends: a field that nobody knows is an error, never ignored."""

    model_config = ConfigDict(extra="forbid")


class Shown(BaseModel):
    """Base of what is answered: read from a view of the desk by its names."""

    model_config = ConfigDict(from_attributes=True, serialize_by_alias=False)

    @classmethod
    def of(cls, view: object) -> Self:
        return cls.model_validate(view)


class Paged(Wish):
    """A page of a list."""

    cursor: Annotated[str, Field(pattern=r"^([0-9]{1,15})?$", description="`next` of the page before.")] = ""
    limit: Annotated[int, Field(ge=1, le=MOST_LISTED)] = 20
