"""The public names, each imported from where it lives; `seqlaw` loads them when the first is asked for."""

from seqlaw.answers.advice import Advice, advise
from seqlaw.answers.curve import Curve, curve
from seqlaw.answers.held_out import HeldOut, held_out
from seqlaw.answers.measurement import Measurement, measure, save_teacher
from seqlaw.answers.plan import Plan, plan
from seqlaw.answers.rates import Rates, rates
from seqlaw.answers.risk import Risk, risk, risks
from seqlaw.answers.spectrum import AveragedSpectrum, averaged_spectrum
from seqlaw.answers.tradeoff import Tradeoff, tradeoff
from seqlaw.fit import PowerFit, fit_power_law
from seqlaw.model.assumptions import setting_flags, teacher_flags
from seqlaw.model.checks import InputError
from seqlaw.model.descent import Moments, Spectrum, descend
from seqlaw.model.randomness import generator
from seqlaw.model.schedule import WSD, BlockDecay, Constant, Cosine, Explicit, Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.sketch import (
    Problem,
    SingularProblem,
    gaussian_sketch,
    position_moments,
    sketched_problem,
    sketched_problems,
)
from seqlaw.model.teacher import PRESETS, Modes, Teacher, full_state_loss
from seqlaw.paper.reproduce import reproduce
from seqlaw.planning.budget import Allocation, Budget
from seqlaw.planning.corollary import corollary
from seqlaw.planning.finite import FinitePlan
from seqlaw.planning.program import program
from seqlaw.rungs.ask import along
from seqlaw.rungs.equivalent import equivalent_risk, equivalent_risks
from seqlaw.rungs.exact import exact_risk, exact_risks, exact_rows, finite_filter_variance
from seqlaw.rungs.moments import moments_of, nested_moments, sample_moments
from seqlaw.rungs.sampled import covariance_event, sampled_risk, sampled_risks, sampled_rows, sampled_terms
from seqlaw.rungs.score import score
from seqlaw.rungs.trajectories import trajectories, trajectory_chunks
from seqlaw.sequences.exponents import Estimate
from seqlaw.sweeping.run import export, load, sweep

__all__ = [
    "PRESETS",
    "WSD",
    "Advice",
    "Allocation",
    "AveragedSpectrum",
    "BlockDecay",
    "Budget",
    "Constant",
    "Cosine",
    "Curve",
    "Estimate",
    "Explicit",
    "FinitePlan",
    "HeldOut",
    "InputError",
    "Measurement",
    "Modes",
    "Moments",
    "Plan",
    "PowerFit",
    "Problem",
    "Rates",
    "Risk",
    "Schedule",
    "Setting",
    "SingularProblem",
    "Spectrum",
    "Teacher",
    "Tradeoff",
    "advise",
    "along",
    "averaged_spectrum",
    "corollary",
    "covariance_event",
    "curve",
    "descend",
    "equivalent_risk",
    "equivalent_risks",
    "exact_risk",
    "exact_risks",
    "exact_rows",
    "export",
    "finite_filter_variance",
    "fit_power_law",
    "full_state_loss",
    "gaussian_sketch",
    "generator",
    "held_out",
    "load",
    "measure",
    "moments_of",
    "nested_moments",
    "plan",
    "position_moments",
    "program",
    "rates",
    "reproduce",
    "risk",
    "risks",
    "sample_moments",
    "sampled_risk",
    "sampled_risks",
    "sampled_rows",
    "sampled_terms",
    "save_teacher",
    "score",
    "setting_flags",
    "sketched_problem",
    "sketched_problems",
    "sweep",
    "teacher_flags",
    "tradeoff",
    "trajectories",
    "trajectory_chunks",
]
