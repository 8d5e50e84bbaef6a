"""What the theorem assumes, checked: one flag for each assumption that a setting breaks."""

from __future__ import annotations

import numpy as np

from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Modes, Teacher, as_teacher


def teacher_flags(teacher: Teacher | Modes | str) -> tuple[str, ...]:
    """The flags of Assumptions 1 and 2; a preset's name is a teacher."""
    teacher = as_teacher("teacher", teacher)
    if isinstance(teacher, Modes):
        flags = ["regime-unknown: modes given as arrays have no exponents, so the theorem does not apply"]
        if np.any(teacher.a <= 0):
            flags.append("assumption-1: needs a_j > 0, got a zero or negative transition")
        if np.any(teacher.sigma_xi == 0):
            flags.append("assumption-2: needs sigma_xi,j > 0, got a mode without innovation")
        return tuple(flags)
    flags = []
    if not 0 < 2 * teacher.r < 1:
        flags.append(f"assumption-1: needs 0 < 2r < 1, got r = {teacher.r:g}")
    if teacher.alpha <= 1:
        flags.append(f"assumption-2: needs alpha > 1, got {teacher.alpha:g}")
    if teacher.theta <= 1:
        flags.append(f"assumption-2: needs theta > 1, got {teacher.theta:g}")
    if teacher.regime == "outside":
        least = teacher.alpha - 2 * teacher.r
        flags.append(f"assumption-2: needs theta >= alpha - 2r = {least:g}, got {teacher.theta:g}")
    return tuple(flags)


def setting_flags(setting: Setting) -> tuple[str, ...]:
    """All assumptions of the theorem that the setting breaks; computed all the same."""
    flags = list(teacher_flags(setting.teacher))
    if setting.P < 2:
        flags.append("length: the paper takes P >= 2, got P = 1")
    if setting.d is not None and setting.d < 2 * setting.M:
        flags.append(
            f"ambient: the theorem needs d >= C_amb M with a large C_amb; "
            f"d = {setting.d:g} is below 2M = {2 * setting.M}"
        )
    if setting.schedule.horizon < 1:
        flags.append(f"assumption-3: needs R >~ 1, got R = {setting.schedule.horizon:g}")
    return tuple(flags)
