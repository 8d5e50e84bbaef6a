"""The public names, each imported from where it lives; `seqlaw` loads them when the first is asked for."""

from seqlaw.answers.advice import Advice, advise
from seqlaw.answers.curve import Curve, curve
from seqlaw.answers.forecast import Forecast, forecast
from seqlaw.answers.ladder import ladder
from seqlaw.answers.ladder_curve import ladder_curve
from seqlaw.answers.ladder_map import ladder_map
from seqlaw.answers.law import Law, fit_law
from seqlaw.answers.measurement import Measurement, measure, save_law, save_teacher
from seqlaw.answers.one_pass import OnePassPlan, plan_one_pass
from seqlaw.answers.plan import Plan, plan
from seqlaw.answers.rates import Rates, rates
from seqlaw.answers.risk import Risk, risk, risks
from seqlaw.answers.spectrum import AveragedSpectrum, averaged_spectrum
from seqlaw.answers.tradeoff import Tradeoff, tradeoff
from seqlaw.answers.uncertain import UncertainPlan
from seqlaw.files import load_teacher, load_uncertain
from seqlaw.fit import PowerFit, fit_power_law
from seqlaw.lab.errors import EngineError, LabError, StoreError
from seqlaw.methods.trajectories import trajectories
from seqlaw.model.checks import InputError, MissingLibrary
from seqlaw.model.lengths import Lengths
from seqlaw.model.schedule import WSD, BlockDecay, Constant, Cosine, Explicit, Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.sketch import SingularProblem
from seqlaw.model.teacher import PRESETS, Modes, Teacher
from seqlaw.model.uncertain import Uncertain
from seqlaw.paper.answer import Reproduction
from seqlaw.paper.reproduce import reproduce
from seqlaw.planning.budget import Budget
from seqlaw.sweeping.run import export, load, sweep

__all__ = [
    "PRESETS",
    "WSD",
    "Advice",
    "AveragedSpectrum",
    "BlockDecay",
    "Budget",
    "Constant",
    "Cosine",
    "Curve",
    "EngineError",
    "Explicit",
    "Forecast",
    "InputError",
    "LabError",
    "Law",
    "Lengths",
    "Measurement",
    "MissingLibrary",
    "Modes",
    "OnePassPlan",
    "Plan",
    "PowerFit",
    "Rates",
    "Reproduction",
    "Risk",
    "Schedule",
    "Setting",
    "SingularProblem",
    "StoreError",
    "Teacher",
    "Tradeoff",
    "Uncertain",
    "UncertainPlan",
    "advise",
    "averaged_spectrum",
    "curve",
    "export",
    "fit_law",
    "fit_power_law",
    "forecast",
    "ladder",
    "ladder_curve",
    "ladder_map",
    "load",
    "load_teacher",
    "load_uncertain",
    "measure",
    "plan",
    "plan_one_pass",
    "rates",
    "reproduce",
    "risk",
    "risks",
    "save_law",
    "save_teacher",
    "sweep",
    "tradeoff",
    "trajectories",
]

MOVED = {
    **dict.fromkeys(
        (
            "Moments", "Problem", "Spectrum", "descend", "gaussian_sketch", "generator", "setting_flags",
            "sketched_problem", "teacher_flags",
        ),
        "seqlaw.model",
    ),
    **dict.fromkeys(
        (
            "along", "covariance_event", "equivalent_risk", "equivalent_risks", "finite_filter_variance",
            "moments_of", "nested_moments", "sample_moments", "sampled_terms", "score", "trajectory_chunks",
        ),
        "seqlaw.methods",
    ),
    "Allocation": "seqlaw.planning.budget",
    "FinitePlan": "seqlaw.planning.search",
    "corollary": "seqlaw.planning.corollary",
    "program": "seqlaw.planning.program",
    "Estimate": "seqlaw.sequences.exponents",
}  # fmt: skip
"""Names of 0.1 that builders of methods and plans need, and where they are now."""
