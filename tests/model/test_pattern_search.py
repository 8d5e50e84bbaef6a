"""The pattern search against minima that are known."""

import numpy as np
import pytest

from seqlaw.model.pattern_search import pattern_search

BOTH = np.concatenate([np.eye(2), -np.eye(2)])


def test_every_row_finds_its_own_minimum():
    """(x - a)² + 10 (y - a²)² for several a, from one place, each row with its own a."""
    a = np.array([0.3, -1.2, 2.0])

    def risk(rows, z):
        return (z[..., 0] - a[rows, None]) ** 2 + 10 * (z[..., 1] - a[rows, None] ** 2) ** 2

    z, value = pattern_search(risk, np.zeros((3, 2)), BOTH)
    assert z == pytest.approx(np.stack([a, a**2], axis=1), abs=3e-6)
    assert value == pytest.approx(np.zeros(3), abs=1e-10)


def test_a_minimum_beyond_the_bounds_is_on_them():
    def risk(rows, z):
        return np.sum((z - 5.0) ** 2, axis=-1)

    z, value = pattern_search(risk, np.zeros((1, 2)), BOTH, low=-1.0, high=np.array([2.0, 9.0]))
    assert z[0] == pytest.approx([2.0, 5.0], abs=3e-6)
    assert value[0] == pytest.approx(9.0, abs=1e-9)


def test_without_axes_the_start_is_the_answer():
    z, value = pattern_search(lambda rows, z: np.full(z.shape[:2], 7.0), np.zeros((4, 0)), np.zeros((0, 0)))
    assert z.shape == (4, 0)
    assert value.tolist() == [7.0] * 4
