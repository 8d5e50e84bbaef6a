import math
from dataclasses import dataclass
from typing import ClassVar

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oracles import filters, wsd_log_residual
from seqlaw import WSD, BlockDecay, Constant, Cosine, Explicit, InputError, Schedule
from seqlaw.model.pieces import Part, Pieces, stretches
from seqlaw.model.schedule import SCHEDULES, as_schedule

EPS = np.finfo(float).eps
PAPER_L = {1400: 168485, 2000: 248461, 2800: 358079, 3800: 498539, 5000: 670813, 6400: 875698, 8000: 1113868}


def build(kind, gamma, L):
    if kind == "explicit":
        rng = np.random.default_rng(L)
        return Explicit(sizes=gamma * rng.random(L))
    return SCHEDULES[kind](gamma=gamma, L=max(L, 10 if kind == "wsd" else 2))


kinds = st.sampled_from([*SCHEDULES, "explicit"])


@settings(max_examples=150, deadline=None)
@given(kind=kinds, gamma=st.floats(1e-4, 10), L=st.integers(1, 3000), x=st.floats(1e-12, 0.94))
def test_filters_are_the_defining_products(kind, gamma, L, x):
    schedule = build(kind, gamma, L)
    s = x / schedule.gamma
    psi, g = filters(schedule.steps(), s)
    # log ψ is right to a few roundings of its own size, and ψ inherits |log ψ| of them.
    slack = 20 * EPS * (1 + abs(float(np.log(psi))) if psi > 0 else 1)
    assert schedule.residual(s) == pytest.approx(float(psi), rel=slack, abs=1e-300)
    assert schedule.response(s) == pytest.approx(float(g), rel=40 * EPS)
    assert s * schedule.response(s) == pytest.approx(1 - schedule.residual(s), rel=1e-12, abs=4 * EPS)


@settings(max_examples=100, deadline=None)
@given(
    kind=kinds,
    L=st.integers(20, 2000),
    modulus=st.floats(1e-14, 0.5),
    angle=st.floats(-math.pi, math.pi),
)
def test_filters_of_complex_arguments(kind, L, modulus, angle):
    schedule = build(kind, 0.1, L)
    s = np.asarray(modulus / schedule.gamma * np.exp(1j * angle))
    assume(abs(s.real) * schedule.total < 600)  # beyond, ψ itself overflows, or loses digits as a denormal
    psi, g = filters(schedule.steps(), s)
    size = 1 + float(np.sum(schedule.steps())) * abs(s)
    assert abs(schedule.residual(s) - complex(psi)) <= 20 * EPS * size * abs(complex(psi))
    wanted = complex(g)
    # g itself cancels where ψ is far above 1; below, the relative error is rounding.
    assert abs(schedule.response(s) - wanted) <= 40 * EPS * size * max(abs(wanted), abs(complex(psi) / s))


@pytest.mark.parametrize("s", [3e-13, 1e-6, 0.3, 5.0, 3e-13 * (1 + 1j), 1e-8j, -1e-4 + 2e-4j, 2 - 3j])
def test_wsd_at_a_billion_steps_in_high_precision(s):
    schedule = WSD(gamma=0.1, L=10**9)
    wanted = wsd_log_residual(0.1, 10**9, schedule.warmup_end, schedule.stable_end, s)
    got = complex(schedule.log_residual(s))
    assert abs(got - wanted) <= 10 * EPS * abs(wanted)


@pytest.mark.parametrize("L", [999, 5000, 7919, 20_000])
def test_wsd_across_the_switch_from_sums_to_euler_maclaurin(L):
    schedule = WSD(gamma=0.1, L=L)
    s = np.array([1e-9, 1e-3, 1.0, 5.0, 9.4])
    wanted = np.log1p(-schedule.steps().astype(np.longdouble)[:, None] * s).sum(axis=0)
    np.testing.assert_allclose(schedule.log_residual(s), wanted.astype(float), rtol=20 * EPS)
    assert schedule.total == pytest.approx(math.fsum(schedule.steps()), rel=4 * EPS)


@pytest.mark.parametrize("s", [1e-12, 1e-3, 5.0, 1e-12j, 1e-5 * (1 - 2j)])
@pytest.mark.parametrize("kind", ["cosine", "block", "constant"])
def test_other_schedules_at_a_billion_steps_in_high_precision(kind, s):
    L = 10**9
    schedule = SCHEDULES[kind](gamma=0.1, L=L)
    with mpmath.workdps(40):
        x = mpmath.mpmathify(s) / 10
        if kind == "constant":
            wanted = L * mpmath.log1p(-x)
        elif kind == "cosine":  # Σ_k over a full period of log(1 - x cos²φ) by its Fourier constant term
            # mean of log(1 - x cos²) = 2 log((1 + √(1-x))/2); the trapezoid rule is exact to q^L.
            wanted = L * 2 * mpmath.log((1 + mpmath.sqrt(1 - x)) / 2) + mpmath.log1p(-x) / 2
        else:
            size = math.floor(L / math.log(L))
            wanted = mpmath.fsum(
                min(size, L - k * size) * mpmath.log1p(-x / 2**k) for k in range(-(-L // size))
            )
        wanted = complex(wanted)
    got = complex(schedule.log_residual(s))
    # 0.1 is not a binary number: gamma itself carries half an eps.
    assert abs(got - wanted) <= 10 * EPS * abs(wanted)


def test_block_decay_inverts_its_horizon_as_the_paper_does():
    assert BlockDecay.from_horizon(1200, 0.1).L == 142397
    assert BlockDecay.from_horizon(2400, 0.1).L == 302909
    for R, L in PAPER_L.items():
        assert BlockDecay.from_horizon(R, 0.1).L == L
        assert BlockDecay(gamma=0.1, L=L).horizon == pytest.approx(R, rel=1e-12)
        assert BlockDecay(gamma=0.1, L=L - 1).horizon < R - 0.05


@given(kind=st.sampled_from([*SCHEDULES]), R=st.floats(5, 1e12), gamma=st.floats(1e-3, 0.3))
def test_horizon_to_steps_is_the_smallest_that_reaches(kind, R, gamma):
    schedule = SCHEDULES[kind].from_horizon(R, gamma)
    assert schedule.horizon >= R * (1 - 1e-9)
    if schedule.L > 20:
        shorter = SCHEDULES[kind](gamma=gamma, L=schedule.L - 1)
        assert shorter.horizon < R * (1 + 1e-9)


def test_sums_of_steps():
    """Σγ_t is 0.77 R for WSD and 2.0 R for the block schedule: R does not compare them fairly."""
    wsd, block = WSD.from_horizon(1200, 0.1), BlockDecay.from_horizon(1200, 0.1)
    assert wsd.total / wsd.horizon == pytest.approx(0.771, abs=0.002)
    assert block.total / block.horizon == pytest.approx(2.0, abs=0.001)
    for schedule in (wsd, block, Cosine(gamma=0.1, L=5000), Constant(gamma=0.2, L=77)):
        assert schedule.total == pytest.approx(math.fsum(schedule.steps()), rel=1e-14)


def test_wsd_is_the_papers_formula():
    schedule = WSD(gamma=0.3, L=1000)
    L_w, L_s, L = 100, 800, 1000
    steps = schedule.steps()
    for t in (1, 50, 100, 101, 799, 800, 801, 900, 1000):
        if t <= L_w:
            wanted = 0.3 * t / L_w
        elif t <= L_s:
            wanted = 0.3
        else:
            wanted = 0.3 * math.exp(-(t - L_s) * math.log(L) / (L - L_s))
        assert steps[t - 1] == pytest.approx(wanted, rel=1e-14)
    assert steps[-1] == pytest.approx(0.3 / 1000)


def test_safeguard_scales_the_whole_schedule():
    for schedule in (build(kind, 0.1, 500) for kind in [*SCHEDULES, "explicit"]):
        assert schedule.safeguarded(0.5 / schedule.gamma) is schedule
        clipped = schedule.safeguarded(1 / schedule.gamma)
        np.testing.assert_allclose(clipped.steps(), schedule.steps() / 2, rtol=1e-14)
        assert clipped.gamma == pytest.approx(schedule.gamma / 2)


def test_ten_to_the_fifteen_steps():
    s = np.array([1e-16, 1e-14, 1e-12])
    for kind in SCHEDULES.values():
        schedule = kind(gamma=0.1, L=10**15)
        psi = schedule.residual(s)
        assert np.all((psi > 0) & (psi < 1))
        # γs is tiny, so ψ = exp(-s Σγ) up to γ s.
        np.testing.assert_allclose(psi, np.exp(-s * schedule.total), rtol=1e-11)


def test_response_at_zero_is_the_sum_of_steps():
    for schedule in (build(kind, 0.1, 500) for kind in [*SCHEDULES, "explicit"]):
        assert schedule.response(0.0) == pytest.approx(schedule.total, rel=1e-14)
        assert schedule.response(1e-300) == pytest.approx(schedule.total, rel=1e-12)
        assert schedule.residual(0.0) == 1.0


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: WSD(gamma=0.0, L=100), "gamma must be positive"),
        (lambda: WSD(gamma=0.1, L=4), "room for each phase"),
        (lambda: WSD(gamma=0.1, L=2), "at least 3"),
        (lambda: WSD(gamma=0.1, L=100, warmup=0.6, decay=0.5), "below 1 - decay"),
        (lambda: WSD(gamma=0.1, L=100, warmup=0.0), "must lie in"),
        (lambda: WSD(gamma=0.1, L=100, decay=math.nan), "must be finite"),
        (lambda: BlockDecay(gamma=0.1, L=1), "at least 2"),
        (lambda: Constant(gamma=-1, L=10), "positive"),
        (lambda: Constant(gamma=0.1, L=10.5), "whole"),
        (lambda: Cosine(gamma=math.inf, L=10), "finite"),
        (lambda: Explicit(sizes=[0.1, -0.1]), "negative"),
        (lambda: Explicit(sizes=[0.0]), "positive"),
        (lambda: Explicit(sizes=[]), "non-empty"),
        (lambda: Explicit(sizes=[math.nan]), "finite"),
        (lambda: WSD.from_horizon(-5, 0.1), "R must be positive"),
        (lambda: Explicit.from_horizon(5, 0.1), "explicit"),
        (lambda: Constant(gamma=0.1, L=10).residual(9.9), "at most 0.95"),
        (lambda: Constant(gamma=0.1, L=10).residual(math.nan), "finite"),
        (lambda: Constant(gamma=0.1, L=10).safeguarded(0.0), "positive"),
    ],
)
def test_bad_schedules(make, word):
    with pytest.raises(InputError, match=word):
        make()


def test_a_horizon_of_ones_own_is_reached_by_the_fewest_steps():
    """Before, ⌈R/γ⌉ steps were taken whatever `horizon` said."""

    @dataclass(frozen=True, kw_only=True)
    class Halves(Schedule):
        gamma: float
        L: int
        late: float = 0.25
        name = "halves"

        def at(self, t):
            return np.where(np.asarray(t) <= self.L // 2, 1.0, self.late) * self.gamma

        @property
        def total(self):
            return float(self.steps().sum())

        @property
        def horizon(self):
            return self.total

        def runs(self):
            return None

        def log_psi(self, s):
            return np.log1p(-np.multiply.outer(self.steps(), s)).sum(axis=0)

    for made in (Halves.from_horizon(12, 0.1), Halves(gamma=0.1, L=9, late=0.1).with_horizon(12)):
        assert made.with_steps(made.L - 1).horizon < 12 <= made.horizon * (1 + 1e-12)
    with pytest.raises(InputError, match="schedule must not be an explicit one here"):
        Explicit(sizes=np.full(9, 0.1)).with_steps(5)


@pytest.mark.parametrize("s", [0.0, 0.4, -0.3, -0.5 + 0.3j, np.array([0.0, 1e-300, 2.0])])
def test_a_part_of_a_schedule_is_a_filter_like_the_whole(s):
    whole, part = Constant(gamma=0.1, L=40), Part(Pieces(np.array([40.0]), np.array([0.1])))
    for name in ("residual", "response"):
        assert getattr(part, name)(s) == pytest.approx(getattr(whole, name)(s), rel=1e-12)
    assert part.scaled(0.05).total == pytest.approx(2.0)
    assert part.steps().tolist() == [0.1] * 40


def test_more_steps_than_a_float_counts_can_be_cut():
    """Σ of the runs' counts rounded to less than L, and the last step had no run."""
    long = BlockDecay(gamma=0.1, L=637324725634132884)
    parts = stretches(long, [long.L // 2, long.L - long.L // 2], 1.05, 1.0)
    assert sum(part.counts.sum() for part in parts) == pytest.approx(long.L)


def test_formulas_of_ones_own_are_compared_with_the_steps():
    """A wrong `total` ended in a traceback, a wrong `log_psi` in a wrong risk on every method."""

    @dataclass(frozen=True, kw_only=True)
    class Falling(Schedule):
        gamma: float
        L: int
        name: ClassVar[str] = "falling"
        share: ClassVar[float] = 0.5
        log: ClassVar[float] = 1.0

        def at(self, t):
            return self.gamma * (self.L - np.asarray(t) + 1) / self.L

        @property
        def total(self):
            return self.gamma * self.share * (self.L + 1)

        def log_psi(self, s):
            return self.log * super().log_psi(s)

    def ask(**wrong):
        kind = type("Wrong", (Falling,), {"__module__": __name__, **wrong})
        return as_schedule("schedule", kind(gamma=0.1, L=50))

    assert ask().total == pytest.approx(2.55)
    with pytest.raises(
        InputError, match=r"schedule must have the sum of its steps, 2\.55, as `total`, got 5"
    ):
        ask(share=1.0)
    with pytest.raises(InputError, match=r"schedule must have the sum of log\(1 - step \* s\)"):
        ask(log=1.1)
