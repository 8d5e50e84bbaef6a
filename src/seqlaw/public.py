"""The public names, each imported from where it lives; `seqlaw` loads them when the first is asked for."""

from seqlaw.answers.curve import Curve, curve
from seqlaw.answers.forecast import Forecast, forecast
from seqlaw.answers.ladder import Ladder, ladder
from seqlaw.answers.law import Law, fit_law
from seqlaw.answers.measurement import Measurement, measure
from seqlaw.answers.plan import Plan, plan
from seqlaw.answers.rates import Rates, rates
from seqlaw.answers.risk import Risk, risk
from seqlaw.answers.spectrum import AveragedSpectrum, spectrum
from seqlaw.answers.tradeoff import Tradeoff, tradeoff
from seqlaw.files import load_teacher
from seqlaw.lab.table import Table
from seqlaw.model.checks import InputError, SeqlawError
from seqlaw.model.lengths import Lengths
from seqlaw.model.momentum import Momentum
from seqlaw.model.network import Network
from seqlaw.model.optimizer import Adam, Muon
from seqlaw.model.schedule import WSD, BlockDecay, Constant, Cosine, Explicit, Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import PRESETS, Modes, Teacher
from seqlaw.model.uncertain import Uncertain
from seqlaw.paper.answer import Reproduction
from seqlaw.paper.reproduce import reproduce
from seqlaw.planning.budget import Budget
from seqlaw.sweeping.run import Sweep, load, sweep

__all__ = [
    "PRESETS",
    "WSD",
    "Adam",
    "AveragedSpectrum",
    "BlockDecay",
    "Budget",
    "Constant",
    "Cosine",
    "Curve",
    "Explicit",
    "Forecast",
    "InputError",
    "Ladder",
    "Law",
    "Lengths",
    "Measurement",
    "Modes",
    "Momentum",
    "Muon",
    "Network",
    "Plan",
    "Rates",
    "Reproduction",
    "Risk",
    "Schedule",
    "SeqlawError",
    "Setting",
    "Sweep",
    "Table",
    "Teacher",
    "Tradeoff",
    "Uncertain",
    "curve",
    "fit_law",
    "forecast",
    "ladder",
    "load",
    "load_teacher",
    "measure",
    "plan",
    "rates",
    "reproduce",
    "risk",
    "spectrum",
    "sweep",
    "tradeoff",
]
