"""What the options of a tool may be."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

from toolcrib.errors import ToolNameError, ToolSignatureError
from toolcrib.types import Effect, ToolParameter

__all__ = ["check_mode", "check_options", "copied"]


def check_options(name: Any, effect: Any, timeout: Any) -> None:
    """Refuse a name, an effect or a timeout that is none.

    Raises:
        ToolNameError: The name is no text, or only white space.
        ValueError: The effect is unknown, or the timeout is negative or NaN.
    """
    if not isinstance(name, str) or not name.strip():
        raise ToolNameError(f"a tool needs a name, not {name!r:.100}; pass name=")
    if effect is not None and effect not in get_args(Effect):
        raise ValueError(f"effect must be one of {', '.join(get_args(Effect))} or None, not {effect!r:.100}")
    if timeout is not None and not timeout >= 0:  # which NaN is not either
        raise ValueError(f"timeout is a number of seconds, or None, not {timeout!r:.100}")


def check_mode(mode: Any, effect: Any, model: Any, func: Any, parameters: Any) -> None:
    """Refuse a mode that is none, or that a tool cannot have.

    Raises:
        ValueError: It is unknown, has no model that it could ask, or is not for such a tool.
    """
    if mode not in ("hybrid", "llm"):
        raise ValueError(f"mode must be 'signature', 'hybrid' or 'llm', not {mode!r:.100}")
    if not callable(model) and not callable(getattr(model, "acomplete", None)):
        missing = "needs schema_llm=" if model is None else f"cannot ask {model!r:.100}"
        raise ValueError(f"mode {mode!r} {missing}: an engine, or a callable prompt -> dict | str")  # noqa: TRY004  # it is the mode that is wrong
    if effect == "destructive":
        raise ValueError(f"a destructive tool cannot have mode {mode!r}: its words must be its author's")
    if func is None or isinstance(parameters, dict):
        raise ValueError(f"mode {mode!r} is for functions without a schema of their own")


def copied(
    parameters: Mapping[str, Any] | Sequence[ToolParameter] | None,
) -> dict[str, Any] | tuple[ToolParameter, ...] | None:
    """Return a copy that shares nothing with the caller's schema or list.

    Raises:
        ToolSignatureError: The schema is nested too deep.
        TypeError: The list holds something other than ToolParameter.
    """
    if parameters is None:
        return None
    if isinstance(parameters, Mapping):
        try:
            return copy.deepcopy(dict(parameters))
        except RecursionError:
            raise ToolSignatureError("the schema of a tool's arguments is nested too deep") from None
    listed = tuple(parameters)
    if wrong := [p for p in cast("tuple[object, ...]", listed) if not isinstance(p, ToolParameter)]:
        raise TypeError(f"parameters= takes a JSON Schema or a list of ToolParameter, not {wrong[0]!r:.100}")
    return listed
