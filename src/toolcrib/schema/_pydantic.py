"""Any annotation as a JSON Schema and a validator: the only module that knows pydantic's schema builders.

pydantic's own modules are imported inside the functions, at the first tool that needs them: a
program whose tools are all plain never pays for them.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args, get_origin

from pydantic_core import PydanticSerializationError, to_jsonable_python

from toolcrib._json import first_unsafe
from toolcrib.errors import ToolSignatureError
from toolcrib.schema._typeddict import rebuilt

if TYPE_CHECKING:
    from pydantic.json_schema import GenerateJsonSchema
    from pydantic_core import CoreSchema

__all__ = ["by_pydantic"]


def by_pydantic(name: str, parameters: Iterable[tuple[str, Any, Any]]) -> tuple[dict[str, Any], CoreSchema]:
    """Return the JSON Schema and the core typed dict of some parameters.

    Args:
        name: The function's name, for errors.
        parameters: Name, resolved annotation and default (`inspect.Parameter.empty` for none) of each.

    Raises:
        ToolSignatureError: pydantic cannot validate a type, or JSON Schema cannot express it.
    """
    from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
    from pydantic.experimental.arguments_schema import generate_arguments_schema

    signature = inspect.Signature([_keyword(*parameter) for parameter in parameters])
    try:
        core = generate_arguments_schema(_carrier(signature), schema_type="arguments")
        schema = _generator()().generate(core)
    except PydanticInvalidForJsonSchema as error:
        raise ToolSignatureError(f"no JSON Schema can express a parameter of {name}: {error.message}") from error
    except PydanticUserError as error:
        raise ToolSignatureError(
            f"a parameter of {name} has a type that cannot be validated: {error.message}"
        ) from error
    return _tidied(schema), _without_own_defaults(core, signature)


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=_described(annotation), default=default)


def _described(annotation: Any) -> Any:
    """Read `Annotated[X, "what it means"]` as a description, as many authors write it."""
    from pydantic import Field

    arguments = get_args(annotation)
    if get_origin(annotation) is Annotated:
        base, *metadata = arguments
        facts = (Field(description=item) if type(item) is str else item for item in metadata)
        return Annotated[(_described(base), *facts)]
    if not arguments or get_origin(annotation) is Literal:
        return annotation
    described = tuple(_described(argument) for argument in arguments)
    return annotation if described == arguments else rebuilt(annotation, described)


def _carrier(signature: inspect.Signature) -> Any:
    def carrier(**_: Any) -> None: ...

    carrier.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]  # what inspect.signature reads
    carrier.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    return carrier


@functools.cache
def _generator() -> type[GenerateJsonSchema]:
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        """Writes no title that only repeats a name, and leaves out a default JSON cannot carry without a warning."""

        def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  # the base class's signature
            return False

        def emit_warning(self, kind: Any, detail: str) -> None: ...

        def encode_default(self, dft: Any) -> Any:
            try:
                plain = to_jsonable_python(dft, inf_nan_mode="constants")
            except ValueError as error:
                raise PydanticSerializationError(str(error)) from None
            if bad := first_unsafe(plain, "default"):
                raise PydanticSerializationError(": ".join(bad))
            return super().encode_default(dft)

    return Untitled


def _tidied(schema: dict[str, Any]) -> dict[str, Any]:
    for name, definition in schema.get("$defs", {}).items():
        if name.endswith(re.sub(r"[^\w.-]", "_", str(definition.get("title", "\0")))):
            del definition["title"]
    tidy = {"type": "object", "properties": schema.get("properties", {}), "required": schema.get("required", [])}
    return {**tidy, "$defs": schema["$defs"]} if "$defs" in schema else tidy


def _without_own_defaults(core: Any, signature: inspect.Signature) -> CoreSchema:
    """Turn pydantic's arguments schema into a typed dict that leaves a function's defaults to the function."""
    arguments = core["schema"] if core["type"] == "definitions" else core
    fields = {p["name"]: _field(p, signature.parameters[p["name"]].default) for p in arguments["arguments_schema"]}
    typed = {"type": "typed-dict", "fields": fields, "extra_behavior": "forbid", "config": {"allow_inf_nan": False}}
    return cast("CoreSchema", {**core, "schema": typed} if core["type"] == "definitions" else typed)


def _field(parameter: Any, default: Any) -> dict[str, Any]:
    schema = parameter["schema"]
    optional = schema["type"] == "default"
    if optional and default is not inspect.Parameter.empty and type(default).__module__ != "pydantic.fields":
        schema = schema["schema"]
    field = {"type": "typed-dict-field", "schema": schema, "required": not optional}
    return {**field, "validation_alias": parameter["alias"]} if "alias" in parameter else field
