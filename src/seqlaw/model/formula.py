"""Arithmetic that a user writes, parsed and never evaluated as code: `N*P*L*M**2*(1 + P/8192)`.

A value is an affine function a + bN of one name, so that what is linear in it is known to be: a cost is
solved for N, whatever it does with the other sizes. Without such a name it may be any arithmetic.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from seqlaw.model.checks import InputError

_Values = Mapping[str, Any]
_Term = Callable[[_Values], Any] | None
"""A function of the values; None is zero."""
_Affine = tuple[_Term, _Term]
"""a and b of a + b·linear."""
_LONGEST = 1000  # characters
_DEEPEST = 200  # operations inside one another: each is a call when the formula is read and evaluated
_LARGEST = 1e100  # of a number: products of a few stay inside floating point


@dataclass(frozen=True)
class Formula:
    """An expression of + - * / ** and parentheses in named numbers or arrays, affine in `linear` if given."""

    text: str
    names: tuple[str, ...]
    linear: str | None = None
    field: str = "cost"

    def __post_init__(self) -> None:
        self.parts(dict.fromkeys(self.names, 2))  # an error now rather than later

    def __reduce__(self) -> tuple[Any, ...]:
        return Formula, (self.text, self.names, self.linear, self.field)  # what was read does not travel

    @cached_property
    def _affine(self) -> _Affine:
        if not isinstance(self.text, str) or len(self.text) > _LONGEST:
            raise self._error(f"must be a formula of at most {_LONGEST} characters")
        try:
            tree = ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            example = "*".join(("6", *self.names[:4]))
            raise self._error(f"must be a formula, like {example}") from None
        if _depth(tree) > _DEEPEST:
            raise self._error(f"must have at most {_DEEPEST} operations inside one another")
        return self._read(tree)

    def _error(self, rule: str) -> InputError:
        return InputError(self.field, rule, self.text)

    def parts(self, values: _Values) -> tuple[Any, Any]:
        """(a, b) of a + b·linear at these values of the other names."""
        constant, slope = self._finite(lambda: tuple(part(values) if part else 0 for part in self._affine))
        return constant, slope

    def __call__(self, **values: Any) -> Any:
        constant, slope = self.parts(values)
        [found] = self._finite(lambda: (constant + slope * values[self.linear] if self.linear else constant,))
        return found

    def _finite(self, evaluate: Callable[[], tuple[Any, ...]]) -> Any:
        """Numbers, whole ones too within the range of floating point; else an error."""
        try:
            with np.errstate(all="ignore"):
                found = evaluate()
        except (ZeroDivisionError, OverflowError):
            found = (10**308,)
        if any(isinstance(one, int) and abs(one) >= 10**308 for one in found):
            raise self._error("must be finite at every size")
        return found

    @property
    def used(self) -> tuple[str, ...]:
        """The names that it speaks of."""
        found = {node.id for node in ast.walk(ast.parse(self.text.strip())) if isinstance(node, ast.Name)}
        return tuple(name for name in self.names if name in found)

    def _read(self, node: ast.expr) -> _Affine:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            value = node.value
            if isinstance(value, bool) or value > _LARGEST:
                raise self._error(f"must hold numbers of at most {_LARGEST:g}")
            return (lambda values: value), None
        if isinstance(node, ast.Name):
            name = node.id
            if name not in self.names:
                raise self._error(f"may speak of {', '.join(self.names)}, not of {name}")
            return (None, lambda values: 1) if name == self.linear else (lambda values: values[name], None)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
            a, b = self._read(node.operand)
            return (a, b) if isinstance(node.op, ast.UAdd) else (_minus(None, a), _minus(None, b))
        if isinstance(node, ast.BinOp):
            return self._combine(node.op, self._read(node.left), self._read(node.right))
        raise self._error("may hold + - * / ** and parentheses only")

    def _combine(self, op: ast.operator, left: _Affine, right: _Affine) -> _Affine:
        (a, b), (c, d) = left, right
        if isinstance(op, ast.Add):
            return _plus(a, c), _plus(b, d)
        if isinstance(op, ast.Sub):
            return _minus(a, c), _minus(b, d)
        if isinstance(op, ast.Mult) and not (b and d):
            return _times(a, c), _times(a, d) or _times(b, c)
        if isinstance(op, ast.Div) and not d and c:
            return _over(a, c), _over(b, c)
        if isinstance(op, ast.Pow) and not b and not d:
            return (lambda values: self._power(a(values) if a else 0, c(values) if c else 0)), None
        if isinstance(op, (ast.Mult, ast.Div, ast.Pow)):
            raise self._error(f"must be linear in {self.linear}")
        raise self._error("may hold + - * / ** and parentheses only")

    def _power(self, base: Any, power: Any) -> Any:
        if isinstance(power, (int, float)) and abs(power) > 100:
            raise self._error("must have powers of at most 100")
        if isinstance(base, int) and isinstance(power, int) and abs(power) * base.bit_length() > 1000:
            base = float(base)  # whole numbers without end would take for ever
        found = base**power
        if isinstance(found, complex):
            raise self._error("must be real at every size")
        return found


def _depth(tree: ast.expr) -> int:
    """How many operations lie inside one another."""
    depth, level = 0, [tree]
    while level := [
        part for node in level for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)
    ]:
        depth += 1
    return depth


def _plus(x: _Term, y: _Term) -> _Term:
    return (lambda values: x(values) + y(values)) if x and y else x or y


def _minus(x: _Term, y: _Term) -> _Term:
    if x and y:
        return lambda values: x(values) - y(values)
    return (lambda values: -y(values)) if y else x


def _times(x: _Term, y: _Term) -> _Term:
    return (lambda values: x(values) * y(values)) if x and y else None


def _over(x: _Term, y: _Term) -> _Term:
    return (lambda values: x(values) / y(values)) if x and y else None
