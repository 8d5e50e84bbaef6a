"""`seqlaw measure`: exponents, regime and advice from real sequences."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from seqlaw.sequences.advise import advise
from seqlaw.sequences.held_out import HeldOut, held_out
from seqlaw.cli.options import Json, Plot, Seed, size
from seqlaw.cli.output import print_flags, print_json, print_table, print_text
from seqlaw.sequences.exponents import LAWS
from seqlaw.sequences.measure import LEVEL, Measurement
from seqlaw.sequences.measure import measure as measure_sequences
from seqlaw.sequences.saving import check_teacher_path
from seqlaw.sequences.saving import save_teacher as save
from seqlaw.sequences.verdict import LOOKS, data_words, regime_words
from seqlaw.model.amount import amount
from seqlaw.model.checks import InputError, positive
from seqlaw.model.schedule import GAMMA, STEPS, WSD

NUMBERS = ("alpha", "theta", "r", "rho", "c_xi", "c_0")


def measure(
    file: Annotated[str, typer.Argument(metavar="FILE", help="N x P x D sequences: .npy, .npz or .zarr.")],
    tokens: Annotated[str | None, typer.Option(help="Tokens T to advise on.", metavar="T")] = None,
    compute: Annotated[str | None, typer.Option(help="Compute N·P·M²·L to advise on.", metavar="C")] = None,
    width: Annotated[
        str | None,
        typer.Option(
            "--width",
            "-M",
            help="Width M to advise on.  [default: a quarter of the features, at most 128]",
            metavar="INT",
        ),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option("--steps", "-L", help="Steps L to advise on.  [default: 30000]", metavar="INT"),
    ] = None,
    eval_length: Annotated[
        str | None, typer.Option(help="Length P' of the test sequences.", metavar="INT")
    ] = None,
    check: Annotated[
        bool, typer.Option("--held-out", help="Train on subsets and compare the held-out loss.")
    ] = False,
    centre: Annotated[bool, typer.Option(help="Take the mean state away first.")] = True,
    save_teacher: Annotated[
        str | None,
        typer.Option(
            help="Save the measured spectra for the --teacher of plan, tradeoff and risk.",
            metavar="FILE.toml",
        ),
    ] = None,
    seed: Seed = 0,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Exponents, regime and advice from real sequences.

    Example: seqlaw measure states.npy --tokens 1e8 --eval-length 512
    """
    budgets: dict[str, Any] = {
        "tokens": None if tokens is None else positive("tokens", tokens),
        "compute": None if compute is None else positive("compute", compute),
        "eval_length": None if eval_length is None else int(size("eval_length", eval_length)),
    }
    M = None if width is None else int(size("M", width))
    L = None if steps is None else int(size("L", steps))
    asked = {"compute": compute, "M": width, "L": steps, "eval_length": eval_length}
    for field, value in asked.items():
        if value is not None and tokens is None:
            raise InputError(field, "needs --tokens beside it", value)
    for field, value in (("M", width), ("L", steps)):
        if value is not None and compute is not None:
            raise InputError(field, "cannot be given together with --compute, which chooses it", value)
    if plot is not None:
        from seqlaw.plot import check_path

        check_path(plot)
    if save_teacher is not None:
        check_teacher_path(save_teacher)
    found = measure_sequences(file, centre=centre, seed=seed)
    advice = advise(found, M=M, schedule=WSD(gamma=GAMMA, L=L or STEPS), **budgets)
    compared = held_out(file, seed=seed) if check else None
    if plot is not None:
        from seqlaw.plot import draw_spectra

        draw_spectra(found, plot)
    refusal = None
    if save_teacher is not None:
        try:
            save(found, save_teacher, source=file)
        except InputError as error:  # said after the measurement, which stands without the file
            refusal = InputError(error.field, f"saved nothing: it {error.rule}", error.value)
    saved = save_teacher if refusal is None else None
    if json:
        print_json(
            "measure",
            {"file": file, **budgets, "M": M, "L": L, "centre": centre, "seed": seed},
            _fields(found, advice.words, compared) | {"teacher_file": saved},
        )
    else:
        _print(found)
        for sentence in advice.words:
            print_text(sentence)
        if compared is not None:
            _print_held_out(compared)
        print_flags(found.flags)
        if saved is not None:
            print(f"{found.modes.d} modes saved: {saved}")
    if refusal is not None:
        sys.stdout.flush()
        raise refusal


def _fields(found: Measurement, words: tuple[str, ...], compared: HeldOut | None) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "N": found.N,
        "P": list(found.P),
        "states": list(found.P),
        "D": found.D,
        **{name: getattr(found, name) for name in NUMBERS},
        "regime": found.regime,
        "fit": {
            "window": found.window,
            "r2": found.r2,
            "band": found.band,
            "line": {
                name: {"exponent": exponent, "scale": scale}
                for name, (exponent, scale) in found.fitted.items()
            },
        },
        "features": found.seen,
        "reliable": found.reliable,
        "checks": found.checks,
        "advice": words,
        "flags": found.flags,
    }
    if compared is not None:
        fields["held_out"] = {
            "rows": compared.rows,
            "eval_length": compared.eval_length,
            "tokens": compared.tokens,
            "available": compared.available,
            "M": compared.M,
            "L": compared.schedule.L,
            "null": compared.null,
            "test_se": compared.test_se,
            "best": {"measured": compared.best[0], "predicted": compared.best[1]},
            "agreement": compared.agreement,
            "flags": compared.flags,
        }
    return fields


def _print(found: Measurement) -> None:
    print_text(data_words(found))
    print_text(f"{regime_words(found.regime)}; {LOOKS[found.seen]}")
    windows = {pair[0]: found.window.get(pair[0]) for pair in LAWS.values()}
    rows = []
    for name in NUMBERS:
        estimate, window = getattr(found, name), windows.get(name)
        cells = ["-" if x is None else x for x in (estimate.value, estimate.low, estimate.high)]
        fitted = "" if window is None else f"{window[0]}-{window[1]}, r2 {found.r2[name]:.3f}"
        rows.append((name, *cells, fitted))
    print_table(rows, header=("number", "value", "low", "high", "eigenvalues"))
    print_text(f"low to high: {LEVEL:.0%} interval; eigenvalues: those that were fitted, and how well.")
    holds = {True: "yes", False: "NO", None: ""}
    print_table(
        [(f"{c.name}: {c.words}", "-" if c.value is None else c.value, holds[c.holds]) for c in found.checks],
        header=("check", "value", "holds"),
    )


def _print_held_out(compared: HeldOut) -> None:
    print_table(
        [
            (
                amount(row.P),
                amount(row.N),
                row.measured,
                f"± {row.se:.2g}",
                row.predicted,
                row.measured / row.predicted,
            )
            for row in compared.rows
        ],
        header=("P", "N", "measured", "se", "predicted", "ratio"),
        title=f"Held-out loss at length {amount(compared.eval_length)} of students of width "
        f"{amount(compared.M)} (all features) after {amount(compared.schedule.L)} steps on "
        f"{amount(compared.tokens)} tokens (test sequences: ± {compared.test_se:.2g}, common to all; "
        f"predicting nothing: {compared.null:.5g})",
    )
    for sentence in compared.words:
        print_text(sentence)
    print_flags(compared.flags)
