"""Questions and answers from a person's file: read, planned as a dry run, carried out."""

from knowledge.importing.carry import carry_out, plan_import
from knowledge.importing.drafts import Draft
from knowledge.importing.plan import Added, Change, Double, ImportPlan, OnDouble, Refused, Unclear
from knowledge.importing.read import read_table

__all__ = [
    "Added",
    "Change",
    "Double",
    "Draft",
    "ImportPlan",
    "OnDouble",
    "Refused",
    "Unclear",
    "carry_out",
    "plan_import",
    "read_table",
]
