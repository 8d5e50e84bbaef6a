"""The step size of one pass: its safeguard, the limit γ_max, and the flags about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from seqlaw.methods.one_pass.law import require_steady
from seqlaw.methods.one_pass.noise import Directions, under
from seqlaw.model.checks import InputError
from seqlaw.model.flags import Flag, flag
from seqlaw.model.lengths import Length, mean_length
from seqlaw.model.preconditioned import refused
from seqlaw.model.schedule import Schedule
from seqlaw.model.setting import Setting

HAIR = 1.005
DIAGNOSTICS = (
    "additive",
    "multiplicative",
    "gamma_max",
    "gamma",
    "clipped",
    "inflation_low",
    "inflation_high",
)
"""What every method of one pass measures besides the terms."""


class Step(NamedTuple):
    """A schedule after its safeguard, and γ_max, beyond which the mean square diverges."""

    schedule: Schedule
    largest: float
    clipped: bool

    @property
    def diverges(self) -> bool:
        return self.schedule.gamma >= self.largest

    def flags(self) -> list[Flag]:
        gamma, largest = self.schedule.gamma, self.largest
        return step_flags([{"gamma": gamma, "gamma_max": largest, "clipped": self.clipped}])

    def diagnostics(self, nodes: Directions, P: Length) -> dict[str, float]:
        inflation = mean_length(P) * nodes.inflation
        return {
            "gamma_max": self.largest,
            "gamma": self.schedule.gamma,
            "clipped": float(self.clipped),
            "inflation_low": float(inflation.min()),
            "inflation_high": float(inflation.max()),
        }


def step_flags(rows: Sequence[Mapping[str, float]]) -> list[Flag]:
    """The flags about the steps on several sketches, from the one that is nearest to diverging."""
    worst = min(rows, key=lambda row: row["gamma_max"])
    gamma, largest = worst["gamma"], worst["gamma_max"]
    if any(row["clipped"] for row in rows):
        return [flag("one-pass-safeguard", gamma=gamma, gamma_max=largest)]
    if gamma >= largest:
        return [flag("diverges", gamma=gamma, gamma_max=largest)]
    if gamma > largest / 2 * (1 + 1e-9):
        return [flag("mean-not-median", gamma=gamma, gamma_max=largest)]
    return []


def limit(nodes: Directions, batch: float) -> float:
    """min(1/(2‖G‖), γ_max/2): the paper's limit alone does not keep one pass from diverging."""
    return min(1 / (2 * nodes.norm), nodes.largest_step(batch) / 2)


def stepped(setting: Setting, nodes: Sequence[Directions]) -> Step:
    """The schedule of a setting with a batch, cut down to the limit of every stage unless that is not wanted.

    `nodes` are those of each stage, of a student at rest.
    """
    schedule, batches = setting.schedule, [one.sequences for one in setting.stages]
    pairs = [(under(each, schedule)[0], batch) for each, batch in zip(nodes, batches, strict=True)]
    largest = min(each.largest_step(batch) for each, batch in pairs)
    if setting.safeguard:
        most = min(limit(*pair) for pair in pairs)
        # A step that was tuned on coarse nodes may exceed the limit by up to 0.5 %: no warning.
        clipped = schedule.gamma > most * HAIR
        return Step(schedule.scaled(most) if schedule.gamma > most else schedule, largest, clipped)
    require_steady(schedule, max(each.norm for each, _ in pairs))
    return Step(schedule, largest, False)


def no_law(setting: Setting) -> InputError | None:
    """The refusal of a preconditioner with epochs: the population's, where the full batch has the data's."""
    if setting.epochs > 1 and setting.schedule.precondition:
        return refused(setting.schedule, "must be left out with epochs on this method (sampled takes it)")
    return None


def require_full_batch(setting: Setting, nodes: Directions, schedule: Schedule) -> None:
    """Epochs build on the full batch's law, which knows steps up to 1/(2‖G‖)."""
    most = 0.5 / under(nodes, schedule)[0].norm
    if setting.epochs > 1 and schedule.gamma > most * HAIR:
        rule = f"must be at most {most:.3g} = 1/(2||G||) with epochs on this method (sampled takes any)"
        raise InputError("gamma", rule, schedule.gamma)
