"""A user's formula: arithmetic as Python does it, and nothing else."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlaw import InputError
from seqlaw.model.formula import Formula

NAMES = ("M", "N", "P", "L")


@pytest.mark.parametrize(
    "text",
    [
        "N*P*L*M**2",
        "N*P*L*M**2*(1 + P/8192)",
        "2*M + N*(P - 1)/3 + +L",
        "-(N - 4)*-1 + M*M*P",
        "(N + N)*L**0.5 + 1e3",
    ],
)
@given(st.tuples(*[st.integers(1, 10**6)] * 4))
def test_a_formula_is_what_python_makes_of_it(text, sizes):
    values = dict(zip(NAMES, sizes, strict=True))
    formula = Formula(text, NAMES, "N")
    wanted = eval(text, {}, values)  # the oracle; the package itself evaluates nothing
    assert formula(**values) == pytest.approx(wanted, rel=1e-12)
    constant, slope = formula.parts(values)
    assert constant + slope * values["N"] == pytest.approx(wanted, rel=1e-12, abs=1e-6)
    arrays = {name: np.full(3, float(value)) for name, value in values.items()}
    assert formula(**arrays) == pytest.approx(wanted, rel=1e-12)


def test_a_formula_travels_to_a_worker():
    formula = Formula("N*P*L*M**2", NAMES, "N")
    assert pickle.loads(pickle.dumps(formula))(M=2, N=3, P=5, L=7) == 420


def test_whole_numbers_stay_whole():
    assert (
        Formula("N*P*L*M**2", NAMES, "N")(M=10**9 + 7, N=3, P=10**12 + 1, L=10**9)
        == 3 * (10**12 + 1) * 10**9 * (10**9 + 7) ** 2
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("N**2", "must be linear in N"),
        ("1/N", "must be linear in N"),
        ("N*N", "must be linear in N"),
        ("2**N", "must be linear in N"),
        ("exp(N)", "may hold"),
        ("().__class__", "may hold"),
        ("N if M else P", "may hold"),
        ("N*P*", r"must be a formula, like 6\*M\*N\*P\*L"),
        ("N*Q", "may contain M, N, P, L, not Q"),
        ("N*P**1000", "powers of at most 100"),
        ("9**9**9**9*N", "powers of at most 100"),
        ("N*P/0", "must be finite"),
        ("N*((((9**100)**100)**100)**100)", "must be finite"),
        ("N*True", "must hold numbers"),
        ("N*1e999", "must hold numbers"),
        ("N*'a'", "may hold"),
        ("N" + "*1" * 600, "at most 1000 characters"),
        ("(" * 400 + "N" + ")" * 400, "must be a formula"),
        ("N*" + "9" * 400, "must hold numbers of at most 1e+100".replace("+", r"\+")),
        ("N*1e101", "must hold numbers of at most 1e"),
        ("-" * 990 + "N", "must have at most 200 operations inside one another"),
        ("N" + "*1" * 210, "must have at most 200 operations inside one another"),
        ("N*" + "*".join(["9" * 100] * 5), "must be finite"),
    ],
    ids=lambda text: text[:40],
)
def test_anything_else_is_refused(text, words):
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        Formula(text, NAMES, "N")


def test_a_long_sum_is_a_formula():
    assert Formula("N" + " + 1" * 190, NAMES, "N")(M=1, N=5, P=1, L=1) == 195
    assert Formula("N*" + "9" * 90, NAMES, "N")(M=1, N=2, P=1, L=1) == 2 * (10**90 - 1)


def test_what_is_too_large_is_refused_when_it_is_asked_for():
    formula = Formula("N*" + "*".join(["9" * 100] * 3), NAMES, "N")
    assert formula(M=1, N=2, P=1, L=1) == 2 * (10**100 - 1) ** 3
    with pytest.raises(InputError, match="must be finite at every size"):
        formula(M=1, N=10**9, P=1, L=1)
