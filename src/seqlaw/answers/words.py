"""The one place where flags become sentences.

A reader on the command line is told options, one in Python names: `Side` says who reads.
"""

from __future__ import annotations

import dataclasses
import math
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from seqlaw.methods.terms import FEWEST_TOKENS
from seqlaw.model.amount import amount
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.flags import ASSUMPTIONS, Flag, Where
from seqlaw.model.lengths import Lengths, Test, words
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import PRESETS, Modes, Teacher

Side = Literal["cli", "python"]
Said = str | Callable[[Flag, Side], str]
"""What is said of a flag: a text that its numbers fill, or a function where it depends on them."""


def option(name: str, side: Side) -> str:
    """What a reader calls an argument."""
    return "--" + name.replace("_", "-") if side == "cli" else name


def sentence(flag: Flag, side: Side) -> str:
    """`code: words`, and at which points of a curve."""
    return f"{flag.code}: {words_alone(flag, side)}{_places(flag.where)}"


def words_alone(flag: Flag, side: Side) -> str:
    """The sentence without its code; a code that nobody gave words is said with its numbers."""
    said = _WORDS.get(flag.code)
    if said is None:
        return _numbers(flag)
    return filled(said, flag, side) if isinstance(said, str) else said(flag, side)


def filled(text: str, flag: Flag, side: Side) -> str:
    """A text with a flag's numbers in its braces.

    Beside Python's formats `{N:a}` and `{N:a3}` are amounts, `{share:.2g%}` is a percentage, `{names:list}` a
    list, `{--time}` what the reader calls an option, and `{method=exact}` how to ask a method.
    """
    return _Filler().vformat(text, (), {"": flag, "side": side})


class _Filler(string.Formatter):
    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        name = str(key)
        if name.startswith("--"):
            return option(name[2:], kwargs["side"])
        if name.startswith("method="):
            return f"--method {name[7:]}" if kwargs["side"] == "cli" else f'method="{name[7:]}"'
        return kwargs[""][name]

    def format_field(self, value: Any, spec: str) -> str:
        if spec == "list":
            return ", ".join(map(str, value))
        if spec.startswith("a"):
            return amount(value, int(spec[1:]) if spec[1:] else None)
        return f"{100 * value:{spec[:-1]}} %" if spec.endswith("%") else f"{value:{spec}}"


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


_WORDS: dict[str, Said] = {
    **dict.fromkeys(ASSUMPTIONS, _broken),
    "one-pass-safeguard": "the step size is reduced to {gamma:.3g} = min(1/(2||G||), gamma_max/2), because "
    "training diverges beyond gamma_max = {gamma_max:.3g}",
    "diverges": "training diverges: gamma = {gamma:.3g} is above gamma_max = {gamma_max:.3g}, where the "
    "variance grows without end. Take a smaller step size",
    "mean-not-median": "gamma = {gamma:.3g} is above half of gamma_max = {gamma_max:.3g}: a few bad runs "
    "dominate this mean, and a typical run does better",
    "best-step": _best_step,
    "optimizer-step": _optimizer_step,
    "trained-rest": "approx is the best linear student's; what the trained one has beyond it, data and "
    "training and network together, is given as cross, and bias and variance as 0",
    "optimizer-diverged": "{diverged:.0f} of {rows} runs ended worse than an untrained student: take a "
    "smaller step than {gamma:.3g}",
    "epochs-heavy-tails": "{N} sequences and a step of {gamma:.3g}, above 0.35 of gamma_max = "
    "{gamma_max:.3g}: a few runs that explode rule the mean (check with {method=sampled})",
    "epochs-frozen": "the full batch's law, which epochs build on, has no finite-sample correction here: the "
    "risk may be 20 % to many times larger (check with {method=sampled})",
    "device-stream": "drawn on a GPU, whose random numbers are not the CPU's: a seed gives the same numbers "
    "on GPUs of one kind only",
    "regime-unknown": "modes given as arrays have no exponents, so the theorem does not apply",
    "length": "the paper takes P >= 2, got P = 1",
    "ambient": lambda f, s: (
        f"the theorem needs d >= C_amb M with a large C_amb; d = {f['d']:g} is below 2M = {2 * f['M']}"
    ),
    "cross": "cross is not computed for this way of training, and shown as 0",
    "safeguard": _safeguard,
    "untrained": "training is too short to compute the variance accurately (sum(gamma) * ||G|| = "
    "{trained:.2g})",
    "saturated": _saturated,
    "bias": "the bias is too small to compute (below {floor:g} of its start) and shown as 0",
    "cross-rest": "only the sum of bias, variance and cross is accurate here: bias and variance are computed "
    "as if data were plentiful, and cross is the remainder",
    "interpolation-peak": "{tokens:g} tokens for {M:g} dimensions and saturated training: at this "
    "interpolation peak the risk may be off by {error:.0f%} (check with {method=sampled})",
    "frozen-filter": "only {tokens:.3g} effective tokens per learned dimension (below "
    f"{FEWEST_TOKENS:g}), where the finite-sample correction is not available (very long memory, phases of "
    "students wider than 256, large steps or momentum in a short schedule): the risk may be 20 % to many "
    "times larger (check with {method=sampled})",
    "not-sampled": "left out of the sampled points: {of} {rule}",
    "tokens-left-over": "whole sequences use as few as {used:a} of the {tokens:a} tokens, so these lengths "
    "are not compared at equal tokens",
    "coincide": "{points} points were asked for; rounded to whole numbers they are {values}",
    "standard-error": "a single row has no standard error; take more sketches or repetitions",
    "infinite": "{field} is infinite, given as null",
    "undefined": "{field} is undefined, given as null",
    "repeated": lambda f, s: (
        f"{f['rows']} rows at {f['values']} values of {f['column']}. If something else varies among them, "
        f"the interval means nothing: choose one value of it{' with --where' * (s == 'cli')}"
    ),
    "software": lambda f, s: (
        f"{f['tasks']} task{'' if f['tasks'] == 1 else 's'} recorded by other code ({f['name']}) "
        f"{'is' if f['tasks'] == 1 else 'are'} kept in the folder and not used here"
    ),
    "failed": "{reason} ({tasks} tasks)",
    # How a user's sequences were read.
    "blocks": "one recording was cut into windows of {states:a} states; {blocks} blocks of {windows} "
    "windows, with one left out between two, count as independent. This is wrong if the recording has a "
    "memory longer than a window",
    "clock": "of {of} features these rise steadily, as clocks and counters do, and every fit learns that: "
    "{columns:list}. Name the column of time with {--time}, that of the sequence with {--sequence}, and "
    "leave out others with {--leave_out}",
    "labels": "of {of} features these never change within a sequence, as numbers of subjects do, and every "
    "fit learns that: {columns:list}. If they name dependent sequences use {--groups}, else leave them out "
    "with {--leave_out}",
    "repeated-numbers": "{sequences:a} of {of:a} sequences lie in several separate stretches of rows, and "
    "each was joined to one. If numbers start anew for every subject or file, give each sequence a number of "
    "its own for {--sequence}",
    "files": "the {sequences:a} sequences of {files:a} files count as independent. If a file is one subject "
    "or session, make each file a group ({--groups} file)",
    "gaps": "{steps:a} of {of:a} steps of time are longer than the usual one (up to {largest:.3g} times), "
    "but each counts as one step. If states are missing there, cut the sequences or fill the gaps",
    "shorter": "{sequences:a} of {of:a} sequences are shorter than {P:a} and left out",
    "dropped": "{sequences:a} of {of:a} sequences have missing values and are left out",
    "missing": "{states:a} of {of:a} states have missing values and are left out; windows are cut from the "
    "stretches between them",
}
"""Each code in words; a room says those of its own codes with `say`."""

REMARKS = {"cross", "cross-rest", "trained-rest", "coincide", "optimizer-step", "best-step"}
"""Codes of what is as it should be, such as what is true of a method everywhere: a note, not a warning."""


def say(words: Mapping[str, Said]) -> None:
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
    for name, value in setting.schedule.additions.items():
        if value and name not in without:
            text += f", {name.replace('_', ' ')} {value:g}"
    L, R = amount(setting.schedule.L), amount(setting.schedule.horizon, 5)
    if setting.optimizer is not None or "gamma" in without:  # whose steps have another unit, or differ
        return text if {"R", "L", "epochs"} & set(without) else f"{text}, {L} steps"
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
