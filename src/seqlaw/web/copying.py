"""Each view as a command and as Python, so that what is on the screen can be had again, and built upon."""

from __future__ import annotations

import math
import shlex
from dataclasses import MISSING, fields

from seqlaw.model.momentum import Momentum
from seqlaw.model.schedule import WSD, Constant, Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import NUMBERS, PRESETS, Teacher
from seqlaw.web.schema import METHOD, Along, LadderBody, PlanBody, SampledBody, TradeoffBody


def _number(value: float) -> str:
    """As a person would type it, and exactly: 4096, 0.1, 1e12, inf."""
    value = float(value)
    if value.is_integer() and abs(value) < 1e16:
        digits = str(int(value))
        mantissa = digits.rstrip("0")
        return f"{mantissa}e{len(digits) - 1}" if len(digits) > 6 and len(mantissa) == 1 else digits
    return repr(value)


def _teacher_options(teacher: Teacher) -> list[str]:
    for name, preset in PRESETS.items():
        if preset == teacher:
            return ["--teacher", name]
    options = {f"--{name.replace('_', '-')}": _number(getattr(teacher, name)) for name in NUMBERS}
    return [part for option in options.items() for part in option]


def _schedule_options(schedule: Schedule, *, steps: bool = True, tune: bool = False) -> list[str]:
    momentum = isinstance(schedule, Momentum)
    options = ["--schedule", Constant.name if momentum else schedule.name]
    options += ["--gamma", "best" if tune else _number(schedule.gamma)]
    if steps:
        options += ["-L", _number(schedule.L)]
    if isinstance(schedule, Momentum):
        options += ["--momentum", _number(schedule.beta), *["--nesterov"] * schedule.nesterov]
    if isinstance(schedule, WSD):
        options += ["--warmup", _number(schedule.warmup), "--decay", _number(schedule.decay)]
    return options


def _sizes(setting: Setting) -> tuple[str, ...]:
    """What is given of a setting: N, or in one pass the batch, from which it follows, and how it is taken."""
    if setting.batch is None:
        return ("M", "N", "P", "d")
    return (
        ("M", "P", "d", "batch")
        + ("epochs",) * (setting.epochs > 1)
        + ("safeguard",) * (not setting.safeguard)
    )


def _setting_options(
    setting: Setting, *, without: str = "", tested: bool = True, steps: bool = True, tune: bool = False
) -> list[str]:
    assert isinstance(setting.teacher, Teacher)
    options = _teacher_options(setting.teacher)
    for name in _sizes(setting):
        if name == "safeguard":
            options.append("--no-safeguard")
        elif name not in without:
            options += [f"-{name}" if len(name) == 1 else f"--{name}", _number(getattr(setting, name))]
    if tested and setting.test_length != setting.P:
        options += ["--eval-length", str(setting.test_length)]
    return options + _schedule_options(setting.schedule, steps=steps, tune=tune)


def _command(*words: str) -> str:
    return shlex.join(["seqlaw", *words])


def _python(value: object) -> str:
    """The repr of a value, which evaluates to it again; infinity needs its name."""
    return "math.inf" if value == math.inf else repr(value)


def _setting_lines(setting: Setting) -> list[str]:
    sizes = ", ".join(f"{name}={_python(getattr(setting, name))}" for name in _sizes(setting))
    tested = f"    eval_length={setting.test_length},\n" if setting.test_length != setting.P else ""
    return [
        f"setting = Setting(\n    teacher={setting.teacher!r},\n    {sizes},\n"
        f"    schedule={setting.schedule!r},\n{tested})"
    ]


def _script(imports: list[str], lines: list[str]) -> str:
    head = ["import math\n"] if any("math.inf" in line for line in lines) else []
    momentum = ["from seqlaw.model import Momentum"] if any("Momentum(" in line for line in lines) else []
    return "\n".join([*head, *imports, *momentum, "", *lines]) + "\n"


def _names(setting: Setting) -> str:
    return ", ".join(sorted({type(setting.schedule).__name__, "Setting", "Teacher"} - {"Momentum"}))


def copy_spectrum(setting: Setting, *, points: int, last: int, orders: bool) -> dict[str, str]:
    """The averaged spectrum with its parts, its marks and, where it has them, the theorem's orders."""
    options = ["--to", _number(last), "--points", str(points), *_setting_options(setting)]
    return {
        "command": _command("spectrum", *options),
        "python": _script(
            [f"from seqlaw import {_names(setting)}, averaged_spectrum, {'rates, ' if orders else ''}risk"],
            [
                *_setting_lines(setting),
                f"found = averaged_spectrum(setting, points={points}, last={last})",
                'print(found.crossing, found.kappa, risk(setting).diagnostics["learned_dimensions"])',
                *(["print(rates(setting).crossovers)"] if orders else []),
                "for row in zip(found.j, found.initial, found.innovation, found.total):",
                "    print(*row)",
            ],
        ),
    }


def copy_curve(body: Along, method: str) -> dict[str, str]:
    """The curve on the server's method, or (a sampled body) on the sampled one."""
    setting, along = body.setting(), body.along
    options = ["--along", along, "--from", _number(body.start), "--to", _number(body.stop)]
    options += ["--points", str(body.points)]
    how = ""
    if isinstance(body, SampledBody):
        how = (
            f', method="sampled", sketches={body.sketches}, repetitions={body.repetitions}, seed={body.seed}'
        )
        options += ["--method", "sampled", "--sketches", str(body.sketches)]
        options += ["--repetitions", str(body.repetitions), "--seed", str(body.seed)]
    elif method != METHOD:
        how = f", method={method!r}"
        options += ["--method", method]
    if body.tokens is not None:
        how += f", tokens={_number(body.tokens)}"
        options += ["--tokens", _number(body.tokens)]
    how += ", tune=True" * body.tune
    values = [int(value) if along != "R" else value for value in body.values()]
    return {
        "command": _command(
            "curve", *options, *_setting_options(setting, steps=body.tokens is None, tune=body.tune)
        ),
        "python": _script(
            [f"from seqlaw import {_names(setting)}, curve"],
            [
                *_setting_lines(setting),
                f"values = {values}",
                f'for x, risk in zip(values, curve(setting, "{along}", values{how})):',
                "    print(x, risk.approx, risk.bias, risk.variance, risk.cross, risk.reducible)",
            ],
        ),
    }


def copy_tradeoff(body: TradeoffBody, lengths: list[int]) -> dict[str, str]:
    """Longer or more at fixed tokens."""
    setting = body.setting()
    tests = [part for length in body.eval_lengths for part in ("--test", _number(length))]
    options = ["--tokens", _number(body.tokens), "--points", str(body.points), *tests]
    options += _setting_options(
        setting, without="NP", tested=False, steps=setting.batch is None, tune=body.tune
    )
    common = tuple(int(length) for length in body.eval_lengths)
    return {
        "command": _command("tradeoff", *options),
        "python": _script(
            [f"from seqlaw import {_names(setting)}, tradeoff"],
            [
                *_setting_lines(setting),
                f"answer = tradeoff(\n    setting, {_number(body.tokens)}, eval_lengths={common},\n"
                f"    lengths={lengths},{' tune=True,' * body.tune}\n)",
                "for row in answer.rows:",
                "    print(row.tested, row.P, row.N, row.reducible)",
            ],
        ),
    }


def copy_ladder(body: LadderBody) -> dict[str, str]:
    """Two lengths at shares of the longer."""
    setting, shares, pair = body.setting(), body.shares(), [int(body.short), int(body.long)]
    options = ["--shares", ",".join(map(_number, shares)), "--candidates", ",".join(map(str, pair))]
    options += ["--tokens", _number(body.tokens), "--sketches", str(body.sketches)]
    options += ["--eval-length", str(setting.test_length)]
    options += _setting_options(setting, without="NP", tested=False)
    return {
        "command": _command("ladder", *options),
        "python": _script(
            [f"from seqlaw import {_names(setting)}, ladder_curve"],
            [
                *_setting_lines(setting),
                f"answer = ladder_curve(\n    setting, {_number(body.tokens)}, candidates={pair},\n"
                f"    shares={shares},\n    sketches={body.sketches},\n)",
                "for row in answer.rows:",
                "    print(row.name, row.share, row.reducible)",
            ],
        ),
    }


def copy_plan(body: PlanBody, *, one_pass: bool = False) -> dict[str, str]:
    """The allocation of a budget, all data in every step or once."""
    budget, schedule = body.budget, body.schedule.build()
    options = ["--compute", _number(budget.compute), "--tokens", _number(budget.tokens)]
    bounds = {
        bound.name: getattr(budget, bound.name)
        for bound in fields(budget)
        if bound.default is not MISSING and getattr(budget, bound.name) != bound.default
    }
    for name, value in bounds.items():
        options += [f"--{name.replace('_', '-')}", value if isinstance(value, str) else _number(value)]
    if body.eval_length is not None:
        options += ["--eval-length", _number(body.eval_length)]
    options += ["-d", _number(body.d), *_teacher_options(body.teacher)]
    given = {"compute": budget.compute, "tokens": budget.tokens} | bounds
    spent = "Budget(" + ", ".join(f"{name}={value!r}" for name, value in given.items()) + ")"
    tested = "" if body.eval_length is None else f", eval_length={_number(body.eval_length)}"
    d = "math.inf" if body.d == math.inf else _number(body.d)
    options += [*["--one-pass"] * one_pass, *_schedule_options(schedule, steps=False, tune=one_pass)]
    call = "plan_one_pass" if one_pass else "plan"
    shown = (
        ["print(answer.sentence)"]
        if one_pass
        else ["print(answer.finite.best)", 'print("\\n".join(answer.notes))']
    )
    return {
        "command": _command("plan", *options),
        "python": _script(
            [f"from seqlaw import Budget, {type(schedule).__name__}, Teacher, {call}"],
            [
                f"answer = {call}(\n    {body.teacher!r},\n    {spent},\n"
                f"    schedule={schedule!r}, d={d}{tested},\n)",
                *shown,
            ],
        ),
    }
