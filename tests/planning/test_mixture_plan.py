"""A mixture held fixed in `tradeoff` and `plan`, beside single lengths."""

import math
import random
from dataclasses import replace

import pytest

from seqlaw import WSD, Budget, InputError, Lengths, Setting, plan, risk, tradeoff
from seqlaw.cli import main
from seqlaw.methods.equivalent import equivalent_risks
from seqlaw.model.lengths import documents
from seqlaw.planning.mixed import mixed

MIXTURE = Lengths((16, 1024), (0.7, 0.3))
BUDGET = Budget(compute=1e12, tokens=1e7)
LARGE = Budget(compute=3e15, tokens=1e7)  # where whole sequences have the shares to 1e-3
TERMS = ("approx", "bias", "variance", "cross", "reducible")


def student(**more):
    sizes = {"M": 32, "d": 256, "P": 2, "schedule": WSD(gamma=0.1, L=2000)} | more
    return Setting(teacher="regime2", **({"N": 1} if "batch" not in sizes else {}), **sizes)


@pytest.mark.parametrize("more", [{}, {"batch": 8}])
def test_one_length_as_a_mixture_is_the_row_of_that_length(more):
    tests = {"lengths": [4, 64], "eval_lengths": [16], "tune": False}  # steps are found to rounding only
    found = tradeoff(student(**more), 1e6, **tests, mixture=Lengths((64,), (1.0,)))
    for held in found.held:
        [row] = [row for row in found.curve(held.tested) if row.P == 64]
        # Points that are solved together are summed in another order: rounding of the risk's own size.
        for name in TERMS:
            near = pytest.approx(getattr(row, name), rel=1e-12, abs=1e-14 * row.reducible)
            assert getattr(held.risk, name) == near
        assert (held.setting.N, held.compute) == (row.N, row.compute)


def test_the_mixture_s_row_is_its_risk_and_its_ratio_that_of_the_best_length():
    found = tradeoff(student(), 1e6, lengths=[2, 64, 1024], eval_lengths=[16], mixture="16:0.7,1024:0.3")
    for held in found.held:
        tested = None if held.tested == "own" else int(held.tested)
        one = replace(held.setting, eval_length=tested)
        assert one.lengths == MIXTURE
        assert 1e6 - 2048 < one.tokens <= 1e6
        alone = risk(one)
        assert held.risk.reducible == pytest.approx(alone.reducible, rel=1e-9)  # one solve or three together
        least = min(row.reducible for row in found.curve(held.tested))
        assert held.ratio == least / held.risk.reducible == held.best.reducible / held.risk.reducible
    own, common = found.held
    assert own.risk.eval_length == own.setting.P  # tested on the mixture, as `risk` is
    assert common.risk.eval_length == 16
    assert str(found).startswith("Trained on 16:0.7 + 1,024:0.3: tested as trained")


def test_a_ceiling_on_the_compute_counts_whole_sequences():
    found = tradeoff(student(), 1e7, lengths=[64], eval_lengths=[], compute=1e12, mixture=MIXTURE)
    [held] = found.held
    assert held.compute == held.setting.tokens * 32**2 * 2000 <= 1e12
    assert held.compute > 0.99e12


def test_one_length_as_a_mixture_is_the_plan_at_that_length():
    held = plan("regime2", BUDGET, d=256, lengths=Lengths((64,), (1.0,)))
    alone = plan("regime2", replace(BUDGET, min_P=64, max_P=64), d=256)
    assert held.finite == alone.finite
    assert held.setting == alone.setting
    free = plan("regime2", BUDGET, d=256)
    assert held.single == free.finite
    assert held.ratio == free.finite.risk.reducible / alone.finite.risk.reducible < 1


@pytest.mark.parametrize("tested", [None, pytest.param(256, marks=pytest.mark.slow)])
def test_no_allocation_of_the_mixture_is_better(tested):
    found = plan("regime2", LARGE, d=256, eval_length=tested, lengths=MIXTURE)
    best, one = found.finite.best, found.setting
    assert one.lengths == MIXTURE
    assert (best.M, best.N, best.L, best.tokens) == (one.M, one.N, one.schedule.L, one.tokens)
    assert best.compute == pytest.approx(best.tokens * best.M**2 * best.L, rel=1e-12)
    assert best.compute <= LARGE.compute
    assert best.tokens <= LARGE.tokens
    assert found.finite.risk.reducible == pytest.approx(risk(one).reducible, rel=1e-9)
    budget, draw, tried = mixed(LARGE, MIXTURE), random.Random(0), []
    while len(tried) < 200:  # half of them all over the box, half round the optimum
        wide = len(tried) % 2
        M = min(256, round(best.M * math.exp(draw.uniform(-1, 1) * (3 if wide else 0.3))))
        N = round(best.N * math.exp(draw.uniform(-1, 1) * (3 if wide else 0.3)))
        if M and N >= budget.fewest:
            counted = MIXTURE.counted(N)
            L = int(LARGE.compute / (counted.tokens * M**2) * draw.choice([1, 1, 0.9, 0.5]))
            if L >= 20 and counted.tokens <= LARGE.tokens:
                assert budget.allows(M, N, 23, L)
                tried.append(replace(one, M=M, N=N, schedule=one.schedule.with_steps(L)))
    others = equivalent_risks(tried, quick=True)
    # Quick sums are right to 2e-4, and so is where the search stops.
    assert min(other.reducible for other in others) > best.reducible * (1 - 5e-4)


def test_what_a_run_costs_is_that_of_its_sequences():
    """Attention: cost in P² a sequence, and a part that does not grow with N."""
    budget = mixed(Budget(compute=1e12, tokens=1e7, cost="N*P*L*M**2*(1 + P/100) + 7*L*M*P"), MIXTURE)
    few, many = MIXTURE.counted(1000).counts
    each = [n * P * 20 * 9 * (1 + P / 100) for n, P in ((few, 16), (many, 1024))]
    flat = 7 * 20 * 3 * (few * 16 + many * 1024) / 1000
    assert budget.spent(M=3, N=1000, P=1, L=20) == pytest.approx(sum(each) + flat, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("plan --lengths 16:0.7,1024:0.3 --one-pass", "--lengths cannot be given with --one-pass"),
        (
            "plan --one-pass --precondition 0.5",
            "--precondition works with the full batch only here; for mini-batches ask `tradeoff --batch b "
            "--precondition p`, got 0.5",
        ),
        ("plan --epochs 2 --precondition 0.5", "--precondition works with the full batch only here"),
        ("plan --epochs 2 --flops", "--flops works with the full batch only: leave it out with --epochs\n"),
        ("plan --one-pass --flops", "--flops works with the full batch only: leave it out with --one-pass\n"),
        ("plan --one-pass --confirm", "--confirm works with the full batch only"),
        ("plan --epochs bets", "--epochs must be a number or best, got bets"),
        ("plan --lengths 16:0.7,1024:0.3 --alpha 1.7:1.9", "--lengths must be left out where the teacher"),
        ("plan --lengths 16:0.7,1024:0.3 --tokens 1000", "--tokens must hold 76 sequences"),
        ("plan --window 16", "--window goes with a file of lengths"),
        ("tradeoff --lengths 16:0.7,1024:0.3 --batch 8", "--batch must be at least 76"),
        (
            "tradeoff --lengths 16:0.7,1024:0.3 --compute 1e10 --points 2 --max-P 4",
            "--compute must allow 76",
        ),
    ],
)
def test_what_is_refused_is_one_line(options, words, capsys):
    with pytest.raises(SystemExit) as stop:
        main(options.split())
    assert stop.value.code == 2
    line = capsys.readouterr().err
    assert words in line
    assert line.count("\n") == 1


def test_phases_are_no_mixture():
    with pytest.raises(InputError, match="lengths must be a mixture"):
        plan("regime2", BUDGET, lengths="2:0.5 then 16:0.5")


def test_lengths_are_named_as_they_are_trained_on(tmp_path):
    """Of a file's lengths the rarest have no sequence among few: the sentence has those that have."""
    lengths = documents({P: 1 + 4096 // P for P in range(4, 513, 4)})
    found = tradeoff(
        Setting(teacher="regime2", M=8, P=2, batch=64, d=32, schedule="constant"),
        200_000, lengths=[2, 64], eval_lengths=[64], mixture=lengths,
    )  # fmt: skip
    trained = found.held[0].setting.P
    assert trained.words != lengths.words
    assert f"Trained on {trained.words}: " in " ".join(str(found).split())
