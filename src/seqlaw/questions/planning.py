"""What to do with a budget: the best allocation, longer or more, and lengths that change."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from seqlaw.answers.ladder import ladder, ladder_curve
from seqlaw.answers.plan import plan
from seqlaw.answers.tradeoff import tradeoff
from seqlaw.files import load_teacher
from seqlaw.model.checks import InputError, whole
from seqlaw.model.network import as_network
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import LONGEST, Modes, Teacher
from seqlaw.model.threads import cores
from seqlaw.model.uncertain import Uncertain
from seqlaw.planning.budget import PAPER_COST, Budget
from seqlaw.planning.ladder import CANDIDATES
from seqlaw.planning.plan import FLOPS_PER_UNIT
from seqlaw.planning.tradeoff import split_lengths, usable
from seqlaw.planning.uncertain import DRAWS
from seqlaw.questions.groups import (
    OfBatch,
    OfMethod,
    OfMomentum,
    OfPower,
    OfShape,
    OfSteps,
    OfStudent,
    OfTeacher,
    batch,
    cost,
    load_mixture,
    mixture,
    modes,
    network,
    network_size,
    optimizer,
    peak_step,
    seed,
    test_length,
    width,
    window,
)
from seqlaw.questions.options import (
    BUDGET,
    FLAG,
    METHOD,
    NUMBERS,
    OUTPUT,
    POSITIVE,
    RANGE,
    SIZE,
    SIZES,
    STUDENT,
    TEXT,
    Slider,
    option,
)
from seqlaw.questions.question import Call


def _ceiling(name: str, help: str, high: float) -> Any:
    """A limit of one size."""
    slider = Slider(low=2, high=high, right="", placeholder="no limit")
    return option(
        math.inf,
        f"--{name.replace('_', '-')}",
        help,
        SIZE,
        BUDGET,
        unless="no limit",
        words="at most",
        slider=slider,
    )


@dataclass(frozen=True, kw_only=True)
class Plan(OfPower, OfShape, OfTeacher):
    """The best allocation of a budget.

    A teacher's number may be an interval, LOW:HIGH. The answer then says how far the best sizes move and what
    a single choice loses. With --lengths a mixture is held fixed and compared with the best single length (of
    --min-P to --max-P).
    """

    command = "plan"
    example = "seqlaw plan --compute 1e18 --tokens 1e10 --eval-length 4096 --alpha 1.7:1.9"
    unit = "data sets"
    pictured = True
    verbose = True

    compute: float = option(
        1e15, "--compute", "Compute C = N·P·M²·L.", POSITIVE, BUDGET,
        words="compute N·P·M²·L", slider=Slider(low=1e6, high=1e26),
    )  # fmt: skip
    tokens: float = option(
        1e9, "--tokens", "Tokens T that may be used.", POSITIVE, BUDGET,
        words="tokens N·P", slider=Slider(low=100, high=1e15),
    )  # fmt: skip
    one_pass: bool = option(
        False,
        "--one-pass",
        "Train once through the data: chooses the batch and the step too.",
        FLAG,
        BUDGET,
        web=False,
    )
    flops: bool = option(
        False, "--flops", f"--compute is in FLOPs, {FLOPS_PER_UNIT} a unit.", FLAG, BUDGET, web=False
    )
    gamma: float | str = peak_step("best")
    cost: str = cost()
    max_M: float = _ceiling("max_M", "Widest student.", 1e6)
    max_N: float = _ceiling("max_N", "Most trajectories.", 1e12)
    max_P: float = _ceiling("max_P", "Longest trajectory.", 1e9)
    max_L: float = _ceiling("max_L", "Most steps.", 1e12)
    min_P: int = option(
        1, "--min-P", "Shortest trajectory (below 2 means 2).", SIZE, BUDGET,
        words="at least", slider=Slider(low=2, high=1e9, left="", placeholder="no limit"),
    )  # fmt: skip
    d: float | None = modes("inf, so that d never limits M")
    eval_length: int | None = test_length("the training length")
    lengths: str | None = mixture()
    window: int | None = window()
    confirm: bool = option(
        False, "--confirm/--no-confirm", "Also sample the optimum (takes minutes).", FLAG, METHOD, web=False
    )
    draws: int = option(
        DRAWS, "--draws", "Teachers drawn where a number is an interval.", SIZE, METHOD, web=False
    )
    seed: int = seed(web=False)

    def budget(self) -> Budget:
        """The ceilings."""
        if self.flops and self.cost != PAPER_COST:
            raise InputError("flops", f"goes with the paper's cost, {PAPER_COST}, only", self.cost)
        if self.min_P > self.max_P:
            raise InputError("min_P", f"must be at most --max-P = {self.max_P}", self.min_P)
        limits = {name: getattr(self, name) for name in ("max_M", "max_N", "max_P", "max_L", "min_P", "cost")}
        unit = FLOPS_PER_UNIT if self.flops else 1
        return Budget(compute=self.compute / unit, tokens=self.tokens, **limits)

    def call(self) -> Call:
        several = load_mixture(self.lengths, self.window)
        if self.one_pass:
            if several is not None:
                rule = "cannot be given with --one-pass; risk --batch and tradeoff --batch take a mixture"
                raise InputError("lengths", rule, self.lengths)
            for name in ("confirm", "flops"):
                if getattr(self, name):
                    raise InputError(name, "cannot be given with --one-pass", True)
            if not self.tune:
                raise InputError("gamma", "is chosen by --one-pass: leave it out", self.gamma)
            teacher: Any = self.build_teacher("must be one number with --one-pass")
        else:
            teacher = self.build_uncertain()
        return self.passed(
            plan,
            teacher=teacher,
            budget=self.budget(),
            schedule=self.build_schedule(),
            tune=self.tune,
            lengths=several,
            workers=cores(),
        )

    def counted(self) -> str:
        return "teachers" if isinstance(self.build_uncertain(), Uncertain) else self.unit


@dataclass(frozen=True, kw_only=True)
class Tradeoff(OfMethod, OfPower, OfMomentum, OfShape, OfBatch, OfSteps, OfStudent):
    """Longer or more: the risk along P at a fixed number of tokens.

    Each student is tested at its own training length, as in the paper, and at common lengths. With
    --lengths a mixture with the same tokens stands beside the single lengths.
    """

    command = "tradeoff"
    example = "seqlaw tradeoff --schedule block -L 30000 --plot longer-or-more.png"
    unit = "data sets"
    pictured = True

    tokens: int = option(
        2**24, "--tokens", "Tokens N·P to split.", POSITIVE, BUDGET,
        words="tokens N·P", slider=Slider(low=100, high=1e12),
    )  # fmt: skip
    compute: float | None = option(
        None, "--compute", "Compute that no run may exceed.", POSITIVE, BUDGET, unless="any", web=False
    )
    cost: str = cost(web=False)
    eval_length: tuple[int, ...] = option(
        (16, 4096), "--eval-length", "A common test length; may be repeated.", SIZE, STUDENT,
        repeated=True, unless="16, 4096", words="test lengths",
    )  # fmt: skip
    min_P: int = option(2, "--min-P", "Shortest training length.", SIZE, RANGE, web=False)
    max_P: int | None = option(
        None, "--max-P", "Longest training length.", SIZE, RANGE,
        unless="4096, or what the tokens allow", web=False,
    )  # fmt: skip
    points: int = option(12, "--points", "How many lengths.", SIZE, RANGE)
    gamma: float | str = peak_step("best")
    lengths: str | None = mixture()
    window: int | None = window()
    optimizer: str | None = optimizer()
    network: str | None = network()
    hidden: int | None = network_size("hidden", "Hidden width of the network.")
    depth: int | None = network_size("depth", "Layers of the network.")
    compare: tuple[str, ...] = option(
        (), "--compare", "Another teacher, drawn beside it by --plot; may be repeated.", TEXT, OUTPUT,
        metavar="TEACHER", repeated=True, web=False,
    )  # fmt: skip

    def setting(self) -> Setting:
        """The student; its N and P are what varies."""
        if self.tune and self.R is not None:
            raise InputError("gamma", "must be a number with -R/--horizon, whose steps it sets", self.gamma)
        if self.batch is not None and (self.L or self.R):
            rule = "set the steps with --batch: leave out -L/--steps and -R/--horizon"
            raise InputError("tokens", rule, self.tokens)
        N = 1 if self.batch is None else None
        student = as_network("network", self.network, hidden=self.hidden, depth=self.depth)
        return self.build(self.build_schedule(), N=N, P=2, eval_length=None, lengths=None, network=student)

    def singles(self, setting: Setting) -> list[int]:
        """The training lengths."""
        budget, least = whole("tokens", self.tokens, least=2), self.min_P
        most = None if self.max_P is None else whole("max_P", self.max_P, least=2, most=LONGEST)
        if most is None and self.window is not None:
            most = min(budget, self.window)  # no single length is longer than the context
        if most is not None and most > budget:
            raise InputError("max_P", f"must be at most the tokens, {budget}", most)
        for limit, words in ((budget, "the tokens"), (most or budget, "--max-P")):
            if least > limit:
                raise InputError("min_P", f"must be at most {words}, {limit}", least)
        whole("points", self.points, least=2, most=1000)
        spent = usable(setting, budget, self.compute, self.cost)
        return split_lengths(setting, spent, self.points, least=least, most=most)

    def call(self) -> Call:
        setting = self.setting()
        return self.passed(
            tradeoff,
            setting=setting,
            tokens=whole("tokens", self.tokens, least=2),
            lengths=self.singles(setting),
            eval_lengths=self.eval_length,
            tune=self.tune,
            workers=self.cores(),
            mixture=load_mixture(self.lengths, self.window),
            compare=[_compared(one) for one in self.compare],
        )


def _compared(source: str) -> Teacher | Modes:
    """Another teacher, whose errors name the option that gave it."""
    try:
        return load_teacher(source)
    except InputError as error:
        raise InputError("compare", error.rule, error.value) if error.field == "teacher" else error from None


_WIDTH, _MODES = 96, 768


@dataclass(frozen=True, kw_only=True)
class Ladder(OfShape, OfSteps, OfStudent):
    """Lengths that change: the best length, mixture and ladder.

    A ladder trains on lengths in phases, such as short first and long last. All students have the same
    tokens, steps, schedule and test. With --shares: two candidates, short first, long first and mixed.
    """

    command = "ladder"
    example = "seqlaw ladder --tokens 1e8 --eval-length 1024 --candidates 2,32,1024"
    pictured = True

    tokens: int = option(
        2**24, "--tokens", "Tokens to train on.", POSITIVE, BUDGET,
        words="tokens", slider=Slider(low=1e3, high=1e12),
    )  # fmt: skip
    candidates: tuple[int, ...] | None = option(
        None, "--candidates", "Lengths to choose from.", SIZES, RANGE, metavar="P,P,…",
        unless=f"{SIZES.write(CANDIDATES)}, with --shares 2,4096",
    )  # fmt: skip
    most_phases: int = option(
        2, "--most-phases", "The most phases of a ladder, and lengths of a mixture.", SIZE, RANGE
    )
    shares: tuple[float, ...] | None = option(
        None, "--shares", "Instead a curve: two candidates, at these shares of the longer.", NUMBERS, RANGE,
        metavar="SHARE,…",
    )  # fmt: skip
    M: int | None = width(str(_WIDTH))
    d: float | None = modes(str(_MODES), slider=Slider(low=16, high=1024))
    eval_length: int | None = test_length("4096")
    gamma: float | str = peak_step("best")
    batch: int | None = batch(
        "One pass: sequences a step at the longest candidate; the others have as many tokens."
    )
    sketches: int | None = option(
        None, "--sketches", "Sketches to average over.", SIZE, METHOD, unless="8, in a curve 4"
    )
    seed: int = seed()
    export: str | None = option(
        None, "--export", "Write the phases (length, batch, steps): .toml or .json.", TEXT, OUTPUT,
        metavar="FILE", web=False, echo=False,
    )  # fmt: skip

    def sizes(self, teacher: Any) -> dict[str, Any]:
        if isinstance(teacher, Modes):
            return {"d": self.d, "M": self.M or min(_WIDTH, max(1, teacher.d // 4))}
        return {"d": self.d or _MODES, "M": self.M or _WIDTH}

    def setting(self) -> Setting:
        """The student; its lengths are what is asked for."""
        if self.tune and self.R is not None:
            raise InputError("gamma", "must be a number with -R/--horizon, whose steps it sets", self.gamma)
        if self.d == math.inf:
            raise InputError("d", "must be finite", self.d)
        N = 1 if self.batch is None else None
        return self.build(self.build_schedule(), N=N, P=2, eval_length=self.eval_length or 4096)

    def call(self) -> Call:
        setting = self.setting()
        if setting.batch is not None and (self.L or self.R):
            rule = "set the steps with --batch: leave out -L/--steps and -R/--horizon"
            raise InputError("tokens", rule, self.tokens)
        function, candidates, sketches = (
            (ladder, CANDIDATES, 8) if self.shares is None else (ladder_curve, (2, 4096), 4)
        )
        return self.passed(
            function,
            setting=setting,
            tokens=whole("tokens", self.tokens, least=2),
            tune=self.tune,
            candidates=list(self.candidates or candidates),
            sketches=self.sketches or sketches,
        )
