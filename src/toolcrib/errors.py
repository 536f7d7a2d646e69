"""Every error toolcrib raises.

The tree::

    ToolcribError
    ├── ToolSignatureError     (TypeError)     a function that cannot become a tool
    ├── ToolArgumentError      (ValueError)    arguments that do not fit a tool
    ├── ToolNameError          (ValueError)    a name that is illegal, or taken
    ├── ToolNotFoundError      (LookupError)   no tool of that name
    ├── ToolExecutionError     (RuntimeError)  a tool ran and reported failure
    │   ├── ToolTimeoutError   (TimeoutError)  a tool did not finish before its deadline
    │   ├── ToolDeniedError                    a call was refused before it ran
    │   ├── ExternalToolError                  a tool gateway failed, or a tool behind it
    │   │   └── AuthorizationNeededError       a tool that first needs somebody's consent, given at a URL
    │   └── MCPConnectionError (ConnectionError)  an MCP server could not be reached, or was lost
    ├── NotSerializableError   (TypeError)     a value that JSON cannot carry, with its path
    ├── OpenAPIError           (ValueError)    a document that cannot be read
    ├── EngineError            (RuntimeError)  a model could not be reached or did not answer
    │   └── WeightsError                       a local model's weights could not be had
    ├── TargetError            (ValueError)    a command-line target that names no tools
    ├── WallError              (RuntimeError)  a wall that cannot be had on this machine
    └── MissingExtraError      (ImportError)   an optional dependency is not installed

    ToolcribWarning            (UserWarning)   every warning toolcrib gives
"""

from __future__ import annotations

import functools
import sys
import warnings
from pathlib import Path
from typing import Any

__all__ = [
    "AuthorizationNeededError",
    "EngineError",
    "ExternalToolError",
    "MCPConnectionError",
    "MissingExtraError",
    "NotSerializableError",
    "OpenAPIError",
    "TargetError",
    "ToolArgumentError",
    "ToolDeniedError",
    "ToolExecutionError",
    "ToolNameError",
    "ToolNotFoundError",
    "ToolSignatureError",
    "ToolTimeoutError",
    "ToolcribError",
    "ToolcribWarning",
    "WallError",
    "WeightsError",
    "warn",
]


class ToolcribError(Exception):
    """The base of every error this package raises."""


class ToolSignatureError(ToolcribError, TypeError):
    """A function's signature cannot be shown to a model."""


class ToolArgumentError(ToolcribError, ValueError):
    """Arguments that do not fit the tool; the message is written for a model.

    Args:
        message: What is wrong, one line per problem.
        problems: The problems one by one, each `"path: what is wrong"`.
    """

    def __init__(self, message: str, problems: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class ToolNameError(ToolcribError, ValueError):
    """A tool name is empty, or two different tools claim it."""


class ToolNotFoundError(ToolcribError, LookupError):
    """No tool of that name is in the toolset."""


class ToolExecutionError(ToolcribError, RuntimeError):
    """A tool ran and reported that it failed.

    Raise it from a tool to choose the words the model reads.
    """


class ToolTimeoutError(ToolExecutionError, TimeoutError):
    """A tool did not finish before its deadline."""


class ToolDeniedError(ToolExecutionError):
    """A call was refused before it ran; the message is the reason."""


class ExternalToolError(ToolExecutionError):
    """A tool gateway could not be reached, or answered with a failure or with nothing that can be used.

    Args:
        message: What happened.
        status: The HTTP status, if there was an answer.
        body: What the answer held: JSON data, or text that is no JSON.
        retryable: Whether the same call may succeed later; None if nobody knows.
        retry_after: Seconds to wait before that, if the gateway says.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        body: Any = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = body
        self.retryable = retryable
        self.retry_after = retry_after


class AuthorizationNeededError(ExternalToolError):
    """A tool cannot run before its user has allowed it; the message asks a model to pass on the URL.

    Args:
        what: What must be allowed, such as `github`.
        url: Where the user allows it.
        user_id: Whose consent it is.
        body: What the gateway answered.
    """

    def __init__(self, what: str, url: str, *, user_id: str = "", body: Any = None) -> None:
        super().__init__(
            f"the user has to allow access to {what} first: ask them to open {url} and to say when that is done, "
            "then call the tool again",
            body=body,
            retryable=False,
        )
        self.url = url
        self.user_id = user_id


class MCPConnectionError(ToolExecutionError, ConnectionError):
    """An MCP server could not be reached, or was lost before it answered; a tool that fails there is none of these."""


class NotSerializableError(ToolcribError, TypeError):
    """A value cannot be written as JSON.

    Args:
        path: Where the offender is, such as `data.rows[3].conn`.
        reason: What it is.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class OpenAPIError(ToolcribError, ValueError):
    """An OpenAPI document cannot be read, or is none."""


class EngineError(ToolcribError, RuntimeError):
    """A model could not be reached, or what came back could not be used.

    Args:
        message: What happened.
        retryable: Whether the same request may succeed later.
    """

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class WeightsError(EngineError):
    """A local model's weights could not be had, or are not the bytes they should be."""


class TargetError(ToolcribError, ValueError):
    """What was named on the command line holds no tools."""


class WallError(ToolcribError, RuntimeError):
    """A wall that untrusted work is to run behind cannot be had on this machine; nothing runs without it."""


class MissingExtraError(ToolcribError, ImportError):
    """An optional dependency is not installed.

    Args:
        extra: The extra that brings it, as in `pip install 'toolcrib[extra]'`.
        wanted_by: What needs it.
    """

    def __init__(self, extra: str, wanted_by: str) -> None:
        super().__init__(f"{wanted_by} needs an optional dependency: pip install 'toolcrib[{extra}]'")
        self.extra = extra


class ToolcribWarning(UserWarning):
    """Something was left out, replaced or changed, and a person should know."""


def warn(message: str) -> None:
    """Give a ToolcribWarning that points at the first line outside this package."""
    level, frame = 1, sys._getframe(1)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # what `warnings` counts too
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_NOT_THEIRS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, ToolcribWarning, stacklevel=level + 1)


_NOT_THEIRS = (str(Path(__file__).parent), functools.__file__)  # where cached properties are read
