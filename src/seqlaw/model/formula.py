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
_Affine = tuple[Any, Any]
"""a and b of a + b·linear; None is zero, and stays so whatever it is multiplied with."""
_LONGEST = 1000  # characters
_DEEPEST = 200  # operations inside one another: each is a call when the formula is evaluated
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

    @cached_property
    def _tree(self) -> ast.expr:
        if not isinstance(self.text, str) or len(self.text) > _LONGEST:
            raise self._error(f"must be a formula of at most {_LONGEST} characters")
        try:
            tree = ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            example = "*".join(("6", *self.names[:4]))
            raise self._error(f"must be a formula, like {example}") from None
        if _depth(tree) > _DEEPEST:
            raise self._error(f"must have at most {_DEEPEST} operations inside one another")
        return tree

    def _error(self, rule: str) -> InputError:
        return InputError(self.field, rule, self.text)

    def parts(self, values: _Values) -> tuple[Any, Any]:
        """(a, b) of a + b·linear at these values of the other names."""
        parts = self._finite(lambda: self._value(self._tree, values))
        constant, slope = (0 if part is None else part for part in parts)
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
        found = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}
        return tuple(name for name in self.names if name in found)

    def _value(self, node: ast.expr, values: _Values) -> _Affine:
        if isinstance(node, ast.BinOp):
            return self._combine(node.op, self._value(node.left, values), self._value(node.right, values))
        if isinstance(node, ast.Name):
            if node.id not in self.names:
                raise self._error(f"may contain {', '.join(self.names)}, not {node.id}")
            return (None, 1) if node.id == self.linear else (values[node.id], None)
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            if isinstance(node.value, bool) or node.value > _LARGEST:
                raise self._error(f"must hold numbers of at most {_LARGEST:g}")
            return node.value, None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
            a, b = self._value(node.operand, values)
            return (a, b) if isinstance(node.op, ast.UAdd) else (_minus(a), _minus(b))
        raise self._error("may hold + - * / ** and parentheses only")

    def _combine(self, op: ast.operator, left: _Affine, right: _Affine) -> _Affine:
        (a, b), (c, d) = left, right
        if isinstance(op, ast.Add):
            return _plus(a, c), _plus(b, d)
        if isinstance(op, ast.Sub):
            return _plus(a, _minus(c)), _plus(b, _minus(d))
        if isinstance(op, ast.Mult) and (b is None or d is None):
            return _times(a, c), _times(a, d) if b is None else _times(b, c)
        if isinstance(op, ast.Div) and d is None and c is not None:
            return (None if a is None else a / c), (None if b is None else b / c)
        if isinstance(op, ast.Pow) and b is None and d is None:
            return self._power(0 if a is None else a, 0 if c is None else c), None
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


def _plus(x: Any, y: Any) -> Any:
    return y if x is None else x if y is None else x + y


def _minus(x: Any) -> Any:
    return None if x is None else -x


def _times(x: Any, y: Any) -> Any:
    return None if x is None or y is None else x * y
