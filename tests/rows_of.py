"""Rows and risks of the methods that draw, one sketch and one repetition unless told."""

import math

import numpy as np

from seqlaw.methods import METHODS, Draws
from seqlaw.methods.exact import SketchesOnly


def exact_rows(settings, *, sketches=1, seed=0, device=None):
    return METHODS["exact"].rows(settings, Draws(sketches=sketches, seed=seed, device=device))


def exact_risks(settings, *, sketches=1, seed=0, device=None):
    return METHODS["exact"].risks(settings, Draws(sketches=sketches, seed=seed, device=device))


def exact_risk(setting, **draws):
    return exact_risks([setting], **draws)[0]


def population_rows(settings, *, sketches=1, seed=0, device=None):
    return SketchesOnly().rows(settings, Draws(sketches=sketches, seed=seed, device=device))


def sampled_rows(settings, *, sketches=1, repetitions=1, seed=0, workers=1, device=None, progress=None):
    draws = Draws(sketches=sketches, repetitions=repetitions, seed=seed, workers=workers, device=device)
    return METHODS["sampled"].rows(settings, draws, progress)


def sampled_risks(settings, *, sketches=1, repetitions=1, seed=0, workers=1):
    draws = Draws(sketches=sketches, repetitions=repetitions, seed=seed, workers=workers)
    return METHODS["sampled"].risks(settings, draws)


def sampled_risk(setting, **draws):
    return sampled_risks([setting], **draws)[0]


def check_means(law, rows, names=("bias", "variance", "cross"), *, errors, slack):
    """Each term of the law is the mean of the sampled rows: within so many standard errors, and `slack`
    of the excess besides."""
    excess = sum(law[name] for name in ("bias", "variance", "cross"))
    for name in names:
        values = [row[name] for row in rows]
        error = np.std(values, ddof=1) / math.sqrt(len(values))
        assert abs(np.mean(values) - law[name]) <= errors * error + slack * excess, name
