"""Three power laws with intervals, and the regime: windows, bootstrap over sequences, the projection's error.

One draw resamples the groups of sequences, picks a window, takes off the bias of a random projection (where
the features look like one) and adds that projection's scatter and any scatter that is left unexplained.

The paper's student sees u = S x with a Gaussian S of D rows. Whoever measures u finds exponents that are off
by a bias (the spectrum bends near j = D) and by a scatter (each |S_j|² is off by √(2/D)) that no resampling
of the sequences shows. Both are read off sketches of the fitted law (`project`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import eigh

from seqlaw.model.checks import Array
from seqlaw.model.flags import Flag
from seqlaw.model.randomness import generator
from seqlaw.model.teacher import Teacher
from seqlaw.sequences.spectra import LEAST_POINTS, Alignment, Spectra

LAWS = {"innovation": ("alpha", "c_xi"), "initial": ("theta", "c_0"), "transition": ("r", "rho")}
"""Spectrum → the names of its exponent and its scale."""
LEVEL = 0.9
"""Of every interval."""
DRAWS = 1000
_CLEAR = 6.0  # standard errors by which a projection must be visible before its absence means anything
ASYMMETRY = 0.1
"""Largest antisymmetric share of the transition that still counts as noise of a symmetric one."""
_SPREAD = 4.0  # off-diagonal transition over that of a random projection
_CORRECTION = 0.25  # relative uncertainty of the finite-sample correction, which is first order
LEAST_GROUPS = 4
"""Groups of sequences below which a bootstrap says nothing."""
LEAST_PROBABILITY = 0.9
"""Of the regime."""
SKETCHES = 24
_HEAD = 512  # modes drawn one by one; the tail acts as its trace over D times the identity
_AMBIENT = 8  # latent modes a feature
Window = tuple[int, int]
"""First and last index j, from 1, both included."""


def windows(top: int) -> list[Window]:
    """The window of the fit, then those that show how much the choice matters.

    The first index is left out by default (in real data it is often a law of its own).
    """
    candidates = [(2, top), (1, top), (3, top), (4, top), (2, (3 * top) // 4), (1, top // 2), (2, top // 2)]
    fitting = [w for w in candidates if w[1] - w[0] + 1 >= LEAST_POINTS]
    if not fitting and top >= LEAST_POINTS:
        fitting = [(1, top)]
    return list(dict.fromkeys(fitting))


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """log y = intercept - exponent · log j over a window, for each row of a table of spectra."""

    exponent: Array
    intercept: Array
    scatter: Array
    """Residual variance of log y, with two degrees of freedom taken off."""
    r2: Array
    leverage: float
    """Σ (log j - mean)²: a scatter s² moves the exponent by s²/leverage."""


def fit_line(logs: Array, window: Window) -> Line:
    """Least squares in log–log; `logs` is (…, ≥ last) with index j = 1 first."""
    first, last = window
    x = np.log(np.arange(first, last + 1))
    y = np.asarray(logs)[..., first - 1 : last]
    centre = x - x.mean()
    leverage = float(centre @ centre)
    slope = y @ centre / leverage
    level = y.mean(axis=-1)
    rest = y - level[..., None] - slope[..., None] * centre
    square = (rest**2).sum(axis=-1)
    spread = ((y - level[..., None]) ** 2).sum(axis=-1)
    return Line(
        exponent=-slope,
        intercept=level - slope * x.mean(),
        scatter=square / max(1, x.size - 2),
        r2=1 - square / np.maximum(spread, np.finfo(float).tiny),
        leverage=leverage,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class PowerLaw:
    """One fitted spectrum."""

    exponent: float
    scale: float
    window: Window
    r2: float
    fitted: tuple[float, float]
    """Exponent and scale of the line through the eigenvalues; `exponent` and `scale` have a projection's bias
    taken off."""
    band: tuple[float, float]
    """Least and largest exponent over the windows tried, each with its own bias taken off."""
    exponents: Array
    """Draws; empty when there are too few sequences to resample."""
    scales: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """What the three spectra gave; a spectrum with too few usable eigenvalues is missing."""

    laws: dict[str, PowerLaw]
    seen: str
    """ "direct": the features are the latent directions; "projected": they look like a random projection of
    more of them; "unknown": the data cannot tell, and both are allowed for; "neither": transition and
    covariance share directions less than either has it, so no bias is taken off."""


def fit(spectra: Spectra, *, D: int, P: int, seed: int, dynamics: bool) -> Fit:
    """Fit all spectra, deciding first whether the features are a projection."""
    names = [name for name in LAWS if dynamics or name != "transition"]
    first = _lines(spectra, names, D // 4)
    teacher = _teacher(first)
    alignment = spectra.alignment
    simulated = project(teacher, D, P, block=alignment.block, seed=seed)
    expected = simulated.off_square / alignment.noise if set(first) == set(LAWS) else None
    clear = expected is not None and expected > _CLEAR * alignment.excess_error
    if expected is not None and clear and alignment.excess < expected / 2:
        lines = _lines(spectra, names, D // 2)
        return Fit(laws=_laws(spectra, lines, None, 0.0, seed), seen="direct")
    if not _commutes(alignment, expected):
        laws = _laws(spectra, first, (simulated, teacher), 0.0, seed)
        return Fit(laws=laws, seen="neither")
    # The bias is read at the fitted law, then once more at the corrected one.
    biases = {
        name: _errors(simulated, teacher, name, allowed[0])[0].mean(axis=0)
        for name, (allowed, _) in first.items()
    }
    teacher = _teacher(first, biases)
    simulated = project(teacher, D, P, block=alignment.block, seed=seed)
    laws = _laws(spectra, first, (simulated, teacher), 1.0 if clear else 0.5, seed)
    return Fit(laws=laws, seen="projected" if clear else "unknown")


def _commutes(alignment: Alignment, expected: float | None) -> bool:
    """Whether transition and covariance share directions at least as well as through a random projection."""
    beyond = expected is not None and alignment.excess > _SPREAD * expected + 1
    return alignment.asymmetry <= ASYMMETRY and not beyond


def _lines(spectra: Spectra, names: list[str], top: int) -> dict[str, tuple[list[Window], Line]]:
    """The windows of each spectrum, and the fit in the first of them."""
    out = {}
    for name in names:
        spectrum = spectra.named(name)
        allowed = windows(min(spectrum.trusted, max(top, LEAST_POINTS + 1), spectra.moving[name].centre.size))
        if allowed:
            logs = np.log(spectrum.values[: allowed[0][1]])
            out[name] = (allowed, fit_line(logs, allowed[0]))
    return out


def _errors(simulated: Projected, teacher: Teacher, name: str, window: Window) -> tuple[Array, Line]:
    """The errors of exponent and log scale for each sketch (sketches × 2), and the lines that give them."""
    exponent, scale = LAWS[name]
    truth = getattr(teacher, exponent), math.log(getattr(teacher, scale))
    seen = fit_line(simulated.logs[name], window)
    return np.stack([seen.exponent, seen.intercept], axis=1) - truth, seen


def _teacher(lines: dict[str, tuple[list[Window], Line]], biases: dict[str, Array] | None = None) -> Teacher:
    """The fitted law as a Teacher, pushed back where a fit leaves what a teacher may be.

    A law that could not be fitted gets a middling stand-in: the others still need their projection error.
    """
    numbers = {"alpha": 1.5, "theta": 1.5, "r": 0.25, "rho": 0.5, "c_xi": 1.0, "c_0": 1.0}
    for name, (_, line) in lines.items():
        off = np.zeros(2) if biases is None else biases[name]
        exponent, scale = LAWS[name]
        numbers[exponent] = max(0.0, float(line.exponent - off[0]))
        numbers[scale] = float(np.exp(np.clip(line.intercept - off[1], -600, 600)))
    numbers["rho"] = min(numbers["rho"], 0.999)
    return Teacher(**numbers)


def _laws(
    spectra: Spectra,
    lines: dict[str, tuple[list[Window], Line]],
    projection: tuple[Projected, Teacher] | None,
    share: float,
    seed: int,
) -> dict[str, PowerLaw]:
    """`share` is the weight of the projection's bias: 1 if it is certain, ½ if unknown, else 0."""
    rng = generator(seed, "measure", "draws")
    groups = len(next(iter(spectra.moving.values())).counts)
    weights = rng.multinomial(groups, np.full(groups, 1 / groups), size=DRAWS).astype(np.float64)
    pick = rng.random(DRAWS)
    sketch = rng.random(DRAWS)
    biased = rng.random(DRAWS) < share
    laws = {}
    for name, (allowed, line) in lines.items():
        spectrum, moving = spectra.named(name), spectra.moving[name]
        J = max(last for _, last in allowed)
        base = np.log(spectrum.values[:J])
        middle = moving.resampled(np.ones(groups))[:J]
        moved = base + np.log(np.maximum(moving.resampled(weights)[:, :J] / middle, 1e-6))
        correction = base - np.log(spectrum.raw[:J])
        moved += (_CORRECTION * rng.standard_normal(DRAWS))[:, None] * correction
        fits = [line, *(fit_line(base, window) for window in allowed[1:])]
        biases = np.zeros((len(allowed), 2))
        choice = (pick * len(allowed)).astype(int)
        draws = np.empty((DRAWS, 2))
        for k, window in enumerate(allowed):
            mine = choice == k
            drawn = fit_line(moved[mine], window)
            draws[mine] = np.stack([drawn.exponent, drawn.intercept], axis=1)
        explained = float(moved.var(axis=0)[allowed[0][0] - 1 : allowed[0][1]].mean()) if groups > 1 else 0.0
        if projection is not None:
            for k, window in enumerate(allowed):
                mine = choice == k
                errors, seen = _errors(*projection, name, window)
                mean = errors.mean(axis=0)
                rows = (sketch[mine] * len(errors)).astype(int)
                draws[mine] -= (errors - mean)[rows] + mean * biased[mine, None]
                biases[k] = mean * share
                if k == 0:
                    explained += float(seen.scatter.mean())
        left = max(0.0, float(line.scatter) - explained)
        x = np.log(np.arange(allowed[0][0], allowed[0][1] + 1))
        tilt = rng.standard_normal(DRAWS) * np.sqrt(left / line.leverage)
        level = rng.standard_normal(DRAWS) * np.sqrt(left / x.size)
        draws += np.stack([tilt, level + tilt * x.mean()], axis=1)
        enough = groups >= LEAST_GROUPS
        exponents = [float(each.exponent - bias[0]) for each, bias in zip(fits, biases, strict=True)]
        laws[name] = PowerLaw(
            exponent=exponents[0],
            scale=float(np.exp(line.intercept - biases[0, 1])),
            window=allowed[0],
            r2=float(line.r2),
            fitted=(float(line.exponent), float(np.exp(line.intercept))),
            band=(min(exponents), max(exponents)),
            exponents=draws[:, 0] if enough else np.empty(0),
            scales=np.exp(draws[:, 1]) if enough else np.empty(0),
        )
    return laws


# --- through a random projection ---------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Projected:
    """Logarithms of the leading eigenvalues seen through each sketch (sketches × J), by spectrum."""

    logs: dict[str, Array]
    off_square: float
    """Mean squared off-diagonal entry of T on the leading block of principal directions."""


def project(
    teacher: Teacher, D: int, P: int, *, block: int, seed: int, sketches: int = SKETCHES
) -> Projected:
    """The spectra of the teacher's population problem seen through random sketches of width D."""
    d = _AMBIENT * D
    head = min(d, max(_HEAD, 2 * block))
    modes = teacher.modes(d)
    a, xi, start, h = modes.a, modes.sigma_xi, modes.sigma_0, modes.averaged(P)
    diagonals = {"xi": xi, "start": start, "G": h, "C": a * h, "moved": a * a * h}
    tails = {name: float(x[head:].sum()) / D for name, x in diagonals.items()}
    follow = min(D, head, 256)
    rows: dict[str, list[Array]] = {"innovation": [], "transition": [], "initial": []}
    squares = []
    for index in range(sketches):
        R = _root(generator(seed, "projection", D, index), D, head)
        seen = {name: (R * x[:head]) @ R.T + tails[name] * np.eye(len(R)) for name, x in diagonals.items()}
        g, U = eigh(seen["G"], driver="evd", check_finite=False)
        W = (U / np.sqrt(np.maximum(g, 1e-14 * g[-1])))[:, ::-1]
        T = W.T @ seen["C"] @ W
        half = seen["C"] @ W
        residual = seen["xi"] + seen["moved"] - half @ half.T
        for name, matrix in (("innovation", residual), ("transition", T), ("initial", seen["start"])):
            values = eigh(matrix, eigvals_only=True, driver="evr", check_finite=False)[::-1]
            rows[name].append(np.log(np.maximum(values[:follow], 1e-300)))
        corner = T[:block, :block]
        squares.append((np.sum(corner**2) - np.sum(np.diagonal(corner) ** 2)) / (block * max(1, block - 1)))
    return Projected(logs={name: np.stack(x) for name, x in rows.items()}, off_square=float(np.mean(squares)))


def _root(rng: np.random.Generator, D: int, head: int) -> Array:
    """S on its first modes, up to a rotation of the features: D × head, or its triangular factor."""
    if head >= D:
        return np.asarray(rng.standard_normal((D, head)) / np.sqrt(D))
    upper = np.triu(rng.standard_normal((head, head)), 1)
    upper[np.diag_indices(head)] = np.sqrt(rng.chisquare(D - np.arange(head)))
    return np.asarray(upper / np.sqrt(D))


# --- estimates ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number and its 90 % interval; None where the data do not give it."""

    value: float | None
    low: float | None
    high: float | None


def estimates(fitted: Fit) -> dict[str, Estimate]:
    """The six numbers of a teacher, by name."""
    out = {}
    for name, (exponent, scale) in LAWS.items():
        law = fitted.laws.get(name)
        if law is None:
            out[exponent] = out[scale] = Estimate(value=None, low=None, high=None)
        else:
            out[exponent] = _estimate(law.exponent, law.exponents)
            out[scale] = _estimate(law.scale, law.scales)
    return out


def _estimate(value: float, draws: Array) -> Estimate:
    if draws.size == 0:
        return Estimate(value=value, low=None, high=None)
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return Estimate(value=value, low=min(low, value), high=max(high, value))


@dataclass(frozen=True, kw_only=True)
class Regime:
    """ "I", "II", "outside" or "unknown", and the share of the bootstrap draws that fall there.

    Name and probabilities compare exponents. Only where `applies` is True do they speak of the theorem.
    """

    name: str
    probability: float | None
    probabilities: Mapping[str, float] = field(default_factory=dict)
    """Of "I", "II" and "outside"; empty where nothing could be drawn."""
    applies: bool = False
    """Whether there is a regime to name and no assumption of the theorem fails."""
    fails: tuple[Flag, ...] = ()
    """The flags of the assumptions that fail."""

    @property
    def undecided(self) -> bool:
        """Whether the draws do not settle on one regime."""
        return self.probability is not None and self.probability < LEAST_PROBABILITY


def regime(fitted: Fit) -> Regime:
    """The regime of most draws of (α, θ, r)."""
    if set(fitted.laws) != set(LAWS) or fitted.laws["innovation"].exponents.size == 0:
        return Regime(name="unknown", probability=None)
    alpha, theta, r = (fitted.laws[name].exponents for name in ("innovation", "initial", "transition"))
    first, outside = theta >= alpha, theta < alpha - 2 * np.maximum(r, 0.0)
    inside = float(first.mean()), float(outside.mean())
    shares = {"I": inside[0], "II": 1 - math.fsum(inside), "outside": inside[1]}
    name = max(shares, key=lambda key: shares[key])
    return Regime(name=name, probability=shares[name], probabilities=shares)
