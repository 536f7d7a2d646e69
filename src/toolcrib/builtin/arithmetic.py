"""Arithmetic, read and worked out without `eval`, in bounded time."""

from __future__ import annotations

import ast
import math
import operator
import statistics
from collections.abc import Callable, Mapping
from typing import Annotated, Any, cast

import pydantic

from toolcrib.errors import MissingExtraError, ToolExecutionError
from toolcrib.limits import MAX_EXPRESSION_CHARS, MAX_NUMBER_BITS
from toolcrib.tools import tool

__all__ = ["TOOLS", "calculate"]

_MAX_FACTORIAL = 1_000
_MAX_DIGITS = 1_000


@tool(effect="read")
def calculate(
    expression: Annotated[str, pydantic.Field(min_length=1, max_length=MAX_EXPRESSION_CHARS, examples=["sqrt(2) * 3"])],
) -> float | int | bool:
    """Work out an arithmetic expression exactly as written, and return its value.

    Args:
        expression: Numbers with + - * / // % and ** (power), parentheses, comparisons, `a if b else c`; the names
            pi, e and tau; the functions abs ceil comb cos degrees exp factorial floor gcd hypot lcm log log10 log2
            max mean median min perm pow radians round sin sqrt stdev sum tan acos asin atan atan2. Angles are in
            radians. Lists are written [1, 2, 3].
    """
    evaluator, parsed = _evaluator(), _parsed(expression)
    try:
        return _final(evaluator.eval(expression, parsed))
    except ToolExecutionError:
        raise
    except ZeroDivisionError:
        raise ToolExecutionError("the expression divides by zero") from None
    except OverflowError:
        raise ToolExecutionError("a number in the expression becomes too large") from None
    except (RecursionError, MemoryError):
        raise _too_deep() from None
    except Exception as error:  # noqa: BLE001  # whatever it is, the expression is what is wrong
        raise ToolExecutionError(_explained(error)) from None


TOOLS = [calculate]


def _parsed(expression: str) -> ast.expr:
    text = expression.strip().translate(_SIGNS)
    try:
        return ast.parse(text, mode="eval").body
    except (RecursionError, MemoryError):
        raise _too_deep() from None
    except (SyntaxError, ValueError) as error:
        told = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ToolExecutionError(f"the expression cannot be read ({told}): write it as in 2 * (3 + 4)") from None


_SIGNS = str.maketrans({"\N{MULTIPLICATION SIGN}": "*", "\N{DIVISION SIGN}": "/", "\N{MINUS SIGN}": "-"})


def _evaluator() -> Any:
    try:
        import simpleeval  # pyright: ignore[reportMissingTypeStubs]  # it has none
    except ImportError:
        raise MissingExtraError("math", "calculate") from None
    made: Any = simpleeval.SimpleEval(operators=_OPERATORS, functions=_FUNCTIONS, names=_NAMES)

    def items(node: ast.List | ast.Tuple) -> list[Any]:
        return [made._eval(item) for item in node.elts]  # noqa: SLF001  # how its own nodes go on

    read = {kind: evaluate for kind, evaluate in made.nodes.items() if kind in _READ}
    made.nodes = {**read, ast.Constant: _constant, ast.List: items, ast.Tuple: items}
    return made


_READ = (ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.Name)
_NAMES = {"pi": math.pi, "e": math.e, "tau": math.tau, "True": True, "False": False}


def _constant(node: ast.Constant) -> float:
    if not isinstance(node.value, (int, float)):
        raise ToolExecutionError(f"{node.value!r:.40} is not a number: an expression holds numbers only")
    return node.value


def _explained(error: Exception) -> str:
    """Return what is wrong with an expression, in words that name what may be written instead."""
    kind = type(error).__name__
    if kind == "FunctionNotDefined":
        return f"there is no function {_named(error)!r}; there are {', '.join(_FUNCTIONS)}"
    if kind == "NameNotDefined":
        return f"there is no name {_named(error)!r}: write its value; the names are pi, e and tau"
    if kind == "TypeError":
        return "a function in the expression does not take these numbers, or not so many"
    if kind in ("FeatureNotAvailable", "OperatorNotDefined"):
        return "the expression has something that is no arithmetic; for a power write **, not ^"
    return f"the expression has no value ({error})"


def _named(error: Any) -> str:
    return str(getattr(error, "func_name", None) or getattr(error, "name", ""))[:40]


def _final(value: Any) -> float | int | bool:
    if isinstance(value, complex):
        raise ToolExecutionError("the value is not a real number")
    if callable(value):
        raise ToolExecutionError("a function is not a number: write what it is of, as in sqrt(2)")
    if not isinstance(value, (int, float)):
        raise ToolExecutionError("the value is a list, not a number: use sum, mean, min or max, or leave the comma out")
    if isinstance(value, float) and not math.isfinite(value):
        raise ToolExecutionError("the value is too large, or no number at all")
    return value


# -- operators and functions that cannot run away


def _bounded(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > MAX_NUMBER_BITS:
        raise _too_large()
    return value


def _too_large() -> ToolExecutionError:
    return ToolExecutionError("a number in the expression becomes too large; with a decimal point, as in 9.0, more fit")


def _too_deep() -> ToolExecutionError:
    return ToolExecutionError("the expression is nested too deep: split it into several")


def _numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse operands that are no numbers, which Python would repeat or join, and results beyond the bound."""

    def checked(*operands: Any) -> Any:
        if wrong := [item for item in operands if not isinstance(item, (int, float))]:
            raise ToolExecutionError(f"{wrong[0]!r:.40} is not a number")
        return _bounded(function(*operands))

    return checked


def _power(base: float, exponent: float) -> Any:
    whole = isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1
    if whole and exponent * math.log2(abs(base)) > MAX_NUMBER_BITS:
        raise _too_large()
    return base**exponent


def _quotient(left: float, right: float) -> float:
    return left / right


def _whole_quotient(left: float, right: float) -> float:
    return left // right


def _rounded(number: float, digits: int = 0) -> float:
    if abs(digits) > _MAX_DIGITS:
        raise ToolExecutionError(f"round takes at most {_MAX_DIGITS} digits")
    return round(number, digits) if digits else round(number)


def _small(function: Callable[..., int]) -> Callable[..., int]:
    """Bound what grows with the size of a number instead of its length."""

    def checked(*numbers: int) -> int:
        if any(number > _MAX_FACTORIAL for number in numbers):
            raise ToolExecutionError(f"{function.__name__} takes numbers up to {_MAX_FACTORIAL:,}")
        return function(*numbers)

    return checked


def _listed(function: Callable[[Any], Any]) -> Callable[..., Any]:
    """Take one list, or the numbers themselves."""

    def of(*items: Any) -> Any:
        values = cast("list[Any]", items[0]) if len(items) == 1 and isinstance(items[0], list) else list(items)
        if not values or not all(isinstance(value, (int, float)) for value in values):
            raise ToolExecutionError("a function of several numbers takes numbers, or one list of them")
        return _bounded(function(values))

    return of


_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: _numbers(operator.add),
    ast.Sub: _numbers(operator.sub),
    ast.Mult: _numbers(operator.mul),
    ast.Div: _numbers(_quotient),
    ast.FloorDiv: _numbers(_whole_quotient),
    ast.Mod: _numbers(operator.mod),
    ast.Pow: _numbers(_power),
    ast.USub: _numbers(operator.neg),
    ast.UAdd: _numbers(operator.pos),
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: _numbers(operator.gt),
    ast.Lt: _numbers(operator.lt),
    ast.GtE: _numbers(operator.ge),
    ast.LtE: _numbers(operator.le),
    ast.Not: operator.not_,
}

_ONE_BY_ONE: tuple[Callable[..., Any], ...] = (
    abs,
    *(math.acos, math.asin, math.atan, math.atan2, math.ceil, math.cos, math.degrees, math.exp, math.floor, math.gcd),
    *(math.hypot, math.lcm, math.log, math.log10, math.log2, math.radians, math.sin, math.sqrt, math.tan),
)
_FUNCTIONS: dict[str, Callable[..., Any]] = dict(
    sorted(
        {
            **{function.__name__: _numbers(function) for function in _ONE_BY_ONE},
            **{function.__name__: _numbers(_small(function)) for function in (math.comb, math.factorial, math.perm)},
            **{function.__name__: _listed(function) for function in (max, min, sum)},
            **{f.__name__: _listed(f) for f in (statistics.mean, statistics.median, statistics.stdev)},
            "pow": _numbers(_power),
            "round": _numbers(_rounded),
        }.items()
    )
)
