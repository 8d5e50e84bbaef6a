"""seqlaw: a laboratory for linear RNN scaling laws. When do longer sequences beat more sequences?"""

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
from seqlaw.rungs.terms import Risk

__version__ = "0.1.0.dev0"

__all__ = [
    "PRESETS",
    "WSD",
    "BlockDecay",
    "Constant",
    "Cosine",
    "Explicit",
    "InputError",
    "Modes",
    "Moments",
    "Problem",
    "Risk",
    "Schedule",
    "Setting",
    "SingularProblem",
    "Spectrum",
    "Teacher",
    "descend",
    "full_state_loss",
    "gaussian_sketch",
    "generator",
    "position_moments",
    "setting_flags",
    "sketched_problem",
    "sketched_problems",
    "teacher_flags",
]
