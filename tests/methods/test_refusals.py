"""What the numerics refuse: one line that names the field, the rule and the value."""

from dataclasses import replace

import numpy as np
import pytest

from rows_of import sampled_rows
from seqlaw import (
    PRESETS,
    WSD,
    Adam,
    BlockDecay,
    Constant,
    Cosine,
    InputError,
    Lengths,
    Modes,
    Momentum,
    Schedule,
    Setting,
    rates,
    risk,
)
from seqlaw.methods import sample_moments, trajectories
from seqlaw.methods.contours import contour
from seqlaw.methods.exact import SketchesOnly
from seqlaw.methods.method import Draws
from seqlaw.methods.one_pass.tuning import best_step, with_tokens
from seqlaw.model import gaussian_sketch
from seqlaw.model.filters import LISTED
from seqlaw.model.formula import Formula
from seqlaw.model.preconditioned import preconditioned

TEACHER = PRESETS["regime2"]
FULL = Setting(teacher=TEACHER, M=8, N=30, P=4, d=24, schedule=Constant(gamma=0.1, L=50))
ONCE = FULL.but(N=None, batch=4)
FLAT = Modes(a=np.full(24, 0.5), sigma_xi=np.zeros(24), sigma_0=np.zeros(24))
STILL = Modes(a=np.zeros(24), sigma_xi=np.zeros(24), sigma_0=np.ones(24))


class Unlisted(Constant):
    """A user's schedule that does not say its shape."""

    runs = Schedule.runs


REFUSALS = {
    "the theorem without a power": (
        lambda: rates(FULL.but(teacher=replace(PRESETS["regime2"], alpha=0.0, theta=0.0, r=0.0))),
        "alpha must be at least 0.001",
    ),
    "a teacher at rest": (lambda: risk(FULL.but(teacher=FLAT)), "must have a mode that varies"),
    "a large step, tested elsewhere": (
        lambda: risk(ONCE.but(schedule=Constant(gamma=5.0, L=50), safeguard=False, eval_length=30)),
        "at another test length on this method",
    ),
    "more than memory holds, in one pass": (
        lambda: risk(ONCE.but(batch=2**40), method="sampled"),
        "batch times P times M must be at most 2^27",
    ),
    "more than memory holds, in epochs": (
        lambda: risk(ONCE.but(batch=2**30, epochs=2), method="sampled"),
        "N times P times M must be at most 2^27",
    ),
    "steps without end": (
        lambda: risk(ONCE.but(schedule=Constant(gamma=0.1, L=10**11)), method="sampled"),
        "L must be at most",
    ),
    "an optimizer for years": (
        lambda: risk(FULL.but(optimizer=Adam(), schedule=WSD(gamma=0.1, L=10**12)), method="sampled"),
        "hours a run (at most 24)",
    ),
    "an optimizer on a card": (
        lambda: sampled_rows([FULL.but(optimizer=Adam())], device="torch"),
        "must be cpu (or left out) with adam",
    ),
    "a risk without data": (lambda: SketchesOnly().risks([FULL], Draws()), "has no risk without data"),
    "tokens for less than a step": (
        lambda: with_tokens(ONCE.but(schedule=WSD(gamma=0.1, L=50)), 20),
        "tokens must be at least",
    ),
    "a step for phases": (
        lambda: best_step(ONCE.but(P=Lengths((2, 8), (0.5, 0.5), phases=True))),
        "gamma must be a number with phases",
    ),
    "a contour round a cut": (
        lambda: contour([preconditioned(WSD(gamma=0.1, L=50), 0.5, 0.0)], 1.0),
        "which goes round 0 (take a loop)",
    ),
    "a sketch of other states": (
        lambda: sample_moments(TEACHER.modes(24), gaussian_sketch(4, 12), 5, 2),
        "S must",
    ),
    "trajectories beyond memory": (
        lambda: trajectories(TEACHER.modes(24), 10**9, 10**3),
        "(trajectory_chunks takes more)",
    ),
    "trajectories of a teacher": (lambda: trajectories(TEACHER, 4, 2), "modes must be Modes"),
    "a shape unsaid, too long": (lambda: Unlisted(gamma=0.1, L=LISTED + 1).runs(), "does not say its runs"),
    "a complex formula": (lambda: Formula("N**0.5", ("N",))(N=-2.0), "must be real at every size"),
    "a filter with memory in a batch": (
        lambda: ONCE.but(schedule=Momentum(gamma=0.1, L=50, beta=0.5)),
        "momentum must be left out with a batch",
    ),
    "N with a batch": (lambda: ONCE.but(N=30, batch=4), "N must be whole batches of 4"),
    "P left out": (lambda: Setting(teacher=TEACHER, M=8, N=30, d=24, schedule="wsd"), "P must be given"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_one_line(name):
    ask, words = REFUSALS[name]
    with pytest.raises(InputError) as stop:
        ask()
    assert words in str(stop.value)
    assert "\n" not in str(stop.value)


@pytest.mark.parametrize("kind", [WSD, Cosine, BlockDecay])
def test_weight_decay_before_the_safeguard_learns_up_to_its_inverse(kind):
    """γλ > ½: Σ_t γ_t Π(1 - γ_q λ) has passed 1/λ's neighbourhood, which stands for it."""
    assert preconditioned(kind(gamma=8.0, L=50), 0.0, 0.1).total == pytest.approx(10)
