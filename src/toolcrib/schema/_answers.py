"""A model's answer about a tool, read strictly: text or data in, plain facts out, or the reason why not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn, cast

from pydantic_core import to_json

from toolcrib._json import first_unsafe
from toolcrib.errors import ToolSignatureError
from toolcrib.limits import MAX_DESCRIPTION_CHARS, MAX_WRITTEN_SCHEMA_CHARS, MAX_WRITTEN_SCHEMA_DEPTH
from toolcrib.schema._walk import Schema, as_schema, mapped, names, properties_of, resolve
from toolcrib.schema.jsonschema import compiled, object_schema

__all__ = ["NOTHING", "Answer", "read_answer"]

# Terminal escapes, other control characters but tabs and line ends, lone surrogates, and tags no reader sees.
_UNSEEN = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\U000e0000-\U000e007f]")
_MOST_NODES = 5_000


class Answer(NamedTuple):
    """What a model said of a tool.

    Args:
        description: What the tool does; empty when it did not say.
        properties: The schema of each parameter, without references.
        required: Which of them it wants.
    """

    description: str
    properties: dict[str, Schema]
    required: tuple[str, ...]

    def data(self) -> dict[str, Any]:
        """Return it as JSON data that `read_answer` reads the same."""
        parameters = {"type": "object", "properties": self.properties, "required": list(self.required)}
        return {"description": self.description, "parameters": parameters}


NOTHING = Answer("", {}, ())


def read_answer(answer: Any, *, types: bool) -> Answer:
    """Return what a model answered; keys other than `description` and `parameters` are ignored.

    Args:
        answer: A mapping, or text that is a JSON object, bare or as the only fenced block.
        types: Whether more than the descriptions is wanted of the parameters.

    Raises:
        ValueError: It cannot be used; the message tells the model why.
    """
    facts = _object(answer)
    description, parameters = facts.get("description", ""), facts.get("parameters", {})
    if not isinstance(description, str):
        _refuse('"description" must be text')
    if not isinstance(parameters, dict):
        _refuse('"parameters" must be a JSON Schema')
    schema = cast("Schema", parameters)
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        _refuse('"properties" must be an object with a schema for each parameter')
    read = _typed(schema) if types else _described(schema)
    return Answer(_tidy(description), read, tuple(dict.fromkeys(names(schema, "required"))) if types else ())


def _refuse(problem: str) -> NoReturn:
    raise ValueError(problem)


# -- from text or data to an object


def _object(answer: Any) -> Schema:
    if isinstance(answer, str):
        if len(answer) > MAX_WRITTEN_SCHEMA_CHARS * 2:
            _refuse(f"the answer has {len(answer):,} characters, but at most {MAX_WRITTEN_SCHEMA_CHARS:,} are read")
        answer = _parsed(_bare(answer))
    if not isinstance(answer, Mapping):
        _refuse(f"the answer must be one JSON object, not {type(answer).__name__}")
    if bad := first_unsafe(dict(cast("Mapping[str, Any]", answer)), "answer"):
        _refuse(": ".join(bad))
    text = to_json(answer)
    if len(text) > MAX_WRITTEN_SCHEMA_CHARS:
        _refuse(f"the answer has {len(text):,} characters, but at most {MAX_WRITTEN_SCHEMA_CHARS:,} are read")
    plain = json.loads(text)
    if _is_deep(plain):
        _refuse(f"the answer is nested deeper than {MAX_WRITTEN_SCHEMA_DEPTH} levels")
    return plain


def _bare(text: str) -> str:
    if text.lstrip().startswith("{"):
        return text
    lines = text.splitlines()
    fences = [number for number, line in enumerate(lines) if line.startswith("```")]
    if len(fences) != 2:  # noqa: PLR2004  # where the block begins, and where it ends
        _refuse("the answer must be one JSON object and nothing else")
    return "\n".join(lines[fences[0] + 1 : fences[1]])


def _parsed(text: str) -> Any:
    try:
        return _STRICT.decode(text.strip())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the answer is not valid JSON: {error}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        _refuse("a key stands twice in one object")
    return members


def _no_number(word: str) -> NoReturn:
    _refuse(f"{word} is not a JSON number")


_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_number)


def _is_deep(plain: Any) -> bool:
    level, depth = [plain], 0
    while level and depth <= MAX_WRITTEN_SCHEMA_DEPTH * 2:  # a schema takes two levels of JSON for one of its own
        level = [
            child
            for node in level
            if isinstance(node, (dict, list))
            for child in (cast("Schema", node).values() if isinstance(node, dict) else cast("list[Any]", node))
        ]
        depth += 1
    return bool(level)


# -- from an object to facts


def _described(schema: Schema) -> dict[str, Schema]:
    said = {name: as_schema(node).get("description") for name, node in properties_of(schema).items()}
    return {name: _with_text({"description": text}) for name, text in said.items()}


def _typed(schema: Schema) -> dict[str, Schema]:
    listed = {"required": list(dict.fromkeys(names(schema, "required")))} if "required" in schema else {}
    try:
        _ = compiled(object_schema({**schema, **listed}))
    except ToolSignatureError as error:
        _refuse(f'"parameters" is {error}')
    writer = _Writer(schema)
    read = {name: writer.plain(node, ()) for name, node in properties_of(schema).items()}
    if len(to_json(read)) > MAX_WRITTEN_SCHEMA_CHARS:
        _refuse('"parameters" is too large with its references written out')
    return {name: node if isinstance(node, dict) else {} for name, node in read.items()}


class _Writer:
    """Writes references out, so that what a model wrote needs no definitions beside those of the signature."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._nodes = 0

    def plain(self, node: Any, followed: tuple[str, ...]) -> Any:
        self._nodes += 1
        if not isinstance(node, dict):
            return node
        if self._nodes > _MOST_NODES:
            return {}
        schema = mapped(cast("Schema", node), lambda child: self.plain(child, followed))
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in followed:
            schema = {**self._target(reference, followed), **schema}
        kept = {word: value for word, value in schema.items() if word[:1] != "$" and word != "definitions"}
        return _with_text(kept)

    def _target(self, reference: str, followed: tuple[str, ...]) -> Schema:
        found = resolve(reference, self._root)
        return {} if found is None else self.plain(found, (*followed, reference))


def _with_text(schema: Schema) -> Schema:
    description = schema.pop("description", None)
    text = _tidy(description) if isinstance(description, str) else ""
    return {**schema, "description": text} if text else schema


def _tidy(text: str) -> str:
    text = _UNSEEN.sub("", text).strip()
    return text if len(text) <= MAX_DESCRIPTION_CHARS else f"{text[: MAX_DESCRIPTION_CHARS - 1]}…"
