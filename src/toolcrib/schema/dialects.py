"""What becomes of a canonical schema for each provider: pure functions that also say what was lost.

Each returns the schema as the provider accepts it (the very same object when nothing had to change; never a changed
one) and one line for each thing the provider will not hold the model to. Arguments are checked against the canonical
schema whatever the provider was shown, so a loss is a weaker hint, never a weaker check.
"""

from __future__ import annotations

from toolcrib.schema._aliases import Rule
from toolcrib.schema._gemini import Gemini
from toolcrib.schema._keys import key_aliases, renamed
from toolcrib.schema._openai_strict import OpenAIStrict
from toolcrib.schema._roots import object_root
from toolcrib.schema._walk import Schema

__all__ = ["ANTHROPIC_KEYS", "GEMINI_KEYS", "anthropic", "gemini", "openai", "openai_strict"]

ANTHROPIC_KEYS = Rule("a-zA-Z0-9_.-")
GEMINI_KEYS = Rule("a-zA-Z0-9_", first="a-zA-Z_")


def openai(schema: Schema) -> tuple[Schema, list[str]]:
    """Return the schema with an object at its root, and what was lost.

    Raises:
        ToolSignatureError: The root stands for something other than an object.
    """
    return object_root(schema)


def openai_strict(schema: Schema) -> tuple[Schema, list[str]]:
    """Return the schema as OpenAI's strict mode wants it, and what was lost.

    Every property is required, optional ones may be null, and no object takes other keys.

    Raises:
        ToolSignatureError: Strict mode cannot express it; the message says why.
    """
    rooted, losses = object_root(schema)
    dialect = OpenAIStrict(rooted)
    return dialect.render(), losses + dialect.losses


def anthropic(schema: Schema) -> tuple[Schema, list[str]]:
    """Return the schema with an object at its root and legal property keys, and what was lost.

    Raises:
        ToolSignatureError: The root stands for something other than an object.
    """
    rooted, losses = object_root(schema)
    return renamed(rooted, key_aliases(schema, ANTHROPIC_KEYS)), losses


def gemini(schema: Schema) -> tuple[Schema, list[str]]:
    """Return the schema in Gemini's subset of OpenAPI, with legal property keys, and what was lost.

    References are written out where they are used, and a schema inside itself becomes an open object.

    Raises:
        ToolSignatureError: It does not stand for an object, or is too large once references are written out.
    """
    rooted, losses = object_root(schema)
    dialect = Gemini(renamed(rooted, key_aliases(schema, GEMINI_KEYS)))
    return dialect.render(), losses + dialect.losses
