"""What to do with a budget: the best allocation, longer or more, and lengths that change."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from seqlaw.answers.ladder import check_export, ladder, ladder_curve
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
    OfSetting,
    OfShape,
    OfSteps,
    OfStudent,
    OfTeacher,
    load_mixture,
)
from seqlaw.questions.options import (
    BUDGET,
    METHOD,
    OUTPUT,
    POSITIVE,
    RANGE,
    SIZE,
    SIZES,
    STUDENT,
    Slider,
    like,
    option,
)
from seqlaw.questions.question import Call


def _ceiling(name: str, help: str, high: float) -> Any:
    """A limit of one size."""
    slider = Slider(2, high, right="", placeholder="no limit")
    return option(
        math.inf, help, BUDGET, names=f"--{name.replace('_', '-')}", kind=SIZE, unless="no limit",
        words="at most", slider=slider,
    )  # fmt: skip


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
        1e15, "Compute C = N·P·M²·L.", BUDGET, kind=POSITIVE, words="compute N·P·M²·L",
        slider=Slider(1e6, 1e26),
    )  # fmt: skip
    tokens: float = option(
        1e9, "Tokens T that may be used.", BUDGET, kind=POSITIVE, words="tokens N·P", slider=Slider(100, 1e15)
    )
    one_pass: bool = option(
        False, "Train once through the data: chooses the batch and the step too.", BUDGET, web=False
    )
    epochs: int | str | None = option(
        None, "Mini-batches: how often each sequence is used; chooses the batch too.", BUDGET,
        unless="full batch", web=False,
    )  # fmt: skip
    batch: int | None = option(None, "With --epochs: sequences a step.", BUDGET, unless="chosen", web=False)
    flops: bool = option(False, f"--compute is in FLOPs, {FLOPS_PER_UNIT} a unit.", BUDGET, web=False)
    gamma: float | str = like(OfSetting, "gamma", "best")
    cost: str = option(
        PAPER_COST, "Compute of a run: arithmetic in M, N, P, L, linear in N.", BUDGET, metavar="FORMULA"
    )
    max_M: float = _ceiling("max_M", "Widest student.", 1e6)
    max_N: float = _ceiling("max_N", "Most trajectories.", 1e12)
    max_P: float = _ceiling("max_P", "Longest trajectory.", 1e9)
    max_L: float = _ceiling("max_L", "Most steps.", 1e12)
    min_P: int = option(
        1, "Shortest trajectory (below 2 means 2).", BUDGET, words="at least",
        slider=Slider(2, 1e9, left="", placeholder="no limit"),
    )  # fmt: skip
    d: float | None = like(OfStudent, "d", None, unless="inf, so that d never limits M")
    eval_length: int | None = like(OfSetting, "eval_length", None, unless="the training length")
    lengths: str | None = like(OfSetting, "lengths", None)
    window: int | None = like(OfSetting, "window", None)
    confirm: bool = option(
        False, "Also sample the optimum (takes minutes).", METHOD, names="--confirm/--no-confirm", web=False
    )
    draws: int = option(DRAWS, "Teachers drawn where a number is an interval.", METHOD, web=False)
    seed: int = like(OfMethod, "seed", 0, web=False)

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
        mini = next((name for name in ("one_pass", "epochs") if getattr(self, name)), None)
        if mini is not None:
            way = f"--{mini.replace('_', '-')}"
            if several is not None:
                rule = f"cannot be given with {way}; risk --batch and tradeoff --batch take a mixture"
                raise InputError("lengths", rule, self.lengths)
            if self.precondition:
                ask = "for mini-batches ask `tradeoff --batch b --precondition p`"
                rule = f"works with the full batch only here; {ask}"
                raise InputError("precondition", rule, self.precondition)
            for name in ("confirm", "flops"):
                if getattr(self, name):
                    raise InputError(name, f"works with the full batch only: leave it out with {way}", None)
            if not self.tune:
                raise InputError("gamma", f"is chosen by {way}: leave it out", self.gamma)
            teacher: Any = self.build_teacher(f"must be one number with {way}")
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
        2**24, "Tokens N·P to split.", BUDGET, kind=POSITIVE, words="tokens N·P", slider=Slider(100, 1e12)
    )
    compute: float | None = option(
        None, "Compute that no run may exceed.", BUDGET, kind=POSITIVE, unless="any", web=False
    )
    cost: str = like(Plan, "cost", PAPER_COST, web=False)
    eval_length: tuple[int, ...] = option(
        (16, 4096), "A common test length; may be repeated.", STUDENT, repeated=True, unless="16, 4096",
        words="test lengths",
    )  # fmt: skip
    min_P: int = option(2, "Shortest training length.", RANGE, web=False)
    max_P: int | None = option(
        None, "Longest training length.", RANGE, unless="4096, or what the tokens allow", web=False
    )
    points: int = option(12, "How many lengths.", RANGE)
    gamma: float | str = like(OfSetting, "gamma", "best")
    lengths: str | None = like(OfSetting, "lengths", None)
    window: int | None = like(OfSetting, "window", None)
    optimizer: str | None = like(OfSetting, "optimizer", None)
    network: str | None = like(OfSetting, "network", None)
    hidden: int | None = like(OfSetting, "hidden", None)
    depth: int | None = like(OfSetting, "depth", None)
    compare: tuple[str, ...] = option(
        (), "Another teacher, drawn beside it by --plot; may be repeated.", OUTPUT, metavar="TEACHER",
        repeated=True, web=False,
    )  # fmt: skip

    def setting(self) -> Setting:
        """The student; its N and P are what varies."""
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
        2**24, "Tokens to train on.", BUDGET, kind=POSITIVE, words="tokens", slider=Slider(1e3, 1e12)
    )
    candidates: tuple[int, ...] | None = option(
        None, "Lengths to choose from.", RANGE, metavar="P,P,…",
        unless=f"{SIZES.write(CANDIDATES)}, with --shares 2,4096",
    )  # fmt: skip
    most_phases: int = option(2, "The most phases of a ladder, and lengths of a mixture.", RANGE)
    shares: tuple[float, ...] | None = option(
        None, "Instead a curve: two candidates, at these shares of the longer.", RANGE, metavar="SHARE,…"
    )
    M: int | None = like(OfStudent, "M", None, unless=str(_WIDTH))
    d: float | None = like(OfStudent, "d", None, unless=str(_MODES), slider=Slider(16, 1024))
    eval_length: int | None = like(OfSetting, "eval_length", None, unless="4096")
    gamma: float | str = like(OfSetting, "gamma", "best")
    batch: int | None = like(
        OfBatch, "batch", None,
        help="One pass: sequences a step at the longest candidate; the others have as many tokens.",
    )  # fmt: skip
    sketches: int | None = option(None, "Sketches to average over.", METHOD, unless="8, in a curve 4")
    seed: int = like(OfMethod, "seed", 0)
    export: str | None = option(
        None, "Write the phases (length, batch, steps): .toml or .json.", OUTPUT, metavar="FILE", web=False,
        echo=False,
    )  # fmt: skip

    def sizes(self, teacher: Any) -> dict[str, Any]:
        if isinstance(teacher, Modes):
            return {"d": self.d, "M": self.M or min(_WIDTH, max(1, teacher.d // 4))}
        return {"d": self.d or _MODES, "M": self.M or _WIDTH}

    def setting(self) -> Setting:
        """The student; its lengths are what is asked for."""
        if self.d == math.inf:
            raise InputError("d", "must be finite", self.d)
        N = 1 if self.batch is None else None
        return self.build(self.build_schedule(), N=N, P=2, eval_length=self.eval_length or 4096)

    def call(self) -> Call:
        if self.export is not None:
            check_export(self.export)
            if self.shares is not None:
                raise InputError("export", "goes without --shares, which chooses no ladder", self.export)
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

    def write(self, found: Any) -> list[str]:
        if self.export is None:
            return []
        found.export(self.export)
        return [f"phases: {self.export}"]
