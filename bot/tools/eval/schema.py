"""Prints the JSON schema of scenario files, for editors and the reference: ``python -m bot.tools.eval.schema``."""

from __future__ import annotations

import json

from bot.channels.cli.terminal.console import print_data
from bot.tools.eval.scenario import EvalScenario


def schema_text() -> str:
    """Return the schema as it is in the reference."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **EvalScenario.model_json_schema()}
    schema["title"] = "Scenario"
    return json.dumps(schema, ensure_ascii=False, indent=2) + "\n"


if __name__ == "__main__":
    print_data(schema_text().encode())
