"""The theorem at one point: exponents, crossovers, conditions, and values without constants.

Everything here is asymptotic order. It shares no code with the other methods, so that agreement with them
is evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from seqlaw.model.assumptions import teacher_flags
from seqlaw.model.checks import InputError
from seqlaw.model.flags import Flag, flag
from seqlaw.model.momentum import Momentum
from seqlaw.model.optimizer import plain_only
from seqlaw.model.schedule import SCHEDULES
from seqlaw.model.setting import Setting, as_setting
from seqlaw.model.teacher import Teacher, as_power_law


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One condition of the theorem: value (relation) needed.

    Where the theorem leaves a constant unnamed, the ratio value/needed is given at constant one, without
    and with the scales c_ξ and c_0, and `holds` is None.
    """

    kind: str
    name: str
    """Its kind, and what it asks."""
    relation: str
    value: float
    needed: float
    ratio: float
    holds: bool | None
    ratio_scaled: float | None = None


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Theorem 1 at a point."""

    regime: str
    beta_alpha: float
    beta_theta: float
    exponents: dict[str, dict[str, float]]
    """Powers of the named size, of the branch that holds at the point."""
    crossovers: dict[str, float]
    conditions: tuple[Condition, ...]
    values: dict[str, float]
    """𝒜, ℬ and 𝒱 without constants (𝒱 with C_ρ)."""
    guides: dict[str, float]
    """The curves that the paper draws, with the scales c_ξ and c_0."""
    remainder: dict[str, float]
    """d_eff, ε_M and ω_0 at unnamed constants c = 1, and the covariance event's bound at C = 1, t = M."""
    flags: tuple[Flag, ...]


def cutoff(alpha: float, theta: float, R: float, P: float) -> float:
    """κ_{R,P} = max(R^{1/α}, (R/P)^{1/θ}) for θ < α, R^{1/α} otherwise (the mixed-spectrum lemma)."""
    own = _power(R, 1 / alpha)
    return max(own, _power(R / P, 1 / theta)) if theta < alpha else own


def approx_guide(teacher: Teacher, M: float, P: float) -> float:
    """c_ξ M^{1-β_α} + c_0 P^-1 M^{1-β_θ}: the paper's two-scale guide, up to one factor."""
    innovation, initial = _power(M, 1 - teacher.beta_alpha), _power(M, 1 - teacher.beta_theta) / P
    return teacher.c_xi * innovation + teacher.c_0 * initial


def guide_cutoff(teacher: Teacher, R: float, P: float) -> float:
    """κ with R (c_ξ κ^-α + c_0 P^-1 κ^-θ) = 1."""
    from scipy.optimize import brentq  # slow to import

    def excess(u: float) -> float:
        innovation = math.log(teacher.c_xi) - teacher.alpha * u
        initial = math.log(teacher.c_0 / P) - teacher.theta * u
        larger = max(innovation, initial)
        return math.log(R) + larger + math.log1p(math.exp(min(innovation, initial) - larger))

    low, high = -1.0, 1.0
    while excess(low) < 0:
        low *= 2
    while excess(high) > 0:
        high *= 2
    return _power(math.e, brentq(excess, low, high, xtol=1e-14))


def bias_guide(teacher: Teacher, R: float, P: float) -> float:
    """c_ξ κ^{1-β_α} + c_0 P^-1 κ^{1-β_θ} at `guide_cutoff`, up to one factor."""
    return approx_guide(teacher, guide_cutoff(teacher, R, P), P)


def rates(setting: Setting) -> Rates:
    """The theorem's statement at a setting; regimes outside it are computed as Regime II and flagged."""
    teacher = as_power_law("teacher", as_setting("setting", setting).teacher)
    if (refusal := plain_only(setting.optimizer)) is not None:
        raise refusal
    alpha, theta = teacher.alpha, teacher.theta
    for name, exponent in (("alpha", alpha), ("theta", theta)):
        if exponent < 1e-3:
            raise InputError(name, "must be at least 0.001 for the theorem's exponents", exponent)
    schedule, q = setting.schedule, setting.schedule.power
    if not isinstance(schedule.plain, (*SCHEDULES.values(), Momentum)):
        rule = f"must be one of {', '.join(SCHEDULES)} here: the theorem needs sum(gamma_t) of the order of R"
        raise InputError("schedule", rule, schedule.name)
    if schedule.weight_decay:
        raise InputError("weight_decay", "must be left out here: the rates have none", schedule.weight_decay)
    # Preconditioned descent, ψ(s^q), is plain descent to the horizon R^{1/q} as far as orders go.
    M, N, P, R = float(setting.M), float(setting.N), float(setting.one_length), schedule.horizon ** (1 / q)
    heavy = theta < alpha  # the initialization has the heavier tail: Regime II or outside
    kappa = cutoff(alpha, theta, R, P)
    crossovers = {"kappa": kappa}
    if heavy:
        gap = alpha - theta
        crossovers |= {
            "P_M": _power(M, gap),
            "P_R": _power(R, gap / alpha),
            "m_P": _power(P, 1 / gap),
            "R_P": _power(P, q * alpha / gap),
        }
    short_M, short_R = heavy and P < crossovers.get("P_M", 0), heavy and P < crossovers.get("P_R", 0)
    one_a, one_t = 1 - teacher.beta_alpha, 1 - teacher.beta_theta
    saturated = M < kappa
    tail = theta if short_R else alpha
    # Where 2q·tail < 1 the directions beyond κ, R s^q learned of each, outweigh those within.
    spread = not saturated and 2 * q * tail < 1
    exponents = {
        "approx": {"M": one_t, "P": -1.0} if short_M else {"M": one_a, "P": 0.0},
        "bias": {"R": one_t / theta / q, "P": -1 - one_t / theta}
        if short_R
        else {"R": one_a / alpha / q, "P": 0.0},
        "variance": {"N": -1.0, "P": -1.0, "R": 0.0, "M": 1.0}
        if saturated
        else {"N": -1.0, "P": -1.0 - (2 * q if short_R else 0.0), "R": 2.0, "M": 1 - 2 * q * tail}
        if spread
        else {"N": -1.0, "P": -1 - 1 / theta, "R": 1 / theta / q}
        if short_R
        else {"N": -1.0, "P": -1.0, "R": 1 / alpha / q},
    }
    shown = _power(R / P if short_R else R, 2 * q) * _power(M, 1 - 2 * q * tail)
    dimension = min(M, shown if spread else kappa)
    values = {
        "approx": _power(M, one_t) / P if short_M else _power(M, one_a),
        "bias": _power(R / P, one_t / theta) / P if short_R else _power(R, one_a / alpha),
        "variance": teacher.C_rho / (N * P) * dimension,
    }
    omega = min(1.0, _power(M, alpha - theta) / P) if heavy else 1 / P
    tokens = teacher.C_rho * 2 * M / (N * P)
    event = math.sqrt(tokens) + tokens + omega * (math.sqrt(2 * M / N) + 2 * M / N)
    return Rates(
        regime=teacher.regime,
        beta_alpha=teacher.beta_alpha,
        beta_theta=teacher.beta_theta,
        exponents=exponents,
        crossovers=crossovers,
        conditions=_conditions(setting, teacher, heavy),
        values=values,
        guides={
            "approx": approx_guide(teacher, M, P),
            "bias": bias_guide(teacher, R, P),
            "variance": teacher.C_rho / (N * P) * min(M, guide_cutoff(teacher, R, P)),
            "kappa": guide_cutoff(teacher, R, P),
        },
        remainder={
            "d_eff": dimension,
            "epsilon_M": (M + R**2) * math.exp(-min(M / 2, 700.0)),
            "omega_0": omega,
            "covariance_event": event,
        },
        flags=(*teacher_flags(teacher), *([flag("length")] if P < 2 else [])),
    )


def _power(base: float, exponent: float) -> float:
    """base^exponent, infinite where it overflows (a crossover that no size reaches)."""
    return math.inf if exponent * math.log(base) > 700 else float(base**exponent)


def _conditions(setting: Setting, teacher: Teacher, heavy: bool) -> tuple[Condition, ...]:
    alpha, theta, r = teacher.alpha, teacher.theta, teacher.r
    M, N, P = float(setting.M), float(setting.N), float(setting.one_length)
    schedule, q = setting.schedule, setting.schedule.power
    R, gamma, d = schedule.horizon ** (1 / q), schedule.gamma, float(setting.d or 0)
    innovation, initial = _power(M, -alpha), _power(M, -theta) / P
    limit = 1 / (innovation + initial) if innovation + initial > 0 else math.inf
    load = R * (teacher.c_xi * innovation + teacher.c_0 * initial)  # R over the limit, with the scales
    top = float(
        teacher.at([1.0]).averaged(setting.one_length)[0]
    )  # h_1, the order of ‖G‖: R and γ come with it
    learned = R * top * M  # RM with the scales
    name = "R" if q == 1 else "R^(1/q)"
    samples = teacher.C_rho * R * M
    lines: list[tuple[str, str, str, float, float, bool | None, float | None]] = [
        ("stability", "rho < 1", "<", teacher.rho, 1.0, teacher.rho < 1, None),
        ("source", "2r > 0", ">", 2 * r, 0.0, r > 0, None),
        ("source", "2r < 1", "<", 2 * r, 1.0, 2 * r < 1, None),
        ("innovations", "alpha > 1", ">", alpha, 1.0, alpha > 1, None),
        ("initialization", "theta > 1", ">", theta, 1.0, theta > 1, None),
        ("smoothing", "theta >= alpha - 2r", ">=", theta, alpha - 2 * r, teacher.regime != "outside", None),
        ("length", "P >= 2", ">=", P, 2.0, P >= 2, None),
        ("unsaturated", f"{name} <= c/(M^-alpha + M^-theta/P)", "<=", R, limit, None, load),
        ("horizon", f"{name} >~ 1", ">=", R, 1.0, None, R * top),
        ("samples", f"NP >~ C_rho {name} M", ">=", N * P, samples, None, N * P / (teacher.C_rho * learned)),
        *([("trajectories", f"N >~ {name} M", ">=", N, R * M, None, N / learned)] if heavy else []),
        (
            "step size",
            f"gamma <= 1/(4||G||{'' if q == 1 else '^q'})",
            "<=",
            gamma,
            0.25,
            None,
            gamma * 4 * top**q,
        ),
        ("ambient", "d >= C_amb M", ">=", d, M, None, None),
    ]
    return tuple(
        Condition(
            kind=kind,
            name=f"{kind}: {words}",
            relation=relation,
            value=value,
            needed=needed,
            ratio=value / needed if needed > 0 else math.inf,
            holds=holds,
            ratio_scaled=scaled,
        )
        for kind, words, relation, value, needed, holds, scaled in lines
    )
