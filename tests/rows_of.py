"""Rows and risks of the methods that draw, one sketch and one repetition unless told."""

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
    return METHODS["sampled"].drawn_rows(settings, draws, progress)


def sampled_risks(settings, *, sketches=1, repetitions=1, seed=0, workers=1):
    draws = Draws(sketches=sketches, repetitions=repetitions, seed=seed, workers=workers)
    return METHODS["sampled"].risks(settings, draws)


def sampled_risk(setting, **draws):
    return sampled_risks([setting], **draws)[0]
