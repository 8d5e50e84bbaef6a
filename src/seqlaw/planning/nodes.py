"""Where the splines of a search have their nodes: whole sizes, spaced in the logarithm."""

from __future__ import annotations

import math

import numpy as np

from seqlaw.model.checks import Array
from seqlaw.planning.budget import Search


def coordinate(axis: str, sizes: Array, widest: float) -> Array:
    """log size; for M stretched towards M = d, where d - M matters as M does below."""
    bent = np.log1p(-sizes / (widest + 1)) if axis == "M" and widest < math.inf else 0.0
    return np.asarray(np.log(sizes) - bent)


def width_at(places: Array, widest: float) -> Array:
    """The M of a coordinate."""
    return np.asarray(1 / (np.exp(-places) + (0.0 if widest == math.inf else 1 / (widest + 1))))


def spaced(low: int, high: int, step: float) -> Array:
    """Whole numbers from low to high, about e^step apart."""
    count = max(2, math.ceil(math.log(high / low) / step) + 1) if high > low else 1
    return np.unique(np.round(np.geomspace(low, high, count)))


def width_nodes(search: Search, low: int, high: int, step: float) -> Array:
    """Whole numbers about e^step apart, and denser towards M = d, as `coordinate` has them."""
    first, last = coordinate("M", np.array([low, high], dtype=float), search.widest).tolist()
    places = np.linspace(first, last, max(2, math.ceil((last - first) / step) + 1))
    return np.unique(np.clip(np.round(width_at(places, search.widest)), low, high))


def length_nodes(low: int, high: int, step: float, near: float = 0.55) -> Array:
    """Denser where sequences are short and the averaged covariance changes with each position."""
    short = spaced(low, min(high, max(low, 64)), near)
    return joined(short, spaced(int(short[-1]), high, step))


def step_counts(search: Search, low: int, high: int, step: float) -> Array:
    """Numbers of steps that the schedule allows."""
    return np.maximum(spaced(low, high, step), search.least_steps)


def spread(here: int, reach: float, count: int, low: int, high: int) -> Array:
    """So many whole numbers in the range, from `reach` e-folds below to as many above."""
    return np.unique(np.clip(np.round(here * np.exp(np.linspace(-reach, reach, count))), low, high))


def joined(one: Array, two: Array) -> Array:
    """The union of both, without values whose logarithms are equal."""
    every = np.union1d(one, two)
    return np.asarray(every[np.diff(np.log(every), prepend=-1.0) > 1e-9])
