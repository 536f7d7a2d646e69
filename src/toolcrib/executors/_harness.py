"""The inside of a wall: a process that reads calls, runs functions and writes what came of them.

It is imported by any Python, with nothing but the standard library and as little of that as may be, since every
call behind bubblewrap waits for it: `json` alone takes longer than Python to start. A message is eight bytes of
length and as much again: marshalled data on the way in, where it is trusted, and JSON on the way out. With a guard,
a first process stands between the outside and the one that runs the functions: whatever a function leaves behind
becomes the guard's child, and ends with it.
"""

from __future__ import annotations

import importlib
import marshal
import os
import sys
from types import AsyncGeneratorType, CoroutineType, GeneratorType

TYPE_CHECKING = False  # what `typing` would say, without the time it takes
if TYPE_CHECKING:
    from typing import Any, BinaryIO, NoReturn

__all__ = ["TYPE_CHECKING", "main"]

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER
_DEEPEST = 200
_LONGEST_MESSAGE = 4_000
_ROUNDS = 200
_KILL, _STOP = 9, 19  # numbers of the signals, the same wherever a guard can count its descendants


def main() -> None:
    """Answer calls until there are no more."""
    requests, answers = _channel()
    setup = _received(requests) or {}
    if setup["guard"]:
        _guard(requests, answers)
    _limit(setup["limits"])
    sys.path[:] = setup["path"]
    while (request := _received(requests)) is not None:
        answer = _answered(request, setup["limits"]["answer_bytes"])
        if setup["guard"]:
            _end_descendants(os.getppid(), spare=os.getpid())
        answers.write(len(answer).to_bytes(8, "big") + answer)
        answers.flush()


# -- messages


def _channel() -> tuple[BinaryIO, BinaryIO]:
    """Take standard input and output for messages, and leave functions an empty one each."""
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.close(nothing)
    for number in (requests, answers):
        os.set_inheritable(number, False)  # noqa: FBT003  # the name of the function says it
    return os.fdopen(requests, "rb"), os.fdopen(answers, "wb")


def _received(requests: BinaryIO) -> dict[str, Any] | None:
    head = requests.read(8)
    return marshal.loads(requests.read(int.from_bytes(head, "big"))) if head else None  # noqa: S302  # from outside the wall


# -- what is left behind


def _guard(requests: BinaryIO, answers: BinaryIO) -> None:
    """Go on as the guard's child; the guard ends with it, or before its own parent, and takes along all there is."""
    signal = importlib.import_module("signal")
    libc = importlib.import_module("ctypes").CDLL(None) if sys.platform == "linux" else None
    if libc is not None:
        libc.prctl(_ADOPT_ORPHANS, 1)
        libc.prctl(_DIE_WITH_PARENT, int(signal.SIGTERM))
    signal.signal(signal.SIGTERM, _asked_to_leave)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if libc is not None:
            libc.prctl(_DIE_WITH_PARENT, _KILL)
        return
    requests.close()
    answers.close()
    ended, status = 0, 0
    while ended != child:
        ended, status = os.waitpid(-1, 0)
    _leave(status)


def _asked_to_leave(_signal: int, _frame: object) -> None:
    _leave(_KILL)


def _leave(status: int) -> NoReturn:
    """End as the child did, after all it has left behind."""
    _end_descendants(os.getpid())
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _end_descendants(root: int, spare: int = 0) -> None:
    for _ in range(_ROUNDS):  # each round, those that the last one's had started before they were stopped
        found = [pid for pid in _descendants(root) if pid != spare]
        for sign in (_STOP, _KILL):
            for pid in found:
                _send(pid, sign)
        _reap()
        if not found:
            return


def _send(pid: int, sign: int) -> None:
    try:
        os.kill(pid, sign)
    except OSError:  # it is gone
        return


def _reap() -> None:
    try:
        while any(os.waitpid(-1, os.WNOHANG)):
            continue
    except ChildProcessError:
        return


def _descendants(root: int) -> list[int]:
    found: list[int] = []
    waiting = [root]
    while waiting:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  # pathlib takes longer to import than all of this
            with open(f"/proc/{pid}/task/{task}/children", "rb") as listed:  # noqa: PTH123  # the same
                found += map(int, listed.read().split())
    except OSError:  # it is gone, or the system does not tell
        return found
    return found


# -- bounds


def _limit(limits: dict[str, int]) -> None:
    import resource  # there is none on Windows

    bounds = {
        "RLIMIT_AS": limits["memory_bytes"],
        "RLIMIT_NOFILE": limits["open_files"],
        "RLIMIT_FSIZE": limits["file_bytes"],
        "RLIMIT_NPROC": limits["user_processes"],
        "RLIMIT_CORE": 0,
    }
    for name, bound in bounds.items():
        kind = getattr(resource, name, None)
        if kind is None or bound < 0:
            continue
        hard = resource.getrlimit(kind)[1]
        most = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(kind, (most, most))


# -- a call


def _answered(request: dict[str, Any], most: int) -> bytes:
    try:
        value = _run(_function(request), request)
        answer = {"id": request["id"], **_crossing(value), "last": _has_threads()}
        text = _json(answer).encode("utf-8", "replace")
        if len(text) <= most:
            return text
        answer = _failure("", f"its result is {len(text):,} bytes as JSON; at most {most:,} can leave", said=True)
    except BaseException as error:  # noqa: BLE001  # SystemExit and the like are the function's failure
        answer = _told(error)
    return _json({"id": request["id"], **answer, "last": _has_threads()}).encode("utf-8", "replace")


def _json(value: Any) -> str:
    """Return plain data as JSON."""
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    inside: Any = value
    if isinstance(value, dict):
        return "{" + ",".join([f"{_json(key)}:{_json(item)}" for key, item in inside.items()]) + "}"
    if isinstance(value, list):
        return "[" + ",".join([_json(item) for item in inside]) + "]"
    words = {None: "null", True: "true", False: "false"}
    return words[value] if value is None or isinstance(value, bool) else repr(value + 0)


_ESCAPES = {code: f"\\u{code:04x}" for code in [*range(32), 34, 92, 127]}


def _has_threads() -> bool:
    threading = sys.modules.get("threading")
    return threading is not None and threading.active_count() > 1


def _told(error: BaseException) -> dict[str, Any]:
    bases = {base.__name__ for base in type(error).__mro__}
    try:
        message = str(error)[:_LONGEST_MESSAGE]
    except BaseException:  # noqa: BLE001  # an exception whose text raises has none
        message = ""
    if isinstance(error, MemoryError):
        message = message or "there is no more memory"
    said = bool(bases & {"ToolExecutionError", "_NotJsonError"})
    return _failure(type(error).__name__, message, said=said, arguments="ToolArgumentError" in bases)


def _failure(kind: str, message: str, *, said: bool = False, arguments: bool = False) -> dict[str, Any]:
    return {"error": {"type": kind[:200], "message": message, "said": said, "arguments": arguments}}


def _function(request: dict[str, Any]) -> Any:
    found = _module(request["module"], request["file"])
    for name in request["qualname"].split("."):
        found = getattr(found, name)
    return found


def _module(name: str, file: str | None) -> Any:
    known = sys.modules.get(name) if name != "__main__" else sys.modules.get("__toolcrib_main__")
    if known is not None:
        return known
    if name != "__main__" and (module := _imported(name, file)) is not None:
        return module
    name = "__toolcrib_main__" if name == "__main__" else name
    util = importlib.import_module("importlib.util")
    spec = util.spec_from_file_location(name, file) if file else None
    if spec is None or spec.loader is None:
        raise ImportError(f"the module {name} is not to be found behind the wall")
    module = sys.modules[name] = util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _imported(name: str, file: str | None) -> Any:
    """Return the module of that name, unless it is another than the file's."""
    try:
        module = importlib.import_module(name)
    except ImportError:
        if file is None:
            raise
        return None
    return module if file is None or getattr(module, "__file__", file) == file else None


def _run(function: Any, request: dict[str, Any]) -> Any:
    arguments = request["arguments"]
    if (typed := request["typed"]) is not None:  # models and the like are made again, and a context is injected
        tool = importlib.import_module(typed["tool"]).Tool.wrap(function)
        context = importlib.import_module(typed["types"]).ToolContext(**typed["context"])
        value = tool.invoke(tool.read(arguments), context)
    else:
        value = function(**arguments)
    if isinstance(value, (CoroutineType, AsyncGeneratorType)):
        return importlib.import_module("asyncio").run(_awaited(value))
    pieces: Any = value
    return _joined(list(pieces)) if isinstance(value, GeneratorType) else value


async def _awaited(value: Any) -> Any:
    pieces: Any = value
    if isinstance(value, AsyncGeneratorType):
        return _joined([piece async for piece in pieces])
    return await value


def _joined(pieces: list[Any]) -> Any:
    return "".join(pieces) if pieces and all(isinstance(piece, str) for piece in pieces) else pieces


# -- what crosses


class _NotJsonError(Exception):
    pass


def _crossing(value: Any) -> dict[str, Any]:
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": value.hex()}
    if type(value).__name__ == "ToolResponse" and hasattr(value, "build_prompt"):
        return {"response": [bool(value.success), value.message, _plain(value.data, "data", 0)]}
    return {"value": _plain(value, "result", 0)}


def _plain(value: Any, path: str, depth: int) -> Any:
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if depth > _DEEPEST:
        raise _NotJsonError(f"its result cannot leave: {path[:_DEEPEST]}: nested too deep, or circular")
    inside: Any = value
    if isinstance(value, dict):
        return {_key(key, path): _plain(item, f"{path}.{key}", depth + 1) for key, item in inside.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(inside)]
    return _plain(_opened(value, path), path, depth + 1)


def _key(key: Any, path: str) -> str:
    if key is None or isinstance(key, (str, int, float)):
        return str(key)
    raise _NotJsonError(f"its result cannot leave: {path}: a key is {type(key).__name__}, not text")


def _opened(value: Any, path: str) -> Any:
    """Return an object's members, or its text, where it is one of the kinds that have a way as JSON."""
    kind: Any = getattr(value, "__class__")  # noqa: B009  # a plain attribute would be of a type that is half known
    if fields := getattr(kind, "__dataclass_fields__", None):
        return {name: getattr(value, name) for name in fields}
    if hasattr(kind, "model_dump"):
        return value.model_dump(mode="json")
    if hasattr(kind, "_value2member_map_"):
        return value.value
    if hasattr(kind, "isoformat"):
        return value.isoformat()
    if kind.__name__ in ("Decimal", "UUID", "PosixPath", "PurePosixPath"):
        return str(value)
    raise _NotJsonError(f"its result cannot leave: {path}: {kind.__name__} is not JSON data")
