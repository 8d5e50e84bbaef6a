"""`seqlaw rates`, `seqlaw plan` and `seqlaw tradeoff`: the theorem, an allocation, longer or more."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any

import typer

from seqlaw.cli.options import Json, Plot, ScheduleOptions, Seed, SettingOptions, TeacherOptions, size, takes
from seqlaw.cli.output import merge_flags, number, print_flags, print_json, print_table
from seqlaw.model.checks import InputError, positive, whole
from seqlaw.model.teacher import PRESETS
from seqlaw.planning import plan as planning
from seqlaw.planning.corollary import SIZES
from seqlaw.planning.finite import Budget
from seqlaw.planning.program import SETTINGS, Program
from seqlaw.planning.tradeoff import OWN
from seqlaw.planning.tradeoff import tradeoff as split_tokens
from seqlaw.rungs.rates import rates as theorem
from seqlaw.rungs.terms import TERMS


@takes(SettingOptions)
def rates(options: SettingOptions, json: Json = False) -> None:
    """The theorem at one point: exponents, crossovers, conditions.

    Example: seqlaw rates --teacher regime2 -M 512 -N 65536 -P 16 -R 1200
    """
    setting = options.build()
    answer = theorem(setting)
    if json:
        fields = {f.name: getattr(answer, f.name) for f in dataclasses.fields(answer)}
        print_json("rates", {"setting": setting}, fields)
        return
    print(f"Regime {answer.regime}: beta_alpha = {answer.beta_alpha:g}, beta_theta = {answer.beta_theta:g}")
    print_table(
        [
            (name, " ".join(f"{s}^{e:.4g}" for s, e in powers.items()), answer.values[name])
            for name, powers in answer.exponents.items()
        ],
        header=("term", "order here", "value without constants"),
    )
    print_table([*answer.crossovers.items(), *answer.remainder.items()], header=("crossover", "value"))
    print_table(
        [
            (
                c.name,
                c.value,
                c.needed,
                c.ratio,
                number(c.ratio_scaled) if c.ratio_scaled else "",
                _holds(c.holds),
            )
            for c in answer.conditions
        ],
        header=("condition", "value", "needed", "ratio", "with scales", "holds"),
    )
    print(answer.statement)
    print_flags(answer.flags)


def _holds(holds: bool | None) -> str:
    return {True: "yes", False: "NO", None: "up to a constant"}[holds]


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlanOptions(ScheduleOptions, TeacherOptions):
    """A teacher and the kind of schedule; its length is what the plan chooses."""


def _budget_number(field: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError(field, "must be a number", text) from None
    return positive(field, value)


def _ceiling(field: str, text: str | None) -> float:
    return math.inf if text is None else size(field, text)


@takes(PlanOptions)
def plan(
    options: PlanOptions,
    compute: Annotated[str, typer.Option(help="Compute C = N·P·M²·L.", metavar="NUMBER")] = "1e15",
    tokens: Annotated[str, typer.Option(help="Tokens T that may be used.", metavar="NUMBER")] = "1e9",
    flops: Annotated[
        bool, typer.Option("--flops", help=f"--compute is in FLOPs, {planning.FLOPS_PER_UNIT} a unit.")
    ] = False,
    eval_length: Annotated[
        str | None,
        typer.Option(help="Length of the test sequences.  [default: the training length]", metavar="INT"),
    ] = None,
    modes: Annotated[
        str, typer.Option("--modes", "-d", help="Latent dimensions.", metavar="INT|inf")
    ] = "inf",
    max_M: Annotated[str | None, typer.Option("--max-M", help="Widest student.", metavar="INT")] = None,
    max_N: Annotated[str | None, typer.Option("--max-N", help="Most trajectories.", metavar="INT")] = None,
    max_P: Annotated[str | None, typer.Option("--max-P", help="Longest trajectory.", metavar="INT")] = None,
    max_L: Annotated[str | None, typer.Option("--max-L", help="Most steps.", metavar="INT")] = None,
    confirm: Annotated[
        bool | None,
        typer.Option("--confirm/--no-confirm", help="Sample the optimum.  [default: where data are few]"),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    plot: Plot = None,
) -> None:
    """The allocation of a budget: the corollary, the rates' optimum, and the finite-size optimum.

    Example: seqlaw plan --compute 1e18 --tokens 1e10 --eval-length 4096
    """
    if options.steps is not None or options.horizon is not None:
        raise InputError(
            "L", "is what the plan chooses: give --max-L for a ceiling", options.steps or options.horizon
        )
    unit = planning.FLOPS_PER_UNIT if flops else 1
    budget = Budget(
        compute=_budget_number("compute", compute) / unit,
        tokens=_budget_number("tokens", tokens),
        max_M=_ceiling("max_M", max_M),
        max_N=_ceiling("max_N", max_N),
        max_P=_ceiling("max_P", max_P),
        max_L=_ceiling("max_L", max_L),
    )
    answer = planning.plan(
        options.build_teacher(),
        budget,
        schedule=dataclasses.replace(options, steps="1000000").build_schedule(),
        d=size("d", modes, infinite=True),
        eval_length=None if eval_length is None else int(size("eval_length", eval_length)),
        confirm=confirm,
        seed=seed,
    )
    if plot is not None:
        from seqlaw.plot import draw_plan

        draw_plan(answer, plot)
    fields = plan_fields(answer)
    if json:
        fields["flops"] = {"factor": planning.FLOPS_PER_UNIT, "given_in_flops": flops}
        inputs = {
            "teacher": options.build_teacher(),
            "budget": budget,
            "eval_length": eval_length,
            "seed": seed,
        }
        print_json("plan", inputs, fields)
        return
    _print_plan(answer, fields)


def plan_fields(answer: planning.Plan) -> dict[str, Any]:
    """The JSON fields of a plan."""
    law, best, risk = answer.corollary, answer.finite.best, answer.finite.risk
    return {
        "regime": answer.regime,
        "phase": answer.phase,
        "K": answer.K,
        "tau": answer.tau,
        "corollary": None
        if law is None
        else {
            **{s: answer.K ** getattr(law.exponents, s) for s in ("M", "N", "P")},
            "L": answer.K**law.exponents.R / answer.gamma,
            "exponents": dataclasses.asdict(law.exponents),
        },
        "program": {name: _program_fields(answer.programs[name], answer.K) for name in SETTINGS},
        "finite": {
            **{s: getattr(best, s) for s in ("M", "N", "P", "L", "compute", "tokens")},
            "terms": {name: getattr(risk, name) for name in (*TERMS, "reducible", "total")},
            "accuracy": dict(risk.accuracy),
            "eval_length": risk.eval_length,
            "flat": answer.finite.flat,
            "isoflop": [dataclasses.asdict(point) for point in answer.finite.isoflop],
        },
        "confirmation": None
        if answer.confirmation is None
        else {
            "reducible": answer.confirmation.reducible,
            "standard_error": answer.confirmation.standard_error.get("reducible"),
        },
        "notes": answer.notes,
        "flags": answer.flags,
    }


def _program_fields(result: Program | None, K: float) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        **{s: K ** getattr(result.exponents, s) for s in SIZES},
        "risk": result.exponents.risk,
        "exponents": dataclasses.asdict(result.exponents),
        "ranges": result.ranges,
        "binding": result.binding,
    }


def _print_plan(answer: planning.Plan, fields: dict[str, Any]) -> None:
    best, risk = answer.finite.best, answer.finite.risk
    tested = "its own length" if answer.eval_length is None else f"length {answer.eval_length}"
    print_table(
        [
            (s, f"{getattr(best, s):,}", *(f"{x:.3g}" for x in answer.finite.flat[s]))
            for s in ("M", "N", "P", "L")
        ],
        header=("size", "best", "1 % from", "to"),
        title=f"Regime {answer.regime}: least risk at compute {best.compute:.3g}, {best.tokens:.3g} tokens, "
        f"tested at {tested}",
    )
    rows = [(name, getattr(risk, name), risk.accuracy.get(name, "")) for name in (*TERMS, "reducible")]
    if answer.confirmation is not None:
        error = answer.confirmation.standard_error.get("reducible", math.nan)
        rows.append(("sampled", answer.confirmation.reducible, f"± {error:.2g}"))
    print_table(rows, header=("term", "value", "uncertainty"))
    if answer.corollary is not None:
        lines = [("corollary", answer.corollary.exponents)]
        lines += [(name, p.exponents) for name, p in answer.programs.items() if p is not None]
        print_table(
            [(name, *(f"{getattr(e, s):.4f}" for s in (*SIZES, "risk"))) for name, e in lines],
            header=("powers of K", *SIZES, "risk"),
            title=f"Rates at K = {answer.K:.3g}, tau = {answer.tau:.3g} ({answer.phase})",
        )
    for note in answer.notes:
        print(f"- {note}")
    print_flags(answer.flags)


@takes(SettingOptions)
def tradeoff(
    options: SettingOptions,
    tokens: Annotated[str, typer.Option(help="Tokens N·P to split.", metavar="NUMBER")] = "16777216",
    test: Annotated[
        list[str] | None,
        typer.Option(
            "--test", help="A common test length; may be repeated.  [default: 16, 4096]", metavar="INT"
        ),
    ] = None,
    longest: Annotated[str, typer.Option(help="Longest training length.", metavar="INT")] = "4096",
    points: Annotated[int, typer.Option(help="How many lengths.")] = 12,
    json: Json = False,
    plot: Plot = None,
) -> None:
    """Longer or more: the risk along P at N·P = T, tested at the own length and at common lengths.

    Example: seqlaw tradeoff --schedule block -L 30000 --plot longer-or-more.png
    """
    setting = options.build()
    budget = whole("tokens", _budget_number("tokens", tokens), least=2)
    common = [int(size("test", text)) for text in test or ("16", "4096")]
    if options.eval_length is not None:
        common = [setting.test_length]
    from seqlaw.planning.tradeoff import split_lengths

    lengths = split_lengths(
        budget, whole("points", points, least=2, most=1000), most=int(size("longest", longest))
    )
    answer = split_tokens(setting, budget, lengths=lengths, eval_lengths=common)
    flags = merge_flags(answer.flags)
    if plot is not None:
        from seqlaw.plot import draw_tradeoff

        others = [
            name
            for name, teacher in PRESETS.items()
            if options.teacher in PRESETS and teacher != setting.teacher
        ]
        answers = [answer]
        for name in others:  # both presets side by side
            other = dataclasses.replace(setting, teacher=PRESETS[name])
            answers.append(split_tokens(other, budget, lengths=lengths, eval_lengths=common))
        draw_tradeoff(answers, plot)
    if json:
        rows = [
            {
                k: getattr(row, k)
                for k in ("P", "N", "tested", "eval_length", "approx", "bias", "variance", "reducible")
            }
            for row in answer.rows
        ]
        print_json(
            "tradeoff",
            {"setting": setting, "tokens": budget},
            {"regime": answer.regime, "rows": rows, "best": answer.best, "flags": flags},
        )
        return
    names = [OWN, *(str(P) for P in common)]
    table = []
    for k, P in enumerate(lengths):
        table.append((P, budget // P, *(answer.curve(name)[k].reducible for name in names)))
    print_table(
        table,
        header=("P", "N", "tested at own length", *(f"at {P}" for P in common)),
        title=f"Regime {answer.regime}: reducible risk at {budget:,} tokens, M={setting.M}, "
        f"{setting.schedule.L} steps",
    )
    for name in names:
        low, high = answer.best[name]
        where = "its own length" if name == OWN else f"length {name}"
        print(f"tested at {where}: best P {low if low == high else f'{low} to {high}'}")
    print_flags(flags)
