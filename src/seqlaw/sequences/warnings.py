"""What a forecast must warn of in its pilot: too little of it for what is asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqlaw.model.flags import Flag, flag
from seqlaw.sequences.law import LEAST_TOKENS, Accuracy, Law, Row
from seqlaw.sequences.pilot import Pilot

FEW_GROUPS = 20
_OFF = 0.05  # an accuracy worse than this is flagged


def pilot_flags(
    pilot: Pilot,
    laws: Sequence[Law],
    rows: Sequence[Row],
    accuracy: Accuracy | None,
    constant: int,
) -> list[Flag]:
    flags = []
    shown = {row.P for row in rows}
    missing = [law for law in laws if law.P not in shown]
    thin = [law for law in missing if law.tokens(law.n) < LEAST_TOKENS]
    steep = [law for law in missing if law not in thin and law.steep]
    if steep:
        ratio = max(law.seen[law.n // 2] / law.loss for law in steep)
        flags.append(flag("steep", lengths=tuple(law.P for law in steep), ratio=ratio))
    if thin:
        least = max(LEAST_TOKENS * law.learned / law.P for law in thin)
        flags.append(
            flag(
                "too-few-tokens",
                lengths=tuple(law.P for law in thin),
                tokens=min(law.tokens(law.n) for law in thin),
                n=pilot.n,
                sequences=int(np.ceil(least)),
            )
        )
    groups = np.unique(pilot.data.groups[pilot.rows]).size
    if pilot.data.grouped and groups < FEW_GROUPS:
        flags.append(flag("few-groups", groups=int(groups), sequences=pilot.n))
    if constant:
        flags.append(flag("constant", features=constant, of=pilot.data.D))
    if accuracy is not None and max(1 - accuracy.low, accuracy.high - 1) > _OFF:
        flags.append(flag("inaccurate", low=accuracy.low, high=accuracy.high))
    return flags
