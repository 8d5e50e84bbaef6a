"""One question, many methods; the names that builders of methods need. Symbols: docs/notation.md."""

from seqlaw.methods.ask import METHODS, along, method_of, risks
from seqlaw.methods.equivalent import equivalent_risk, equivalent_risks
from seqlaw.methods.frozen_sketch import finite_filter_variance, population_bias
from seqlaw.methods.method import Draws, Method
from seqlaw.methods.moments import moments_of, nested_moments, sample_moments
from seqlaw.methods.sampled import covariance_event, sampled_terms
from seqlaw.methods.score import score
from seqlaw.methods.terms import Risk
from seqlaw.methods.trajectories import trajectories, trajectory_chunks

__all__ = [
    "METHODS",
    "Draws",
    "Method",
    "Risk",
    "along",
    "covariance_event",
    "equivalent_risk",
    "equivalent_risks",
    "finite_filter_variance",
    "method_of",
    "moments_of",
    "nested_moments",
    "population_bias",
    "risks",
    "sample_moments",
    "sampled_terms",
    "score",
    "trajectories",
    "trajectory_chunks",
]
