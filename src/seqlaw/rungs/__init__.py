"""One question, many rungs; the names that builders of rungs need. (`rates` stands alone: `seqlaw.rates`.)"""

from seqlaw.rungs.ask import RUNGS, along, rung_of
from seqlaw.rungs.equivalent import equivalent_risk, equivalent_risks
from seqlaw.rungs.exact import exact_risk, exact_risks, exact_rows
from seqlaw.rungs.frozen_sketch import finite_filter_variance, population_bias
from seqlaw.rungs.moments import moments_of, nested_moments, sample_moments
from seqlaw.rungs.rung import Cost, Draws, Rung
from seqlaw.rungs.sampled import covariance_event, sampled_risk, sampled_risks, sampled_rows, sampled_terms
from seqlaw.rungs.score import score
from seqlaw.rungs.terms import Risk
from seqlaw.rungs.trajectories import trajectories, trajectory_chunks

__all__ = [
    "RUNGS",
    "Cost",
    "Draws",
    "Risk",
    "Rung",
    "along",
    "covariance_event",
    "equivalent_risk",
    "equivalent_risks",
    "exact_risk",
    "exact_risks",
    "exact_rows",
    "finite_filter_variance",
    "moments_of",
    "nested_moments",
    "population_bias",
    "rung_of",
    "sample_moments",
    "sampled_risk",
    "sampled_risks",
    "sampled_rows",
    "sampled_terms",
    "score",
    "trajectories",
    "trajectory_chunks",
]
