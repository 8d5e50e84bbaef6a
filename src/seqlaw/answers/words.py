"""The one place where flags become sentences.

A reader on the command line is told options, one in Python names: `Side` says who reads.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from seqlaw.methods.terms import FEWEST_TOKENS
from seqlaw.model.amount import amount
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.flags import ASSUMPTIONS, Flag, Where
from seqlaw.model.lengths import Lengths, Test, words
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import PRESETS, Modes, Teacher

Side = Literal["cli", "python"]


def option(name: str, side: Side) -> str:
    """What a reader calls an argument."""
    return "--" + name.replace("_", "-") if side == "cli" else name


def sentence(flag: Flag, side: Side) -> str:
    """`code: words`, and at which points of a curve."""
    return f"{flag.code}: {words_alone(flag, side)}{_places(flag.where)}"


def words_alone(flag: Flag, side: Side) -> str:
    """The sentence without its code; a code that nobody gave words is said with its numbers."""
    if flag.code not in _WORDS:
        return _numbers(flag)
    return _WORDS[flag.code](flag, side)


def warned(flag: Flag, side: Side) -> str:
    """A flag as a line of text: `warning: words [code]`, or `note: …` where nothing is wrong."""
    lead = "note" if flag.code in REMARKS else "warning"
    return f"{lead}: {words_alone(flag, side)}{_places(flag.where)} [{flag.code}]"


def sentences(flags: Iterable[Flag], side: Side) -> list[str]:
    return [sentence(flag, side) for flag in flags]


def _places(where: Where | None) -> str:
    """Nothing where a flag is everywhere, else the values of the axis: a run of them by its ends.

    Several points may share a value, as the tests of a tradeoff do.
    """
    if where is None:
        return ""
    every, runs = sorted(set(where.values)), list[list[float]]()
    for before, value in zip([None, *every], every, strict=False):
        if value in where.places:
            if before in where.places:
                runs[-1].append(value)
            else:
                runs.append([value])
    texts = [f"{run[0]:g}" + (f" to {run[-1]:g}" if len(run) > 1 else "") for run in runs]
    counts = f"{len(where.places)} of {len(where.values)} points"
    return f" (at {where.axis} = {', '.join(texts)}: {counts})"


def _numbers(flag: Flag) -> str:
    return ", ".join(f"{name} = {amount(value, 5)}" for name, value in flag.numbers) or "raised"


def _broken(flag: Flag, side: Side) -> str:
    """What an assumption needs, and what it got."""
    numbers = dict(flag.numbers)
    needs = {
        "transitions": "a_j > 0, got a zero or negative transition",
        "innovations": "sigma_xi,j > 0, got a mode without innovation",
        "r": "0 < 2r < 1, got r = {got:.5g}",
        "decay": "r > 0, got r = {got:.2g}: all transitions are nearly the same",
        "alpha": "alpha > 1, got {got:.5g}",
        "theta": "theta > 1, got {got:.5g}",
        "smoothing": "theta >= alpha - 2r" + " = {least:.5g}, got {got:.5g}" * ("least" in numbers),
        "R": "R >~ 1, got R = {got:.5g}",
    }
    if numbers.get("of") not in needs:
        return _numbers(flag)
    return "the theorem needs " + needs[numbers["of"]].format(**numbers)


def _safeguard(flag: Flag, side: Side) -> str:
    numbers = dict(flag.numbers)
    if "rows" in numbers:
        return f"the step size was reduced in {numbers['clipped']:.0f} of {numbers['rows']} data sets"
    if (share := numbers.get("share", 1.0)) < 0.995:
        return f"the safeguard reduces the step size to 1/(2||G||) in about {100 * share:.2g} % of data sets"
    ends = [f"{x:.3g}" for x in numbers.get("span", [numbers["gamma"]] if "gamma" in numbers else [])]
    to = " to ".join(dict.fromkeys(ends))
    return (
        f"the step size is reduced to {to + ', ' * bool(to)}the largest that the safeguard allows, 1/(2||G||)"
    )


def _best_step(flag: Flag, side: Side) -> str:
    span = dict(flag.numbers).get("span", [flag["gamma"]])
    ends = list(dict.fromkeys(f"{x:.3g}" for x in span))
    if len(ends) > 1:
        return f"each point has its best step size, {ends[0]} to {ends[-1]}"
    limit = ", the largest that the safeguard allows" if flag["largest"] else ""
    half = f"half of it would raise the risk by {100 * flag['half']:.2g} %"
    twice = "" if flag["twice"] is None else f", twice of it by {100 * flag['twice']:.2g} %"
    return f"the best step size is {ends[0]}{limit}; {half}{twice}"


def _optimizer_step(flag: Flag, side: Side) -> str:
    ends = [f"{x:.3g}" for x in dict(flag.numbers).get("span", [flag["gamma"]])]
    said = f"{flag['optimizer']} took a peak step of {' to '.join(dict.fromkeys(ends))}"
    if not flag["tuned"]:
        return said
    end = ", and the last of the grid: a better one may lie beyond" if flag["edge"] else ""
    others = {1: "another sketch", 4: "four further sketches"}[flag["sketches"]]
    return f"{said}, the best of a grid of factors of 2 on {others}{end}"


def _method(name: str, side: Side) -> str:
    """How to ask a method."""
    return f"--method {name}" if side == "cli" else f'method="{name}"'


def _saturated(flag: Flag, side: Side) -> str:
    """With how to look at single sketches: both methods at one d, which the exact one can hold."""
    check, d = "", flag["check_d"]
    if d is not None and flag["same_d"]:
        check = "`seqlaw risk --method exact`" if side == "cli" else '`risk(…, method="exact")`'
        check = f". To check, use {check} at these sizes"
    elif d is not None and side == "cli":
        sizes = f"at these sizes but -d {d}"
        check = f". To check, compare --method exact and --method equivalent of `seqlaw risk` {sizes}"
    elif d is not None:
        check = f'. To check, compare method="exact" and "equivalent" of `risk` at these sizes but d={d}'
    digits = 3 if flag["saturation"] >= 1.005 else 7  # not "1 > 1"
    trained = f"{flag['saturation']:.{digits}g}"
    return (
        f"training is saturated, sum(gamma) * kappa(0) = {trained} > 1: the bias depends on the smallest "
        f"eigenvalues, so single sketches scatter around this value{check}"
    )


def _repeated(flag: Flag, side: Side) -> str:
    how = "choose one value of it with --where" if side == "cli" else "choose one value of it"
    return (
        f"{flag['rows']} rows at {flag['values']} values of {flag['column']}. If something else varies among "
        f"them, the interval means nothing: {how}"
    )


_WORDS: dict[str, Callable[[Flag, Side], str]] = {
    **dict.fromkeys(ASSUMPTIONS, _broken),
    "one-pass-safeguard": lambda f, s: (
        f"the step size is reduced to {f['gamma']:.3g} = min(1/(2||G||), gamma_max/2), because training "
        f"diverges beyond gamma_max = {f['gamma_max']:.3g}"
    ),
    "diverges": lambda f, s: (
        f"training diverges: gamma = {f['gamma']:.3g} is above gamma_max = {f['gamma_max']:.3g}, where the "
        "variance grows without end. Take a smaller step size"
    ),
    "mean-not-median": lambda f, s: (
        f"gamma = {f['gamma']:.3g} is above half of gamma_max = {f['gamma_max']:.3g}: a few bad runs "
        "dominate this mean, and a typical run does better"
    ),
    "best-step": _best_step,
    "optimizer-step": _optimizer_step,
    "trained-rest": lambda f, s: (
        "approx is the best linear student's; what the trained one has beyond it, data and training and "
        "network together, is given as cross, and bias and variance as 0"
    ),
    "optimizer-diverged": lambda f, s: (
        f"{f['diverged']:.0f} of {f['rows']} runs ended worse than an untrained student: take a smaller step "
        f"than {f['gamma']:.3g}"
    ),
    "epochs-heavy-tails": lambda f, s: (
        f"{f['N']} sequences and a step of {f['gamma']:.3g}, above 0.35 of gamma_max = {f['gamma_max']:.3g}: "
        f"a few runs that explode rule the mean (check with {_method('sampled', s)})"
    ),
    "epochs-frozen": lambda f, s: (
        "the full batch's law, which epochs build on, has no finite-sample correction here: the risk may be "
        f"20 % to many times larger (check with {_method('sampled', s)})"
    ),
    "device-stream": lambda f, s: (
        "drawn on a GPU, whose random numbers are not the CPU's: a seed gives the same numbers on GPUs of "
        "one kind only"
    ),
    "regime-unknown": lambda f, s: "modes given as arrays have no exponents, so the theorem does not apply",
    "length": lambda f, s: "the paper takes P >= 2, got P = 1",
    "ambient": lambda f, s: (
        f"the theorem needs d >= C_amb M with a large C_amb; d = {f['d']:g} is below 2M = {2 * f['M']}"
    ),
    "cross": lambda f, s: "cross is not computed for this way of training, and shown as 0",
    "safeguard": _safeguard,
    "untrained": lambda f, s: (
        f"training is too short to compute the variance accurately (sum(gamma) * ||G|| = {f['trained']:.2g})"
    ),
    "saturated": _saturated,
    "bias": lambda f, s: (
        f"the bias is too small to compute (below {f['floor']:g} of its start) and shown as 0"
    ),
    "cross-rest": lambda f, s: (
        "only the sum of bias, variance and cross is accurate here: bias and variance are computed as if "
        "data were plentiful, and cross is the remainder"
    ),
    "interpolation-peak": lambda f, s: (
        f"{f['tokens']:g} tokens for {f['M']:g} dimensions and saturated training: at this interpolation "
        f"peak the risk may be off by {100 * f['error']:.0f} % (check with {_method('sampled', s)})"
    ),
    "frozen-filter": lambda f, s: (
        f"only {f['tokens']:.3g} effective tokens per learned dimension (below {FEWEST_TOKENS:g}), where the "
        "finite-sample correction is not available (very long memory, phases of students wider than 256, "
        "large steps or momentum in a short schedule): the risk may be 20 % to many times larger (check with "
        f"{_method('sampled', s)})"
    ),
    "not-sampled": lambda f, s: f"left out of the sampled points: {f['of']} {f['rule']}",
    "tokens-left-over": lambda f, s: (
        f"whole sequences use as few as {amount(f['used'])} of the {amount(f['tokens'])} tokens, so these "
        "lengths are not compared at equal tokens"
    ),
    "coincide": lambda f, s: (
        f"{f['points']} points were asked for; rounded to whole numbers they are {f['values']}"
    ),
    "standard-error": lambda f, s: "a single row has no standard error; take more sketches or repetitions",
    "infinite": lambda f, s: f"{f['field']} is infinite, given as null",
    "undefined": lambda f, s: f"{f['field']} is undefined, given as null",
    "repeated": _repeated,
    "software": lambda f, s: (
        f"{f['tasks']} task{'' if f['tasks'] == 1 else 's'} recorded by other code ({f['name']}) "
        f"{'is' if f['tasks'] == 1 else 'are'} kept in the folder and not used here"
    ),
    "failed": lambda f, s: f"{f['reason']} ({f['tasks']} tasks)",
}
"""Each code in words; those of a measurement are in `answers.findings`, added by `say`."""

REMARKS = {"cross", "cross-rest", "trained-rest", "coincide", "optimizer-step", "best-step"}
"""Codes of what is as it should be, such as what is true of a method everywhere: a note, not a warning."""


def say(words: dict[str, Callable[[Flag, Side], str]]) -> None:
    """Words for the codes of a room or of a method of your own."""
    _WORDS.update(words)


def describe_teacher(teacher: Teacher | Modes) -> str:
    """One line that says which teacher a result is about; a preset has its name."""
    if isinstance(teacher, Modes):
        return f"Teacher: {teacher.d} modes {f'from {teacher.name}' if teacher.name else 'given as arrays'}"
    name = next((f" {name}" for name, preset in PRESETS.items() if preset == teacher), "")
    usual = " (the default)" if teacher == PRESETS["regime2"] else ""
    numbers = " ".join(f"{f.name}={getattr(teacher, f.name):g}" for f in dataclasses.fields(Teacher))
    return f"Teacher{name}{usual}: {numbers}"


def regime_words(setting: Setting) -> str:
    """The regime, and whether an assumption of the theorem fails."""
    outside = any(flag.code in ASSUMPTIONS for flag in setting_flags(setting))
    return f"Regime {setting.regime}{' (outside the theorem, see below)' if outside else ''}"


def sizes_words(setting: Setting, without: Sequence[str] = ()) -> str:
    """The sizes that are not varied."""
    names: tuple[str, ...] = ("M", "N", "P", "d") if setting.batch is None else ("M", "P", "d", "batch")
    names += ("N",) * ("epochs" in without)
    sizes = {name: getattr(setting, name) for name in names if name not in without}
    text = " ".join(
        f"{name}={value.words if isinstance(value, Lengths) else amount(value)}"
        for name, value in sizes.items()
    )
    if setting.epochs > 1 and "epochs" not in without:
        text += f", {setting.epochs} epochs of N={amount(setting.N)}"
    L, R = amount(setting.schedule.L), amount(setting.schedule.horizon, 5)
    return text if {"R", "L", "epochs"} & set(without) else f"{text}, {L} steps (R={R})"


def tested_words(eval_length: Test | None) -> str:
    """Where students are tested."""
    if eval_length is None:
        return "its own length"
    return f"{'length ' * isinstance(eval_length, int)}{words(eval_length)}"


def percent_words(share: float, error: float) -> str:
    """7.2 % ± 0.2 %: one decimal, or as many as show the error."""
    digits = max(1, -math.floor(math.log10(100 * error))) if error > 0 else 1
    return f"{100 * share:.{digits}f} % ± {100 * error:.{digits}f} %"


def beaten_words(ratio: float, error: float) -> str:
    """Whether the best single length beats a mixture."""
    times = f"{ratio:.3g} ± {error:.1g} times its risk"
    if abs(ratio - 1) <= error:
        return f"the best single length is as good, with {times}"
    beaten = f"the best single length beats it, with {times}"
    return beaten if ratio < 1 else f"no single length beats it: the best has {times}"
