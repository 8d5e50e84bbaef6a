"""What is fitted: a floor and power laws whose exponents are numbers, or functions of fewer numbers.

loss = E + (Σ_k t_k^q)^{1/q}, t_k = A_k Π_c x_c^-e_kc(φ), with E, A_k ≥ 0 and q ≥ 1; q = 1 is the sum. A term
that a user names has an exponent of its own for each of its columns; a preset of the paper has exponents in
α, r and θ (`methods.rates`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from seqlaw.model.checks import Array, InputError, real

STEEPEST = 5.0
"""Exponents of a user's terms stay within ±5: a steeper one describes a step, not a law."""
KINDS = ("sum", "power-mean")
LARGEST_Q = 20.0
"""Of two equal terms the power mean at q = 20 is 3.5 % above the larger: no runs tell it from a maximum."""
_STARTS = (-0.3, 0.1, 0.35, 0.9)
_MOST_STARTS = 64


@dataclass(frozen=True, kw_only=True)
class Form:
    """Terms as tuples of columns, the numbers φ of their exponents, and how terms are added."""

    terms: tuple[tuple[str, ...], ...]
    preset: str | None = None
    kind: str = "sum"
    """`sum` (q = 1), or `power-mean` (q is fitted)."""
    floor: float | None = None
    """E where it is given, in units of the loss; fitted otherwise."""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column for term in self.terms for column in term))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The names of φ: a column, or term:column where a column is in several terms."""
        if self.preset in PAPER:
            return tuple(PAPER[self.preset]["starts"])
        once = {c for c in self.columns if sum(c in term for term in self.terms) == 1}
        return tuple(c if c in once else f"{'*'.join(t)}:{c}" for t in self.terms for c in t)

    @property
    def labels(self) -> tuple[str, ...]:
        """What each term is called: its columns, or the paper's name of it."""
        named: tuple[str, ...] = PAPER[self.preset]["labels"] if self.preset in PAPER else ()
        return named or tuple("*".join(term) for term in self.terms)

    @property
    def size(self) -> int:
        """How many numbers are fitted: E, one coefficient a term, φ, 1/q."""
        return (self.floor is None) + len(self.terms) + len(self.numbers) + (self.kind != "sum")

    @property
    def place(self) -> slice:
        """Where φ stands in the numbers (E, A_1 …, φ, 1/q)."""
        return slice(1 + len(self.terms), 1 + len(self.terms) + len(self.numbers))

    @property
    def other(self) -> Form | None:
        """The same terms added the other way; None where a single term is all there is to add."""
        kind = KINDS[self.kind == KINDS[0]]
        return replace(self, kind=kind) if len(self.terms) > 1 else None

    def exponents(self, phi: Array) -> Array:
        """e_kc, shape (…, terms, columns), of φ, shape (…, numbers)."""
        found = np.zeros((*phi.shape[:-1], len(self.terms), len(self.columns)))
        if self.preset in PAPER:
            named = dict(zip(self.numbers, np.moveaxis(phi, -1, 0), strict=True))
            for k, powers in enumerate(PAPER[self.preset]["terms"](**named)):
                for column, power in powers.items():
                    found[..., k, self.columns.index(column)] = power
            return found
        places = [(k, self.columns.index(c)) for k, term in enumerate(self.terms) for c in term]
        for j, (k, c) in enumerate(places):
            found[..., k, c] = phi[..., j]
        return found

    @property
    def bounds(self) -> tuple[Array, Array]:
        """The least and the largest φ."""
        if self.preset in PAPER:
            ends = [PAPER[self.preset]["bounds"][name] for name in self.numbers]
            return np.array([low for low, _ in ends]), np.array([high for _, high in ends])
        reach = np.full(len(self.numbers), STEEPEST)
        return -reach, reach

    def starts(self) -> Array:
        """A grid of φ, shape (starts, numbers), thinned evenly where the grid is large."""
        axes = [_STARTS] * len(self.numbers)
        if self.preset in PAPER:
            axes = [PAPER[self.preset]["starts"][name] for name in self.numbers]
        grid = np.array(list(product(*axes)))
        if len(grid) <= _MOST_STARTS:
            return grid
        return grid[np.random.default_rng(0).permutation(len(grid))[:_MOST_STARTS]]

    def without(self, name: str) -> Form:
        """The nested law: a term of this name left out, else this column out of every term."""
        if self.preset in PAPER:
            raise InputError("without", f"needs terms of your own, {self.preset} is one piece", name)
        wanted = tuple(_columns(name, "without"))
        left = tuple(term for term in self.terms if term != wanted)
        if len(left) == len(self.terms) and name in self.columns:
            shorter = (tuple(c for c in term if c != name) for term in self.terms)
            left = tuple(dict.fromkeys(term for term in shorter if term))
        if left == self.terms:
            known = ", ".join(dict.fromkeys(["*".join(t) for t in self.terms] + list(self.columns)))
            raise InputError("without", f"must be a term or a column of the law ({known})", name)
        if not left:
            raise InputError("without", "must leave a term", name)
        return Form(terms=left, kind=self.kind if len(left) > 1 else "sum", floor=self.floor)


def make_form(
    terms: Sequence[str] | None, preset: str | None, kind: str = "sum", floor: float | None = None
) -> Form:
    """The form of terms as a user writes them ("params", "params*length"), or of a preset."""
    form = _make_form(terms, preset)
    if kind not in KINDS:
        raise InputError("form", f"must be one of {', '.join(KINDS)}", kind)
    if kind != "sum" and len(form.terms) < 2:
        raise InputError("form", "must be sum where the law has a single term", kind)
    if floor is not None and real("floor", floor) < 0:
        raise InputError("floor", "must not be negative", floor)
    return replace(form, kind=kind, floor=None if floor is None else float(floor))


def _make_form(terms: Sequence[str] | None, preset: str | None) -> Form:
    if preset is not None and terms:
        raise InputError("preset", "goes without terms of your own", preset)
    if preset is None and not terms:
        raise InputError("term", "must be given at least once, or a preset in its place", None)
    if preset is not None:
        if preset not in PRESETS:
            raise InputError("preset", f"must be one of {', '.join(PRESETS)}", preset)
        return Form(terms=PRESETS[preset], preset=preset)
    if isinstance(terms, str):
        raise InputError("terms", "must be a list of terms", terms)
    found = tuple(tuple(_columns(term, "term")) for term in terms or ())
    kinds = [frozenset(term) for term in found]
    for term, kind in zip(terms or (), kinds, strict=True):
        if kinds.count(kind) > 1:
            raise InputError("term", "must differ from the other terms", term)
    return Form(terms=found)


def _columns(term: str, field: str) -> list[str]:
    if not isinstance(term, str):
        raise InputError(field, "must be a column, or columns joined by *", term)
    names = [name.strip() for name in term.split("*")]
    if not all(names) or len(set(names)) < len(names):
        raise InputError(field, "must be a column, or different columns joined by *", term)
    return names


def _regime_1(alpha: Any, r: Any) -> list[dict[str, Any]]:
    """approx, bias and variance of Theorem 1 in Regime I."""
    return [{"M": alpha + 2 * r - 1}, {"R": (alpha + 2 * r - 1) / alpha}, {"N": 1, "P": 1, "R": -1 / alpha}]


def _regime_2(alpha: Any, theta: Any, r: Any) -> list[dict[str, Any]]:
    """Both branches of each term: a maximum of two power laws is their sum, up to a factor of two."""
    innovation, initial = _regime_1(alpha, r), _regime_1(theta, r)
    slow = initial[1]["R"]
    initial[0]["P"], initial[1]["P"], initial[2]["P"] = 1, 1 - slow, 1 + 1 / theta
    return innovation + initial


_LABELS = ("approx", "bias", "variance")
PAPER: dict[str | None, dict[str, Any]] = {
    "seqlaw-1": {
        "terms": _regime_1,
        "labels": _LABELS,
        "starts": {"alpha": (1.3, 1.8, 2.5, 3.5), "r": (0.1, 0.25, 0.4)},
        "bounds": {"alpha": (1.001, 8.0), "r": (0.001, 0.499)},
    },
    "seqlaw-2": {
        "terms": _regime_2,
        "labels": (*_LABELS, *(f"{label}, initialization's branch" for label in _LABELS)),
        "starts": {"alpha": (1.5, 2.0, 3.0), "theta": (1.1, 1.4, 2.0), "r": (0.1, 0.25, 0.4)},
        "bounds": {"alpha": (1.001, 8.0), "theta": (1.001, 8.0), "r": (0.001, 0.499)},
    },
}
"""The paper's laws: exponents as functions of α, θ, r, where to start and where they must lie."""

PRESETS: dict[str, tuple[tuple[str, ...], ...]] = {
    "chinchilla": (("params",), ("tokens",)),
    "seqlaw-1": (("M",), ("R",), ("N", "P", "R")),
    "seqlaw-2": (("M",), ("R",), ("N", "P", "R"), ("M", "P"), ("R", "P"), ("N", "P", "R")),
}
