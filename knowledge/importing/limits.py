"""The limits on a person's file: the one place that owns them, whatever the format of the file.

A reader counts as it reads, so a file that is too large is rejected before it costs memory or time. At all the limits
together, an import takes less than 200 MB and a few seconds. The error of each limit says what it is and what to do.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from agent_core.errors import InputRejected

MEGABYTE = 1_000_000
_IN_PARTS = "Import it in parts."
_OF_THEIR_OWN = "Save the questions and answers in a file of their own."


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on a file.

    key: of the text of its error; ``said`` is that text in English.
    unit: ``most`` is shown in this unit.
    """

    key: str
    most: int
    said: str
    advice: str
    unit: int = 1

    def passed(self, where: str) -> InputRejected:
        """Return the error. ``where``: the file, or the place in it."""
        most = self.most // self.unit
        said = f"{where} {self.said.format(most)}"
        return InputRejected(said, advice=self.advice, key=self.key, name=where, most=most)


BYTES = Limit("file_too_large", 10 * MEGABYTE, "is larger than {} MB.", _IN_PARTS, MEGABYTE)
LINES = Limit("too_many_lines", 200_000, "has more than {} lines.", _IN_PARTS)
ENTRIES = Limit("too_many_rows", 20_000, "has more than {} entries.", _IN_PARTS)
# A line, a row of a table or a JSON object, with everything in it.
ENTRY = Limit(
    "entry_too_long",
    200_000,
    "has more than {} characters.",
    "Look for a line end or a quotation mark that is missing.",
)
COLUMNS = Limit("too_many_columns", 200, "has more than {} columns.", _OF_THEIR_OWN)
WORDINGS = Limit("too_many_wordings", 100_000, "has more than {} other ways to ask and tags.", _IN_PARTS)
LONGEST_LIST = 500  # of one entry: a row with more is refused
ASKED = Limit("too_much_asked", 4_000_000, "has questions and other ways to ask of more than {} characters.", _IN_PARTS)
# Rows and entries that are compared, again after each row that is left out in favour of another: a few seconds.
CHAINED = Limit("too_long_a_chain", 600_000, "has rows that take each other's questions in a long chain.", _IN_PARTS)
# For Excel files, which are compressed, and in which a million cells may share one text.
UNPACKED = Limit("unpacks_too_large", 64 * MEGABYTE, "unpacks to more than {} MB.", _OF_THEIR_OWN, MEGABYTE)
PARTS = Limit("too_many_parts", 2_000, "is packed of more than {} files.", _OF_THEIR_OWN)
SHEETS = Limit("too_many_sheets", 100, "has more than {} sheets.", _OF_THEIR_OWN)
ELEMENTS = Limit("too_many_cells", 4_000_000, "has more than {} cells and other marks.", _OF_THEIR_OWN)
CHARACTERS = Limit("too_many_characters", 10_000_000, "has cells with more than {} characters.", _OF_THEIR_OWN)
TEXTS = Limit("too_many_texts", 500_000, "has more than {} different texts.", _OF_THEIR_OWN)


class Allowance:
    """The part of the limits that one file has used."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._taken: Counter[str] = Counter()

    def take(self, limit: Limit, count: int = 1) -> None:
        """Use ``count`` more of ``limit``. Raises its InputRejected if that is too much."""
        self._taken[limit.key] += count
        if self._taken[limit.key] > limit.most:
            raise limit.passed(self.name)
