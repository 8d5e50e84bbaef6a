"""What the theorem assumes, checked: one flag for each assumption that a setting breaks."""

from __future__ import annotations

import numpy as np

from seqlaw.model.flags import Flag, flag
from seqlaw.model.lengths import longest
from seqlaw.model.setting import Setting, as_setting
from seqlaw.model.teacher import Modes, Teacher, as_teacher


def teacher_flags(teacher: Teacher | Modes | str) -> tuple[Flag, ...]:
    """The flags of Assumptions 1 and 2; a preset's name is a teacher."""
    teacher = as_teacher("teacher", teacher)
    if isinstance(teacher, Modes):
        flags = [flag("regime-unknown")]
        if np.any(teacher.a <= 0):
            flags.append(flag("assumption-1", of="transitions"))
        if np.any(teacher.sigma_xi == 0):
            flags.append(flag("assumption-2", of="innovations"))
        return tuple(flags)
    flags = []
    if not 0 < 2 * teacher.r < 1:
        flags.append(flag("assumption-1", of="r", got=teacher.r))
    if teacher.alpha <= 1:
        flags.append(flag("assumption-2", of="alpha", got=teacher.alpha))
    if teacher.theta <= 1:
        flags.append(flag("assumption-2", of="theta", got=teacher.theta))
    if teacher.regime == "outside":
        least = teacher.alpha - 2 * teacher.r
        flags.append(flag("assumption-2", of="smoothing", got=teacher.theta, least=least))
    return tuple(flags)


def setting_flags(setting: Setting) -> tuple[Flag, ...]:
    """All assumptions of the theorem that the setting breaks; computed all the same."""
    flags = list(teacher_flags(as_setting("setting", setting).teacher))
    if longest(setting.P) < 2:
        flags.append(flag("length"))
    if setting.d is not None and setting.d < 2 * setting.M:
        flags.append(flag("ambient", d=setting.d, M=setting.M))
    if setting.schedule.horizon < 1:
        flags.append(flag("assumption-3", of="R", got=setting.schedule.horizon))
    return tuple(flags)
