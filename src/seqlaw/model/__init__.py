"""The setting and what follows from it exactly: names for builders of methods, momentum and optimizers."""

from seqlaw.model.assumptions import setting_flags, teacher_flags
from seqlaw.model.descent import Moments, Spectrum, descend
from seqlaw.model.flags import Flag, flag
from seqlaw.model.momentum import Momentum
from seqlaw.model.optimizer import Adam, Muon, Optimizer
from seqlaw.model.power_sums import ramp_power_sums, sum_logs
from seqlaw.model.randomness import generator
from seqlaw.model.sketch import Problem, gaussian_sketch, sketched_problem

__all__ = [
    "Adam",
    "Flag",
    "Moments",
    "Momentum",
    "Muon",
    "Optimizer",
    "Problem",
    "Spectrum",
    "descend",
    "flag",
    "gaussian_sketch",
    "generator",
    "ramp_power_sums",
    "setting_flags",
    "sketched_problem",
    "sum_logs",
    "teacher_flags",
]
