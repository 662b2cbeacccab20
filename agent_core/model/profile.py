"""Model profiles: how a kind of model is asked, and how it answers. Data, one TOML file per profile.

A profile is found by the model's name, or named by the settings. The file's fields are those of ``ModelProfile``. The
shipped ones are in ``profiles``, the owner's in ``models`` of their own folder.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agent_core.actions.parse import Dialect
from agent_core.errors import ConfigInvalid
from agent_core.owner import folder as own
from agent_core.texts import Listed

Form = Literal["autoglm", "json", "gelab"]
OTHERS = "general"  # for a model that fits no other profile
BY_NAME = "auto"


class ModelProfile(BaseModel):
    """The way to ask one kind of model and to read its replies.

    models: names as lower-case shell patterns, without anything before a ``/``; the longest match wins.
    form: the prompt's texts and the form of past answers.
    dialect: the dialect of its replies.
    history: ``turns`` shows past steps as turns of the conversation; ``summary`` shows the model's own summary, which
    it rewrites each time.
    tools: the actions are offered as tools, and a tool call is an answer.
    context_tokens: the window that a request and its reply of ``reply_tokens`` must fit in.
    vision: False sends no pictures.
    elements: False does not list the texts read from the screen.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    models: tuple[str, ...] = ()
    form: Form
    dialect: Dialect
    history: Literal["turns", "summary"] = "turns"
    tools: bool = False
    vision: bool = True
    elements: bool = True
    context_tokens: int = Field(gt=4000)
    reply_tokens: int = Field(default=3000, gt=0)

    def fit(self, model: str) -> int:
        """Return how closely this profile matches a model's name: the length of the matching pattern, 0 for none."""
        plain = model.strip().lower().rpartition("/")[2]
        return max((len(pattern) for pattern in self.models if fnmatchcase(plain, pattern)), default=0)


def model_profiles() -> tuple[ModelProfile, ...]:
    """Return every profile, by name: the shipped ones and the owner's. Raises OwnWrong if an owner's is wrong."""
    return _profiles(own.key())


@cache
def _profiles(_: Path | None) -> tuple[ModelProfile, ...]:
    found = own.sources(own.Part.MODELS, "agent_core.model", "profiles")
    # If two profiles match equally well, the first is taken: the owner's.
    return tuple(profile_in(read) for read in sorted(found.values(), key=lambda read: (read.file is None, read.name)))


def profile_in(read: own.OwnerSource) -> ModelProfile:
    """Return the profile in a file, named as the file is."""
    profile = own.made(read, lambda data: ModelProfile.model_validate({"name": read.name, **data}))
    read.check_named("name", profile.name)
    return profile


def model_profile(name: str) -> ModelProfile:
    """Return the profile with this name. Raises ConfigInvalid, which lists the existing names, if there is none."""
    for profile in model_profiles():
        if profile.name == name:
            return profile
    known = Listed([BY_NAME, *(profile.name for profile in model_profiles())])
    raise ConfigInvalid(
        f"There is no model profile {name!r}.",
        advice=f"Choose one of {known}.",
        key="no_model_profile",
        name=name,
        known=known,
    )


def profile_of_model(model: str, wanted: str = BY_NAME) -> ModelProfile:
    """Return the profile ``wanted``; if that is ``auto``, the best match of the model's name."""
    if wanted != BY_NAME:
        return model_profile(wanted)
    best = max(model_profiles(), key=lambda profile: profile.fit(model))
    return best if best.fit(model) else model_profile(OTHERS)
