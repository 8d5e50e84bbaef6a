"""`seqlaw rates`: the theorem at one point."""

from __future__ import annotations

import dataclasses

from seqlaw.cli.options import (
    Json,
    SettingOptions,
    takes,
)
from seqlaw.cli.output import (
    number,
    print_flags,
    print_json,
    print_table,
    print_text,
)
from seqlaw.cli.risk import regime_words
from seqlaw.rungs.rates import rates as theorem

REMAINDER = {
    "d_eff": "learned dimensions, min(M, kappa)",
    "epsilon_M": "error of bias and variance from the sketch",
    "omega_0": "the initialization's share in mode M",
    "covariance_event": "bound on the sample covariance's relative error",
}
"""What the theorem's remainders are, in a few words each."""


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
    print_text(options.describe(setting.teacher))
    print(f"{regime_words(setting)}: beta_alpha = {answer.beta_alpha:g}, beta_theta = {answer.beta_theta:g}")
    print_table(
        [
            (name, " ".join(f"{s}^{e:.4g}" for s, e in powers.items()), answer.values[name])
            for name, powers in answer.exponents.items()
        ],
        header=("term", "order here", "value without constants"),
    )
    print_table(answer.crossovers.items(), header=("crossover", "value"))
    print_table(
        [(f"{name}: {REMAINDER[name]}", value) for name, value in answer.remainder.items()],
        header=("remainder, at constants of one", "value"),
    )
    print_table(answer.guides.items(), header=("the paper's guide, with scales", "value"))
    print_table(
        [
            (
                c.name,
                *(
                    "" if x is None else number(float(f"{x:.4g}"))
                    for x in (c.value, c.needed, c.ratio_scaled)
                ),
                {True: "yes", False: "NO", None: "?"}[c.holds],
            )
            for c in answer.conditions
        ],
        header=("condition", "value", "needed", "scaled", "holds"),
    )
    print_text(
        "?: up to a constant that the theorem does not name; scaled: value over needed, with c_xi and c_0."
    )
    if all(condition.holds is not False for condition in answer.conditions):
        print_text(answer.statement)
    print_flags(answer.flags)
