"""`measure`: from sequences to exponents with intervals, a regime with its probability, checks and flags."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seqlaw.model.checks import Array, whole
from seqlaw.model.flags import Flag
from seqlaw.model.signature import checked
from seqlaw.model.teacher import NUMBERS, Modes, Teacher
from seqlaw.model.threads import one_thread
from seqlaw.model.uncertain import Uncertain
from seqlaw.sequences.exponents import ASYMMETRY, LAWS, Estimate, Fit, Regime, estimates, fit, regime
from seqlaw.sequences.findings import (
    LEAST_ORDER,
    LEAST_R,
    NOISE_EDGE,
    ORDER_Z,
    TOKENS,
    UNIT_ROOT,
    failing,
    findings,
    has_dynamics,
    is_reliable,
    signal,
)
from seqlaw.sequences.moments import Tally, batches, tally
from seqlaw.sequences.opening import file_names
from seqlaw.sequences.reading import recordings
from seqlaw.sequences.spectra import Spectra, spectra
from seqlaw.sequences.tables import Columns

_LARGEST_TRANSITION = 0.999
_POSSIBLE = {
    **dict.fromkeys(("alpha", "theta", "r"), (0.0, 20.0)),
    "rho": (1 - _LARGEST_TRANSITION, _LARGEST_TRANSITION),
}
"""Where an end of an interval makes a stable teacher."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One diagnostic: its figure, and whether it is as the theory needs it (None: nothing is needed)."""

    name: str
    value: float | None
    holds: bool | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """What the sequences say; `reliable` is False when a flag forbids to take the numbers at face value."""

    N: int
    P: tuple[int, int]
    """Shortest and longest sequence, in states."""
    D: int
    alpha: Estimate
    theta: Estimate
    r: Estimate
    rho: Estimate
    c_xi: Estimate
    c_0: Estimate
    regime: Regime
    window: Mapping[str, tuple[int, int]]
    """First and last eigenvalue of each fit, by exponent."""
    r2: Mapping[str, float]
    band: Mapping[str, tuple[float, float]]
    """Least and largest exponent over the windows tried, each with the projection's bias taken off as `value`
    has it, so that `value` lies between them."""
    fitted: Mapping[str, tuple[float, float]]
    """Exponent and scale of the line through the measured eigenvalues, by exponent: as they are before a
    projection's bias is taken off."""
    seen: str
    """Whether the features look like a random projection of the state: "direct", "projected", "unknown" or,
    where covariance and transition share too few directions for both, "neither"."""
    checks: tuple[Check, ...]
    flags: tuple[Flag, ...]
    """What `findings` says of each code: whether it is harmless, fails the theorem or voids a prediction."""
    reliable: bool
    spectra: Spectra
    mean: Array
    """The mean state, which was taken away (zero without centring)."""
    centre: bool
    seed: int
    file: str | list[str] | None
    """Where the sequences came from, if that was a file or several."""
    columns: Columns
    """What the columns of a table were said to be."""

    @property
    def teacher(self) -> Teacher | None:
        """The fitted power law; None unless all six numbers were measured and define a stable teacher."""
        numbers = {name: getattr(self, name).value for pair in LAWS.values() for name in pair}
        if any(value is None for value in numbers.values()) or not 0 < numbers["rho"] < 1:
            return None
        return Teacher(**{name: max(value, 0.0) for name, value in numbers.items()})

    @property
    def law(self) -> Uncertain | None:
        """The fitted power law with the 90 % intervals, cut to what makes a stable teacher; None without one.

        As if the six numbers were independent. An exponent and its scale come from one line and are not:
        these intervals allow for more than the data do.
        """
        teacher, intervals = self.teacher, {}
        for name in NUMBERS if teacher else ():
            least, most = _POSSIBLE.get(name, (0.0, math.inf))
            estimate, value = getattr(self, name), getattr(teacher, name)
            if estimate.low is not None and estimate.high is not None:
                low, high = max(estimate.low, min(least, value)), min(estimate.high, max(most, value))
                if low < high:
                    intervals[name] = low, high
        return Uncertain(teacher=teacher, intervals=intervals) if teacher and intervals else None

    @property
    def modes(self) -> Modes:
        """The measured spectra as Modes, so that every method and every plan runs on them.

        Assumption: mode j has the j-th largest of each of the three spectra, as in the paper, where all fall
        together; the check `order` says how far the data agree. Values are corrected for finite samples, and
        continued by the fitted law (or left out of the dynamics) beyond the last eigenvalue to be trusted.
        """
        k = self.spectra.rank
        a = (
            np.zeros(k)
            if self.r.value is None
            else np.clip(self._continued("transition", k), -_LARGEST_TRANSITION, _LARGEST_TRANSITION)
        )
        return Modes(a=a, sigma_xi=self._continued("innovation", k), sigma_0=self._continued("initial", k))

    def _continued(self, name: str, k: int) -> Array:
        spectrum = self.spectra.named(name)
        values = np.zeros(k)
        given = min(k, spectrum.values.size)
        values[:given] = np.maximum(spectrum.values[:given], 0.0)
        exponent, last = getattr(self, LAWS[name][0]).value, min(spectrum.trusted, k)
        if exponent is not None and 0 < last < k:
            j = np.arange(last + 1, k + 1)
            values[last:] = values[last - 1] * (j / last) ** -max(exponent, 0.0)
        return values


@checked
def measure(
    X: Any,
    *,
    sequence: str | None = None,
    time: str | None = None,
    features: Sequence[str] = (),
    leave_out: Sequence[str] = (),
    centre: bool = True,
    seed: int = 0,
) -> Measurement:
    """The exponents of your sequences with their intervals, the regime, and how far to trust them.

    The data are read once, a few megabytes at a time. Memory holds a few D × D matrices for each of at most
    32 groups of sequences, which the bootstrap resamples. A table is read whole.

    Parameters
    ----------
    X
        An array N × P × D, a list of P_i × D sequences, a DataFrame, a file (.npy, .npz, .zarr, .mat, .jsonl,
        .csv or .parquet), several files, or a folder. Of several files each is a recording if it is S × D.
    sequence, time
        In a table, the column that tells sequences apart, and the one that orders states.
    features, leave_out
        In a table, the columns that are features, or those that are none.
    centre
        Whether to subtract the mean state.
    seed
        The seed of the bootstrap.

    Returns
    -------
    Measurement
        `.alpha`, `.theta` and the other numbers, each with `.value`, `.low` and `.high`; `.regime`,
        `.reliable` and `.flags`. `.advise(tokens=…)` splits tokens, `.save(path)` writes a teacher.

    Examples
    --------
    >>> from seqlaw import PRESETS, measure
    >>> from seqlaw.methods import trajectories
    >>> X = trajectories(PRESETS["regime2"].modes(16), 400, 15, seed=1)
    >>> found = measure(X)
    >>> found.N, found.D
    (400, 16)
    >>> found.alpha.low < found.alpha.value < found.alpha.high
    True
    """
    columns = Columns(sequence=sequence, time=time, features=features, leave_out=leave_out)
    seed = whole("seed", seed, least=0)
    with one_thread():
        held = recordings(X, columns, stream=True)
        moments = tally(batches(held), centre=centre)
        found = spectra(moments)
        dynamics = has_dynamics(moments, found)
        length = max(1, round(moments.n / moments.N))
        fitted = fit(found, D=found.rank, P=length, seed=seed, dynamics=dynamics)
    numbers, drawn = estimates(fitted), regime(fitted)
    flags = (*findings(moments, found, fitted, numbers, drawn, dynamics), *held.flags)
    fails = failing(flags)
    laws = {LAWS[name][0]: law for name, law in fitted.laws.items()}
    return Measurement(
        N=moments.N,
        P=(moments.shortest, moments.longest),
        D=moments.D,
        **numbers,
        regime=replace(drawn, fails=fails, applies=drawn.name in ("I", "II") and not fails),
        window={name: law.window for name, law in laws.items()},
        r2={name: law.r2 for name, law in laws.items()},
        band={name: law.band for name, law in laws.items()},
        fitted={name: law.fitted for name, law in laws.items()},
        seen=fitted.seen,
        checks=tuple(_checks(moments, found, fitted)),
        flags=flags,
        reliable=is_reliable(flags),
        spectra=found,
        mean=moments.mean,
        centre=moments.centred,
        seed=seed,
        file=file_names(X),
        columns=columns,
    )


def _checks(moments: Tally, found: Spectra, fitted: Fit) -> list[Check]:
    """The diagnostics behind the flags; those of the transition only where there is one."""
    a, z, law = found.alignment, found.order_z, fitted.laws.get("transition")
    commutes = {"direct": True, "projected": None, "unknown": None, "neither": False}[fitted.seen]
    table: list[tuple[str, float, bool | None]] = [
        ("time-order", z, None if math.isnan(z) else abs(z) > ORDER_Z),
        ("signal", signal(found), signal(found) > NOISE_EDGE),
        ("explained", found.explained, None),
        ("symmetry", a.asymmetry, a.asymmetry <= ASYMMETRY),
        ("commuting", a.off_diagonal, commutes),
        ("initial-alignment", a.initial, None),
        ("order", a.order, a.order > LEAST_ORDER),
        ("tokens", moments.n / moments.D, moments.n >= TOKENS * moments.D),
    ]
    if law is not None:
        largest = found.largest_transition
        table.append(("stable", largest, largest < UNIT_ROOT))
        table.append(("decay", law.exponent, LEAST_R <= law.exponent < 0.5))
    return [
        Check(name=name, value=None if math.isnan(value) else value, holds=holds)
        for name, value, holds in table
    ]
