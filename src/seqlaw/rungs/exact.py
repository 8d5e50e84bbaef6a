"""The exact rung: the expectation over trajectories in closed form, for given sketches.

The filter is frozen at G (the paper's leading order); the cross term is then of lower order.
"""

from __future__ import annotations

import numpy as np

from seqlaw.model.descent import Spectrum
from seqlaw.model.schedule import Schedule
from seqlaw.model.sketch import Problem, weighted_square


def population_bias(problem: Problem, schedule: Schedule, test: Problem) -> float:
    """Bias of gradient descent on the population loss, scored on `test` (the same sketch at P').

    ½ ‖B*_P ψ(G)‖²_G = ½ Σ_j ‖C v_j‖² ψ(μ_j)²/μ_j at the own length;
    ½ ‖B*_P (I - ψ(G)) - B*_{P'}‖²_{G'} at another (MATH §12).
    """
    spectrum = Spectrum(mu=problem.eigenvalues, U=problem.eigenvectors)
    if test.P == problem.P:
        image = np.sum((problem.C @ spectrum.U) ** 2, axis=0)
        return float(np.sum(image * schedule.residual(spectrum.mu) ** 2 / spectrum.mu) / 2)
    return weighted_square(spectrum.response(problem.C, schedule) - test.B_star, test.G) / 2
