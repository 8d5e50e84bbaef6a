"""One solve for every horizon against the contours, which solve each schedule anew."""

import math

import numpy as np
import pytest

from seqlaw import PRESETS, WSD, BlockDecay, Constant, Cosine, Setting, Teacher
from seqlaw.methods import accuracy, contours, frozen, rays
from seqlaw.methods.equivalent import equivalent_risks
from seqlaw.methods.spectral_sum import sum_rule
from seqlaw.model.threads import one_thread

TERMS = ("approx", "variance", "reducible")
SAME = ("learned_dimensions", "effective_dimension", "finite_filter_variance", "tokens_per_dimension")


def random_setting(rng):
    """Both regimes, arrays, d = inf, own and other test lengths; schedules of all kinds at many horizons."""
    alpha = rng.uniform(1.15, 3)
    theta = max(1.1, alpha + rng.uniform(-0.4, 1.0))
    teacher = Teacher(
        alpha=alpha,
        theta=theta,
        r=rng.uniform(0.2, 0.45),
        rho=rng.uniform(0.2, 0.9),
        c_xi=10 ** rng.uniform(-1, 0.5),
        c_0=10 ** rng.uniform(-1, 1),
    )
    d = (math.inf, 2048, 300)[rng.integers(3)]
    M = int(np.exp(rng.uniform(np.log(4), np.log(250))))
    if d == 300 and rng.random() < 0.5:
        teacher, d = teacher.modes(300), None
    tested = None if rng.random() < 0.6 else int(10 ** rng.uniform(0.4, 4))
    P = int(10 ** rng.uniform(0.4, 4))
    kinds = (Constant, WSD, Cosine, BlockDecay)
    # From the first steps, which take an ellipse, to far beyond saturation.
    schedules = [
        kinds[k % 4](gamma=10 ** rng.uniform(-2, 0), L=int(10 ** rng.uniform(1, 8))) for k in range(10)
    ]
    return [
        Setting(teacher=teacher, M=M, N=50, P=P, d=d, schedule=schedule, eval_length=tested)
        for schedule in schedules
    ]


def compare(settings, monkeypatch):
    """The worst relative difference of the bias where it is above 1e-4 of F(0), and of the rest."""
    along = equivalent_risks(settings, frozen=True)
    monkeypatch.setattr(frozen, "_MANY", 10**9)
    alone = equivalent_risks(settings, frozen=True)
    monkeypatch.undo()
    worst = 0.0
    for one, two in zip(along, alone, strict=True):
        energy = two.diagnostics["source_energy"]
        assert abs(one.bias - two.bias) <= 1e-9 * energy
        pairs = [(getattr(one, name), getattr(two, name)) for name in TERMS]
        pairs += [(one.diagnostics[name], two.diagnostics[name]) for name in SAME]
        if abs(two.bias) > 1e-4 * energy:
            pairs.append((one.bias, two.bias))
        worst = max([worst, *(abs(a / b - 1) for a, b in pairs if b != 0)])
        small = abs(two.bias) < 2e-10 * energy  # below what a ray resolves
        codes = [
            [flag.code for flag in risk.flags if not (small and flag.code == "bias")] for risk in (one, two)
        ]
        assert codes[0] == codes[1]
    return worst


@pytest.mark.parametrize("seed", range(3))
def test_rays_agree_with_the_contours(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    assert compare(random_setting(rng), monkeypatch) < 1e-5


@pytest.mark.slow
def test_rays_agree_with_the_contours_on_200_settings(monkeypatch):
    rng = np.random.default_rng(100)
    worst = [compare(random_setting(rng), monkeypatch) for _ in range(200)]
    print(f"worst {max(worst):.1e}, median {np.median(worst):.1e}")
    assert max(worst) < 1e-5


def test_a_wrong_weight_is_noticed(monkeypatch):
    """The comparison can fail: one node weighed a thousandth too much shows."""
    right = contours.ray

    def wrong(*args, **named):
        path = right(*args, **named)
        path.omega[0, path.z.size // 3] *= 1.001
        return path

    settings = random_setting(np.random.default_rng(0))
    with monkeypatch.context() as patch:
        patch.setattr(contours, "ray", wrong)
        along = equivalent_risks(settings, frozen=True)
    straight = equivalent_risks(settings, frozen=True)
    assert any(abs(a.variance / b.variance - 1) > 1e-5 for a, b in zip(along, straight, strict=True))


@pytest.mark.parametrize("tested", [None, 64])
@pytest.mark.parametrize("d", [math.inf, 60])
def test_the_surface_of_a_search(tested, d):
    """Short and long schedules, clipped and not, up to M = d: within 1e-3 of the accurate sums.

    The sums of a search are coarse, and at M = d the ray leaves out a little near zero.
    """
    schedules = [WSD(gamma=0.4, L=L) for L in (6, 20, 90, 400, 5000, 10**6)]
    lengths, widths = [2, 5, 300, 10**6], np.array([1.0, 7.0, 60.0])
    teacher = PRESETS["regime2"]
    setting = Setting(teacher=teacher, M=1, N=1, P=2, d=d, schedule=schedules[0])
    with one_thread():
        [fixed], [variance] = rays.surface(
            sum_rule(setting, accuracy.search.sums), np.repeat(widths, 4), lengths * 3, schedules, tested
        )
    risks = equivalent_risks(
        [
            Setting(teacher=teacher, M=int(M), N=1, P=P, d=d, schedule=schedule, eval_length=tested)
            for M in widths
            for P in lengths
            for schedule in schedules
        ],
        frozen=True,
    )
    assert fixed.ravel() == pytest.approx([risk.approx + risk.bias for risk in risks], rel=1e-3)
    assert variance.ravel() == pytest.approx([risk.variance for risk in risks], rel=1e-3)
