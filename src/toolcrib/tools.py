"""Tool: a name, a description, a JSON Schema and a callable."""

from __future__ import annotations

import functools
import inspect
import types
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, overload

from toolcrib._callables import doc_of, first_parameter, is_async, name_of
from toolcrib._marks import NoInstance, mark, tool_on
from toolcrib._options import check_mode, check_options, copied
from toolcrib._portal import off_loop, portal
from toolcrib._xml import Element
from toolcrib.arguments import FunctionReader, Reader, SchemaReader
from toolcrib.errors import ToolcribWarning, ToolExecutionError, ToolSignatureError, warn
from toolcrib.schema.docstring import Docstring
from toolcrib.schema.docstring import parse as parse_docstring
from toolcrib.schema.inferred import Question, SchemaPart, asked_signature, composed, stated
from toolcrib.schema.inquiry import Inquiry
from toolcrib.schema.jsonschema import closed, object_schema
from toolcrib.schema.parameters import check_callable, declared_hints, merged, parameters_of, schema_of, untellable
from toolcrib.schema.pinned import pinned
from toolcrib.schema.signature import Shape, Signature, context_of, read_signature, shape_of
from toolcrib.types import Effect, ToolContext, ToolParameter

if TYPE_CHECKING:
    from toolcrib.protocols import ArtifactStore, Engine, Executor

__all__ = ["Mode", "Tool", "tool", "tool_from_function"]

Mode = Literal["signature", "hybrid", "llm"]
_Parameters = Mapping[str, Any] | Sequence[ToolParameter]
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Tool:
    """Something a model can call: a name, a description, a JSON Schema and a callable.

    A tool never changes; `replace` gives a changed copy.

    Args:
        func: The callable; None declares a tool that can be shown but not called.
        name: What models call it; the function's own name by default.
        description: What it does; by default the docstring up to its first section.
        parameters: A JSON Schema of the arguments, kept verbatim, or a list of ToolParameter, which adds an
            author's facts to a function's signature and stands alone where there is none to read.
        mode: Where the schema comes from: `"signature"`; `"hybrid"`, with descriptions by a model that reads the
            function's source; or `"llm"`, with types by it as well. The model is asked once, on first use.
        schema_llm: That model: an engine, or a callable `prompt -> dict | str`; unused by `"signature"`.
        store: Where its answers are kept; by default in this process.
        strict: Whether objects are closed and providers are asked to enforce the schema.
        returns_envelope: Whether the value is an agent's Envelope; `as_tool()` of an agent sets it.
        timeout: Seconds one call may run, in place of `Limits.deadline`.
        effect: What a call does to the world: `read`, `idempotent`, `write` or `destructive`.
        executor: What runs its calls in place of the executor of the run.
        thread: Whether a sync function runs in a worker thread; False runs it where the call is awaited.
        validate: Whether a verbatim schema is enforced on arguments; parsing is strict either way.

    Raises:
        ToolSignatureError: The function cannot be called by keyword, or the schema is not of an object.
        ToolNameError: There is no usable name.
        ValueError: An unknown mode or effect, a mode without its model or not fit for the tool, or a timeout that
            is no number of seconds.
    """

    #: What only tools have whose schema a model writes.
    schema_llm: Engine | Callable[[str], Any] | None = None
    store: ArtifactStore | None = None
    inquiry: Inquiry | None = None

    def __init__(
        self,
        func: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        parameters: _Parameters | None = None,
        mode: Mode = "signature",
        schema_llm: Engine | Callable[[str], Any] | None = None,
        store: ArtifactStore | None = None,
        strict: bool = False,
        returns_envelope: bool = False,
        timeout: float | None = None,
        effect: Effect | None = None,
        executor: Executor | None = None,
        thread: bool = True,
        validate: bool = True,
    ) -> None:
        given = copied(parameters)
        name = name_of(func) if name is None else name
        check_options(name, effect, timeout)
        if mode != "signature":
            check_mode(mode, effect, schema_llm, func, given)
            inquiry = Inquiry(lambda: self._question, schema_llm, store)
            self.__dict__.update(schema_llm=schema_llm, store=store, inquiry=inquiry)
        if isinstance(given, dict):
            object_schema(given)
        self.__dict__.update(
            func=func,
            name=name,
            mode=mode,
            strict=strict,
            returns_envelope=returns_envelope,
            timeout=timeout,
            effect=effect,
            executor=executor,
            thread=thread,
            validate=validate,
            origin=None,
            original_name=None,
            output_schema=None,
            is_async=is_async(func),
            _given_description=description,
            _given_parameters=given,
        )
        if func is not None and not isinstance(given, dict):
            self._check_signature()

    if TYPE_CHECKING:  # what __init__ sets, for readers and type checkers
        func: Callable[..., Any] | None
        name: str
        mode: Mode
        strict: bool
        returns_envelope: bool
        timeout: float | None
        effect: Effect | None
        executor: Executor | None
        thread: bool
        validate: bool
        origin: str | None
        original_name: str | None
        output_schema: dict[str, Any] | None
        is_async: bool
        _given_description: str | None
        _given_parameters: dict[str, Any] | tuple[ToolParameter, ...] | None

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a Tool does not change; use tool.replace({name}=...)")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Tool does not change; {name} cannot be deleted")

    def __repr__(self) -> str:
        return f"<Tool {self.name!r}{f' from {self.origin}' if self.origin else ''}>"

    # -- other ways to make one

    @classmethod
    def wrap(cls, fn: Any, **changes: Any) -> Tool:
        """Return a tool for a function, a Tool, an agent or a `@tool` function.

        Args:
            fn: What to wrap.
            **changes: Any option of Tool, such as `name=` or `strict=`.

        Raises:
            ToolSignatureError: It is none of these, or cannot be called by keyword.
        """
        found = tool_on(Tool, fn)
        if found is None and callable(getattr(fn, "as_tool", None)) and not isinstance(fn, type):
            found = fn.as_tool()
        if found is not None:
            return found.replace(**changes) if changes else found
        if not callable(fn):
            raise ToolSignatureError(f"{fn!r:.100} is not a function, a Tool, or anything with as_tool()")
        return cls(fn, **changes)

    @classmethod
    def from_schema(  # noqa: D417  # the rest are options of Tool
        cls,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        func: Callable[..., Any] | None = None,
        *,
        strict: bool = False,
        returns_envelope: bool = False,
        **options: Any,
    ) -> Tool:
        """Return a tool with a schema of its own, kept verbatim.

        Args:
            name: What models call it.
            description: What it does.
            parameters: The JSON Schema of its arguments; neither aliased nor changed.
            func: Called with the validated arguments by keyword; None declares the tool.
            strict: Whether objects are closed and providers are asked to enforce the schema.
            returns_envelope: Whether the value is an agent's Envelope.
        """
        options.update(strict=strict, returns_envelope=returns_envelope)
        return cls(func, name=name, description=description, parameters=parameters, **options)

    def replace(self, **changes: Any) -> Tool:
        """Return the same tool but for the changes; a verbatim schema stays verbatim.

        Args:
            **changes: Any option of Tool, or `origin`, `original_name`, `output_schema`.

        Raises:
            TypeError: An option that does not exist.
            ValueError: An unknown effect, or a timeout that is no number of seconds.
        """
        if changes.keys() - _REPLACEABLE or (self.inquiry is not None and changes.keys() & _ASKED_ABOUT):
            return self._rebuilt(changes)
        changed = object.__new__(type(self))
        changed.__dict__.update({key: value for key, value in self.__dict__.items() if key not in _FORGOTTEN})
        check_options(changes.get("name", self.name), changes.get("effect"), changes.get("timeout"))
        if "strict" in changes:
            changed.__dict__.pop("input_schema", None)
        if "description" in changes:
            changed.__dict__.pop("description", None)
            changed.__dict__["_given_description"] = changes.pop("description")
        changed.__dict__.update(changes)
        return changed

    def _rebuilt(self, changes: dict[str, Any]) -> Tool:
        options: dict[str, Any] = {
            "func": self.func,
            "name": self.name,
            "description": self._given_description,
            "parameters": self._given_parameters,
            **{key: getattr(self, key) for key in (*_ASKED, *_OPTIONS)},
            **{key: value for key, value in changes.items() if key not in _ORIGIN},
        }
        rebuilt = type(self)(options.pop("func"), **options)
        rebuilt.__dict__.update({key: changes.get(key, getattr(self, key)) for key in _ORIGIN})
        return rebuilt

    # -- what it shows

    @functools.cached_property
    def description(self) -> str:
        """What the tool does, in its author's words."""
        if self._given_description is not None:
            return self._given_description
        return self._docstring.prose if self.inquiry is None else self.inquiry.now().inferred.description

    @functools.cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments; read-only, shared with everybody who asks."""
        return closed(self._open_schema) if self.strict else self._open_schema

    @property
    def _open_schema(self) -> dict[str, Any]:
        if self.inquiry is not None:
            return self.inquiry.now().inferred.schema
        given = self._given_parameters
        if isinstance(given, dict):
            return object_schema(given)
        if self._shape is None:
            return schema_of(given or ())
        return merged(self._shape.schema, given) if given else self._shape.schema

    @property
    def is_verbatim(self) -> bool:
        """Whether the schema was given as JSON Schema, by an author or a source, and not read from a function."""
        return isinstance(self._given_parameters, dict)

    @property
    def parameters(self) -> list[ToolParameter]:
        """The arguments as a list, with what their author said of each."""
        return parameters_of(self.input_schema, {p.name: p for p in self.facts})

    def definition(self) -> dict[str, Any]:
        """Return name, description, parameters (JSON Schema) and strict."""
        shown = {"name": self.name, "description": self.description, "parameters": self.input_schema}
        return {**shown, "strict": self.strict}

    def explain(self) -> list[SchemaPart]:
        """Return where each part of the description and the schema came from, and what it overrode."""
        if self._shape is None:
            return stated(self.description, self.input_schema)
        inferred = composed(self._question) if self.inquiry is None else self.inquiry.now().inferred
        return list(inferred.parts)

    def pin(self) -> str:
        """Return the tool as Python code, with its schema as a literal: to review, to keep, and free of any model."""
        return pinned(self)

    def build_prompt(self) -> str:
        """Return the tool as an XML element for a system prompt."""
        description = [Element("description", content=self.description)] if self.description else []
        return Element("tool", {"name": self.name}, [*description, *(p.element() for p in self.parameters)]).render()

    # -- what it does

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function as it is, without validation."""
        return self._callable(*args, **kwargs)

    def call(self, arguments: str | Mapping[str, Any] | None = None) -> Any:
        """Validate the arguments as for a model, run, and return the function's value.

        A sync function runs in this thread and has no deadline; `dispatch.call` has one.

        Args:
            arguments: A mapping, or raw JSON text.

        Raises:
            ToolArgumentError: The arguments do not fit.
        """
        if self.is_async:
            return portal().call(self.acall, arguments)
        if self.context_parameter is None:
            value = self._callable(**self.read(arguments))
        else:
            value = self.invoke(self.read(arguments))
        return portal().call(_awaited, value) if value.__class__ is types.CoroutineType else value

    async def acall(self, arguments: str | Mapping[str, Any] | None = None) -> Any:
        """Validate the arguments as for a model, run, and return the function's value; no deadline.

        Args:
            arguments: A mapping, or raw JSON text.

        Raises:
            ToolArgumentError: The arguments do not fit.
        """
        if self.inquiry is not None:
            await self.prepare()
        arguments = self.read(arguments)
        if self.is_async or not self.thread:
            value = self.invoke(arguments)
        else:
            value = await off_loop(self.invoke, arguments)
        return await value if inspect.isawaitable(value) else value

    @functools.cached_property
    def read(self) -> Callable[..., dict[str, Any]]:
        """Validate arguments, as text or mapping and under optional Limits, into keyword arguments."""
        return self._reader.read

    def invoke(self, arguments: Mapping[str, Any], context: ToolContext[Any] | None = None) -> Any:
        """Call the function with validated arguments and, if it asks for one, its ToolContext.

        Args:
            arguments: What `read` returned.
            context: What to inject; a fresh one when there is none.
        """
        injected = self.context_parameter
        if injected is None:
            return self._callable(**arguments)
        return self._callable(**{**arguments, injected: context or ToolContext()})

    async def prepare(self) -> None:
        """Make the schema ready, so that nothing that follows blocks."""
        if self.inquiry is not None:
            await self.inquiry.ready()
        _ = self.input_schema

    @functools.cached_property
    def context_parameter(self) -> str | None:
        """The parameter that receives the ToolContext, if the function has one."""
        if self._shape is not None:
            return self._shape.context
        return None if self.func is None else context_of(self.func)

    @functools.cached_property
    def _callable(self) -> Callable[..., Any]:
        return self._undeclared if self.func is None else self.func

    def _undeclared(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise ToolExecutionError(f"Tool '{self.name}' is only declared: it has no function to call")

    # -- how it is read

    @functools.cached_property
    def _docstring(self) -> Docstring:
        return parse_docstring(doc_of(self.func))

    @functools.cached_property
    def _signature(self) -> Signature | None:
        if self.inquiry is not None:
            return asked_signature(self.func, self.mode, self.facts)
        return None if self.func is None else read_signature(self.func)

    @functools.cached_property
    def _shape(self) -> Shape | None:
        """What the function's own signature says, where that is what decides."""
        signature = self._signature_in_use
        if self.func is None or signature is None:
            return None
        unhinted = signature.names_without_hints if self.facts else ()
        declared = declared_hints(p if p.name in unhinted else replace(p, type="any") for p in self.facts)
        return shape_of(self.func, signature, self._docstring.parameters, declared)

    @property
    def facts(self) -> tuple[ToolParameter, ...]:
        """What its author said of its parameters."""
        return self._given_parameters if isinstance(self._given_parameters, tuple) else ()

    @property
    def _signature_in_use(self) -> Signature | None:
        """The function's signature, unless a schema was given or a `**kwargs` function's parameters were listed."""
        if isinstance(self._given_parameters, dict):
            return None
        signature = self._signature
        listed = signature is not None and signature.takes_any and self.facts and self.inquiry is None
        return None if listed else signature

    @property
    def _question(self) -> Question:
        read: Any = (self.func, self._signature, self._shape, self._docstring, self.facts)
        return Question(self.name, self._given_description, self.mode, self.strict, *read)

    @functools.cached_property
    def _reader(self) -> Reader:
        shape = self._shape if self.inquiry is None else self.inquiry.now().inferred.shape
        if shape is None:
            return SchemaReader(self.name, self.input_schema, validate=self.validate)
        return FunctionReader(self.name, self.input_schema, shape.core, colons_tell=shape.colons_tell)

    def _check_signature(self) -> None:
        signature = self._signature_in_use
        if signature is not None:
            if self.facts or signature.positional_only:
                check_callable(self.name, signature, self.facts)
            for problem in self._signature_problems():
                warn(problem)

    def _signature_problems(self) -> list[str]:
        signature = self._signature_in_use
        if signature is None or self.mode == "llm":  # a model tells the types, and lists what is in `**kwargs`
            return []
        return untellable(self.name, signature, self.facts)


_ASKED_ABOUT = frozenset({"description", "effect", "strict"})
_ASKED = ("mode", "schema_llm", "store")
_OPTIONS = ("strict", "returns_envelope", "timeout", "effect", "executor", "thread", "validate")
_ORIGIN = ("origin", "original_name", "output_schema")
#: What can change without reading the function again.
_REPLACEABLE = frozenset({"name", "description", *_OPTIONS, *_ORIGIN})
_FORGOTTEN = frozenset({"_reader", "read", "_callable"})  # cached values that know the name


# -- decorators


@overload
def tool(func: _Function, /) -> _Function: ...
@overload
def tool(*, name: str | None = ..., **options: Any) -> Callable[[_Function], _Function]: ...
def tool(func: _Function | None = None, /, **options: Any) -> _Function | Callable[[_Function], _Function]:
    """Mark a function as a tool and return that very function, unchanged.

    It then carries `__tool__` (the Tool), `__tool_spec__` (its definition in OpenAI's form) and
    `__tool_is_async__`. On a method, `self` is left out and the tool works through the instance.

    Args:
        func: The function, when used without parentheses.
        **options: Any option of Tool, such as `name=`, `description=` or `parameters=`.

    Raises:
        ToolSignatureError: A parameter is variadic, or required and without a type hint.
    """
    if options.get("mode", "signature") != "signature":
        raise ValueError("@tool reads no model, since it runs at import; use Tool(func, mode=...)")
    if func is None:
        return lambda func: _marked(func, options)
    return _marked(func, options)


def tool_from_function(func: Callable[..., Any], **options: Any) -> Tool:
    """Return a tool for a function, bound method, partial or callable object, without marking it.

    Args:
        func: What to call.
        **options: Any option of Tool.

    Raises:
        ToolSignatureError: A parameter is variadic, or required and without a type hint.
    """
    found = tool_on(Tool, func)
    if found is not None:
        return found.replace(**options) if options else found
    if not callable(func):
        raise ToolSignatureError(f"{func!r:.100} is not callable")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ToolcribWarning)  # a problem is an error here, raised below
        made = Tool(func, **options)
    for problem in made._signature_problems():  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # the same module
        raise ToolSignatureError(problem)
    return made


def _marked(func: _Function, options: dict[str, Any]) -> _Function:
    of_instance = first_parameter(func) in ("self", "cls")
    made = tool_from_function(types.MethodType(func, NoInstance()) if of_instance else func, **options)
    mark(func, made)
    return func


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value
