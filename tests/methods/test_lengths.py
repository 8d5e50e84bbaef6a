"""Mixtures of lengths and lengths that change: closed forms against simulation and plain recursions."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest

import seqlaw
from recursions import ladder_recursion, score_covariance
from rows_of import check_means
from seqlaw.answers.ladder import ladder_curve
from seqlaw.cli import main
from seqlaw.files import load_lengths
from seqlaw.methods import trajectories
from seqlaw.methods.ask import METHODS
from seqlaw.methods.equivalent import equivalent_risk
from seqlaw.methods.method import Draws
from seqlaw.methods.one_pass.exact import carried_student
from seqlaw.methods.one_pass.law import between
from seqlaw.methods.one_pass.noise import sketch_directions, step_noise
from seqlaw.methods.one_pass.step import stepped
from seqlaw.methods.one_pass.tuning import best_step
from seqlaw.methods.score import lag_sums, score
from seqlaw.methods.stage import at_rest, full_batch, parts_of
from seqlaw.methods.workbench import LagSums, Workbench
from seqlaw.model.lengths import Lengths, averaged, documents, parse
from seqlaw.model.momentum import Momentum
from seqlaw.model.pieces import Part, Pieces, stretches
from seqlaw.model.schedule import WSD, BlockDecay, Constant, Cosine
from seqlaw.model.setting import Setting
from seqlaw.model.sketch import gaussian_sketch, sketched_problem
from seqlaw.planning.ladder import presets
from seqlaw.planning.trials import Bench, Runs, Trial
from seqlaw.sweeping.codec import setting_of, task_of
from stated import exact_on, trained_in_phases

MODES = seqlaw.PRESETS["regime2"].modes(48)


def setting(P, **more):
    sizes = {"teacher": "regime2", "M": 12, "d": 48, "schedule": Constant(gamma=0.1, L=500)}
    return Setting(P=P, **(sizes | ({} if "batch" in more else {"N": 600}) | more))


def excess(one, method, **draws):
    """Rows of approx + bias + variance + cross, sketch by sketch."""
    rows = METHODS[method].rows([one], Draws(**draws))
    return np.array([row["reducible"] for row in rows])


def agree(one, repetitions, sketch=0, *, most=5.0):
    """`exact` within so many standard errors of `sampled`, on one sketch: the number, its error."""
    drawn = excess(one, "sampled", sketches=[sketch], repetitions=repetitions)
    (closed,) = excess(one, "exact", sketches=[sketch])
    error = drawn.std(ddof=1) / np.sqrt(drawn.size)
    assert abs(drawn.mean() - closed) < most * error, (str(one.P), drawn.mean(), closed, error)
    return closed, error


# Lengths


def test_text_and_back():
    mixture, phases = parse("16:0.7,1024:0.3"), parse("2:0.9,4096:0.1", phases=True)
    for one in (mixture, phases, Lengths((2, 3, 5), (1 / 3, 1 / 3, 1 / 3))):
        assert parse(str(one)) == one
    assert mixture.mean == pytest.approx(1 / (0.7 / 16 + 0.3 / 1024))
    assert phases.steps(1000) == (900, 100)
    assert phases.words == "2:0.9 → 4,096:0.1"


def test_whole_sequences_have_the_shares_that_they_have():
    one = setting("16:0.7,1024:0.3", N=4096)
    assert one.P.counts == (4069, 27)
    assert one.tokens == 4069 * 16 + 27 * 1024
    assert one.P.shares[1] == 27 * 1024 / one.tokens
    assert replace(one, N=100_000).P.shares[1] == pytest.approx(
        0.3, abs=2e-4
    )  # made anew from what was asked
    assert replace(one, P=8).lengths is None
    given = documents({16: 4069, 1024: 27})
    assert setting(given, N=4096).P.counts == (4069, 27)


def test_no_single_length_is_longer_than_the_window(tmp_path, capsys):
    (tmp_path / "docs.txt").write_text("\n".join(["100", "300", "900"] * 50))
    line = [
        "tradeoff",
        "--lengths",
        str(tmp_path / "docs.txt"),
        "--window",
        "512",
        "--tokens",
        "1e6",
        "--json",
    ]
    with pytest.raises(SystemExit):
        main([*line, "-M", "16", "-d", "64", "--points", "4", "--json"])
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert max(row["P"] for row in rows) == 512


def test_many_different_lengths_take_seconds_and_not_minutes(tmp_path):
    """100 000 took more than 40 s: the least and the largest were looked for at each."""
    path = tmp_path / "lengths.csv"
    path.write_text("\n".join(map(str, range(2, 100_002))))
    start = time.process_time()
    found = load_lengths(str(path))
    assert time.process_time() - start < 8  # 1.4 s on a core of 2024
    assert len(found.lengths) <= 64
    assert found.mean == pytest.approx(100_003 / 2, rel=1e-3)  # of the documents, but for whole lengths
    with pytest.raises(seqlaw.InputError, match="must be at most 64 lengths"):
        parse(",".join(f"{P}:{1 / 20_000!r}" for P in range(1, 20_001)))
    start = time.process_time()
    with pytest.raises(seqlaw.InputError, match="must name every length once, got 7"):
        parse(",".join(f"{P % 10_000 + 7}:{1 / 20_000!r}" for P in range(20_000)))
    assert time.process_time() - start < 4


def test_a_window_cuts_documents():
    found = documents({100: 3, 5000: 2, 7: 1}, 1024)
    tokens = {7: 7, 100: 300, 904: 2 * 904, 1024: 8 * 1024}
    assert found.lengths == tuple(tokens)
    assert found.shares == pytest.approx([size / sum(tokens.values()) for size in tokens.values()])
    many = {int(P): 1 for P in np.unique(np.random.default_rng(0).integers(1, 30_000, 3000))}
    binned = documents(many, 4096)
    assert len(binned.lengths) <= 64
    cut = [(4096, P // 4096) for P in many if P >= 4096] + [(P % 4096, 1) for P in many if P % 4096]
    h = sum(n * P * MODES.averaged(P) for P, n in cut) / sum(many)
    # Bins of a tenth of an e-fold: the average over them is smooth.
    assert averaged(MODES, binned) == pytest.approx(h, rel=1e-3)


def test_counts_add_up_whatever_the_shares():
    rng = np.random.default_rng(0)
    for _ in range(200):
        P = tuple(int(length) for length in np.unique(rng.integers(1, 100, 9)))
        shares = rng.random(len(P)) ** 3
        asked, N = Lengths(P, tuple((shares / shares.sum()).tolist())), int(rng.integers(9, 200))
        try:
            found = asked.counted(N)
        except seqlaw.InputError as error:
            assert "to hold a sequence of each length" in error.rule  # noqa: PT017
            continue
        assert sum(found.counts) == N
        assert min(found.counts) >= 1
        lost = 1 - sum(share for length, share in asked if length in found.lengths)
        assert lost < 0.01


def test_a_file_of_lengths(tmp_path):
    path = tmp_path / "lengths.csv"
    path.write_text("length,count\n100,3\n5000,2\n7,1\n")
    assert load_lengths(str(path), 1024) == documents({100: 3, 5000: 2, 7: 1}, 1024)
    path.write_text("100\n100\n7\n")
    assert load_lengths(str(path)) == documents({100: 2, 7: 1})
    path.write_text("count;length\n3;100\n1;7\n")
    assert load_lengths(str(path)) == documents({100: 3, 7: 1})
    path.write_text('\ufeff"n_tokens"\n884\n719\n', encoding="utf-8")
    assert load_lengths(str(path)) == documents({884: 1, 719: 1})


FILES = {
    "holes.csv": b"100,3\n5000,\n",
    "zero.csv": b"length\n\n0\n",
    "ids.csv": b"doc_id,n_tokens\n1,884\n2,719\n",
    "index.csv": b",length\n0,884\n1,719\n",
    "wide.csv": b"n_tokens\n1,884\n",
    "empty.csv": b"length,count\n",
    "docs.parquet": b"PAR1\xff\xfe\x00",
}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--lengths", "16:0.7,1024:0.2"), "--lengths must have shares that add up to 1, got 0.9"),
        (("--lengths", "0:0.7,1024:0.3"), "--lengths must be at least 1, got 0"),
        (("--lengths", "16,1024"), "--lengths must be 16:0.7,1024:0.3 or a file that exists, got 16,1024"),
        (("--lengths", "4:0.5,4:0.5"), "--lengths must name every length once, got 4"),
        (("--phases", "2:1,4:0"), "--phases must have steps in every phase, the share of 4, got 0"),
        (("--phases", "2:0.999,4:0.001", "-L", "100"), "--phases must have steps in every phase, L = 100"),
        (("--lengths", "holes.csv"), "a length and a count, in every line (holes.csv, line 2), got 5000,"),
        (("--lengths", "zero.csv"), "--lengths must be at least 1 (zero.csv, line 3), got 0"),
        (("--lengths", "ids.csv"), "length and count, or only one (ids.csv), got doc_id, n_tokens"),
        (("--lengths", "index.csv"), "or only one (index.csv), got one without a name, length"),
        (("--lengths", "wide.csv"), "in every line (wide.csv, line 2), got 1,884"),
        (("--lengths", "empty.csv"), "--lengths must be a file with lengths in it, got empty.csv"),
        (("--lengths", "docs.parquet"), "--lengths must be a text file, a length a line or `length,count`"),
        (("--lengths", "2:0.5,4096:0.5", "-N", "9"), "-N/--trajectories must be at least 1025 to hold"),
        (
            ("--phases", "2:0.5,4:0.5"),
            "--phases must be left out on this method (exact, sampled and trained take them)",
        ),
        (("-P", "4", "--lengths", "2:1"), "--lengths cannot be given together with --length, got 2:1"),
        (("--lengths", "2:0.5,4:0.5", "--window", "8"), "--window goes with a file of lengths, got 8"),
    ],
)
def test_bad_lengths_are_one_line(options, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_bytes(text)
    with pytest.raises(SystemExit) as stop:
        main(["risk", *options])
    out, err = capsys.readouterr()
    assert (stop.value.code, out, err.count("\n")) == (2, "", 1)
    assert words in err


# Mixtures


def test_the_same_length_twice_changes_nothing_that_the_law_has():
    """A mixture of 16 and 16 is refused; one of 16 and 17 lies midway between them, the law's blocks too."""
    risks = [seqlaw.risk(setting(P, N=40), method="exact", sketches=1) for P in (16, "16:0.5,17:0.5", 17)]
    for name in ("approx", "bias"):
        low, mixed, high = sorted(getattr(risk, name) for risk in risks)
        assert mixed == getattr(risks[1], name)
        assert mixed == pytest.approx((low + high) / 2, rel=1e-3)


def test_the_score_of_a_mixture_against_pairs():
    """Pair by pair, with the mixture's D; the lag sums may be handed over."""
    mixture = setting("2:0.4,6:0.6", N=90).P
    S = gaussian_sketch(12, 48, seed=0)
    problem, wanted = sketched_problem(MODES, S, mixture), np.zeros((12, 12))
    for n, P in zip(mixture.counts, mixture.lengths, strict=True):
        wanted += n * P**2 * score_covariance(sketched_problem(MODES, S, P), problem.D) / mixture.tokens
    found = score(problem).covariance
    assert found == pytest.approx(wanted, rel=1e-10, abs=1e-12 * np.abs(found).max())
    assert score(problem, lag_sums(MODES, mixture)).covariance == pytest.approx(found, rel=1e-12)


def test_the_score_of_a_mixture_is_centred():
    """On 1500 data sets of a harsh teacher, where a formula with E[T]ᵀE[T] of each length is seen to fail."""
    modes = replace(seqlaw.PRESETS["regime2"], c_0=30.0, rho=0.95, c_xi=1e-4, r=0.8).modes(48)
    counts, sets = {1: 60, 16: 15}, 1500
    mixture = documents(counts).counted(75)
    S = gaussian_sketch(2, 48, seed=0)
    problem = sketched_problem(modes, S, mixture)
    Q, uncentred = np.zeros((sets, 2, 2)), 0.0
    for P, n in counts.items():
        u = trajectories(modes, n * sets, P, S=S, seed=P)
        missed = u[:, 1:] - u[:, :-1] @ problem.B_star.T
        Q += np.einsum("ipa,ipb->iab", missed, u[:, :-1]).reshape(sets, n, 2, 2).sum(axis=1)
        own = sketched_problem(modes, S, P)
        uncentred += n * np.sum((P * (own.C - problem.B_star @ own.G)) ** 2)
    drawn = np.sum(Q**2, axis=(1, 2)) / mixture.tokens
    error = drawn.std() / np.sqrt(sets)
    closed = np.trace(score(problem).covariance)
    assert drawn.mean() == pytest.approx(closed, abs=4 * error)
    assert abs(drawn.mean() - (closed + uncentred / mixture.tokens)) > 4 * error


MIXTURES = [
    ("regime1", "2:0.5,32:0.5", {}),
    ("regime1", "1:0.3,8:0.3,64:0.4", {"N": 900}),
    ("regime1", "16:0.7,100:0.3", {"N": 60, "eval_length": 32}),
    ("regime1", "2:0.9,4:0.1", {"N": 200}),
    ("regime2", "2:0.5,32:0.5", {"eval_length": 64}),
    ("regime2", "1:0.3,8:0.3,64:0.4", {"N": 900}),
    ("regime2", "16:0.7,100:0.3", {"N": 60}),
    ("regime2", "2:0.5,12:0.5", {"batch": 7, "schedule": Constant(gamma=0.3, L=150)}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("teacher", "P", "more"), MIXTURES)
def test_mixtures_are_what_is_sampled(teacher, P, more):
    agree(setting(P, teacher=teacher, **more), 200)


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"batch": 17, "schedule": Constant(gamma=0.2, L=2000)}])
def test_a_mixture_over_sketches(more):
    """The equivalent method against 40 sketches: its error is about 1/M."""
    sizes = {"M": 32, "d": 256, "N": 4000} | more
    sizes |= {"N": None} if more else {}
    one = setting("2:0.5,32:0.5", **sizes)
    single = excess(one, "exact", sketches=40)
    error = single.std(ddof=1) / np.sqrt(40)
    assert seqlaw.risk(one).reducible == pytest.approx(single.mean(), abs=4 * error + single.mean() / 32)


def test_a_mixture_with_a_narrow_law_beyond_its_dense_block():
    """Lengths beyond the dense block share it: 70 and 300 against their frozen filter with many data."""
    one = setting("4:0.2,70:0.4,300:0.4", N=50_000)
    law = seqlaw.risk(one, method="exact", sketches=1)
    assert "frozen-filter" not in [flag.code for flag in law.flags]
    assert abs(law.cross) < 1e-3 * law.reducible


# Phases


@pytest.mark.parametrize("schedule", [WSD, Cosine, BlockDecay, Constant])
def test_a_schedule_in_parts_is_the_schedule(schedule):
    whole = schedule(gamma=0.4, L=3000)
    s = np.geomspace(1e-5, 1.0, 9)
    parts = stretches(whole, (700, 1500, 800), 1.05, 1.0)
    assert sum(part.counts @ part.sizes for part in parts) == pytest.approx(whole.total, rel=1e-9)
    psi = np.prod([Part(part).both(s)[0] for part in parts], axis=0)
    seen = whole.residual(s) > 1e-12
    # Pieces keep Σγ and Σγ²: what is left is of third order in γs, 1e-4 of log ψ where ψ is 1e-12.
    assert psi[seen] == pytest.approx(whole.residual(s)[seen], rel=4e-3)
    steps = whole.steps()
    for part, first, last in zip(parts, (0, 700, 2200), (700, 2200, 3000), strict=True):
        assert part.counts @ part.sizes == pytest.approx(steps[first:last].sum(), rel=1e-9)


def test_counts_beyond_what_a_float_holds_add_up():
    """Rounding left 10^14 sequences over, which were handed out one by one."""
    counted = Lengths((2, 8, 64), (0.2, 0.5, 0.3)).counted(10**30)
    assert sum(counted.counts) == 10**30
    assert counted.counts[0] == pytest.approx(0.2 / 2 * counted.mean * 10**30)


def test_phases_of_one_length_are_the_plain_run():
    plain, phased = setting(8), setting(Lengths((8, 8, 8), (0.2, 0.5, 0.3), True))
    one, other = (METHODS["exact"].rows([s], Draws(sketches=1))[0] for s in (plain, phased))
    for name in ("irreducible", "approx"):
        assert one[name] == other[name]
    # With data that a stage has to itself the plain run has more of them; without end of them it is the same.
    one, other = (METHODS["exact"].rows([s.but(N=10**30)], Draws(sketches=1))[0] for s in (plain, phased))
    assert other["bias"] == pytest.approx(one["bias"], rel=1e-11)
    for more in ({"batch": 3}, {"batch": 2, "schedule": WSD(gamma=0.4, L=300)}):
        one, other = (
            METHODS["exact"].rows([replace(s, **({"N": None} | more))], Draws(sketches=1))[0]
            for s in (plain, phased)
        )
        # WSD is cut at other places: the Richardson step leaves 1e-4.
        tolerance = 1e-10 if "schedule" not in more else 2e-4
        for name in ("bias", "variance", "reducible"):
            assert one[name] == pytest.approx(other[name], rel=tolerance), name


@pytest.mark.parametrize("text", ["2:0.5 then 8:0.5", "8:0.5 then 2:0.5"])
def test_one_pass_in_phases_against_the_whole_recursion(text):
    one = setting(text, batch=2, schedule=Constant(gamma=0.4, L=60), eval_length=32)
    bench = Workbench(one.modes, one.M, sketch=0, seed=0)
    schedule = stepped(one, [bench.nodes(P) for P in one.P.lengths]).schedule
    state = carried_student(one, schedule, bench)
    steps = [[schedule.gamma] * n for n in one.P.steps(60)]
    phases = zip(map(bench.problem, one.P.lengths), one.P.counts, steps, strict=True)
    mean, covariance = ladder_recursion(list(phases))
    assert state.mean == pytest.approx(mean, abs=1e-13)
    for P in (one.P.lengths[-1], 32):
        G = bench.problem(P).G
        # Measured at M = 16: at most 2.5e-3 where the bias is 100 times the variance, 9e-4 elsewhere.
        assert np.sum(state.covariance * G) == pytest.approx(np.sum(covariance * G), rel=3e-3)


def test_the_covariance_between_directions_step_by_step():
    """Steps beyond γμ = 1 too, where factors are negative."""
    rng = np.random.default_rng(0)
    mu, A, V = np.array([1.5, 0.4, 0.01]), rng.random((3, 3)), rng.random((3, 3))
    wanted = V
    for gamma in [0.9] * 7 + [0.3] * 40:
        p = 1 - gamma * mu
        wanted = p[:, None] * wanted * p + gamma**2 / 5 * A
    found = between(A, V, mu, 5.0, Pieces(np.array([7.0, 40.0]), np.array([0.9, 0.3])))
    assert found == pytest.approx(wanted, rel=1e-12)


def test_phases_in_the_full_batch_step_by_step():
    """Mean and noise of each phase by a plain loop over steps."""
    one = setting("2:0.6 then 16:0.4", schedule=BlockDecay(gamma=0.5, L=90))
    bench = Workbench(one.modes, one.M, sketch=0, seed=0)
    B, V, start, eye = np.zeros((12, 12)), np.zeros((12, 12)), 0, np.eye(12)
    state = at_rest(bench.problem(2))
    parts = parts_of(one.schedule, one.P.steps(90), 1.0)
    for P, n, N in zip(one.P.lengths, one.P.steps(90), one.P.counts, strict=True):
        problem, noise = bench.problem(P), score(bench.problem(P)).covariance / (N * P)
        state = full_batch(state, problem, noise, parts.pop(0))
        psi, g = eye, np.zeros((12, 12))
        for gamma in one.schedule.steps()[start : start + n]:
            B = B - gamma * (B @ problem.G - problem.C)
            psi, g = psi @ (eye - gamma * problem.G), g @ (eye - gamma * problem.G) + gamma * eye
        V, start = psi.T @ V @ psi + g.T @ noise @ g, start + n
    assert state.mean == pytest.approx(B, abs=1e-12)
    assert state.covariance == pytest.approx(V, rel=1e-9, abs=1e-12 * np.abs(V).max())


ORDERS = ("2:0.5 then 64:0.5", "64:0.5 then 2:0.5", "2:0.5,64:0.5")


def test_phases_have_what_few_data_change():
    """The frozen filter, without cross and the bias's change, is 7 % low here."""
    one = setting(
        Lengths((8, 3), (0.5, 0.5), phases=True),
        teacher="regime1",
        M=12,
        d=36,
        N=60,
        schedule=Cosine(gamma=0.3, L=200),
    )
    found = exact_on(one, 5, 1, 1.5, trained_in_phases)
    assert found.covered
    assert found.stated < 0.05
    assert abs(found.ratio - 1) < 0.02


@pytest.mark.parametrize(
    "text", ["2:0.5 then 8:0.5", pytest.param("8:0.4 then 1:0.3 then 3:0.3", marks=pytest.mark.slow)]
)
def test_each_term_of_phases_with_few_data_is_the_mean_of_data_sets(text):
    """About three tokens a dimension in a phase: each term on the same sketch, within 5 standard errors."""
    one = setting(text, M=8, d=24, N=30, schedule=Constant(gamma=0.3, L=300), eval_length=8)
    [law] = METHODS["exact"].rows([one], Draws(sketches=1, seed=2))
    rows = METHODS["sampled"].rows([one], Draws(sketches=1, repetitions=200, seed=2))
    # The law is of leading order: it errs by the stated share of the excess besides.
    check_means(law, rows, errors=5, slack=law["error"])
    assert abs(law["cross"]) > 0.01 * (law["bias"] + law["variance"] + law["cross"])


@pytest.mark.slow
def test_the_order_matters():
    """Three numbers, each sampled, over 10 standard errors apart: short first is best, long first worst."""
    sizes = {"M": 16, "d": 64, "N": 20_000, "schedule": Constant(gamma=0.1, L=3000), "eval_length": 64}
    closed, errors = zip(*(agree(setting(P, **sizes), 100) for P in ORDERS), strict=True)
    short, long, mixed = closed
    assert short < mixed < long
    assert min(mixed - short, long - mixed) > 10 * max(errors)


@pytest.mark.slow
def test_one_pass_in_phases_against_400_runs():
    one = setting("2:0.5 then 32:0.5", batch=2, schedule=WSD(gamma=0.3, L=400), eval_length=32)
    agree(one, 400)


@pytest.mark.parametrize(
    ("part", "kept", "code"),
    [(0.7, True, "one-pass-safeguard"), (0.7, False, "mean-not-median"), (1.3, False, "diverges")],
)
def test_a_large_step_in_phases_is_said_as_elsewhere(part, kept, code):
    one = setting("2:0.5 then 8:0.5", batch=4, eval_length=8)
    largest = seqlaw.risk(one, method="exact", sketches=1).diagnostics["gamma_max"]
    bold = replace(one, schedule=Constant(gamma=part * largest, L=500), safeguard=kept)
    assert code in [each.code for each in seqlaw.risk(bold, method="exact", sketches=1).flags]


def test_a_ladder_needs_one_test():
    with pytest.raises(
        seqlaw.InputError, match="eval_length must be given: lengths that differ need one test"
    ):
        seqlaw.ladder(setting(2), 1e6)


@pytest.mark.parametrize("ask", [seqlaw.ladder, ladder_curve])
def test_no_ladder_has_momentum(ask):
    heavy = setting(2, schedule=Momentum(gamma=0.1, L=500, beta=0.9), eval_length=16)
    with pytest.raises(seqlaw.InputError, match=r"momentum must be left out with phases, got 0\.9"):
        ask(heavy, 1e6, candidates=[2, 16])


def test_phases_are_no_mixture_by_any_door():
    with pytest.raises(seqlaw.InputError, match="phases must be left out"):
        equivalent_risk(setting("2:0.5 then 8:0.5"))
    with pytest.raises(seqlaw.InputError, match="gamma must be a number with phases"):
        best_step(setting("2:0.5 then 8:0.5", batch=2))


TABLE = {  # LENGTHS.md, section 3: Regime II, L = 30000, one sketch; tested at 16, 128, 4096
    "2": (7.03e-5, 1.574e-5, 8.19e-6),
    "16": (9.71e-5, 2.322e-5, 1.300e-5),
    "4096": (2.155e-4, 5.949e-5, 3.791e-5),
    "2:0.5,4096:0.5": (7.23e-5, 1.628e-5, 8.53e-6),
    "2:0.9 then 4096:0.1": (7.02e-5, 1.519e-5, 7.57e-6),
    "2:0.5 then 4096:0.5": (7.25e-5, 1.551e-5, 7.63e-6),
    "4096:0.5 then 2:0.5": (7.25e-5, 1.647e-5, 8.72e-6),
}


@pytest.mark.slow
def test_the_table_of_ladders():
    """The population part on 20 sketches, and the ladder over the best single length, paired: 0.923."""
    sums, schedule = LagSums(seqlaw.PRESETS["regime2"].modes(768)), Constant(gamma=0.1, L=30_000)
    found = {text: [] for text in TABLE}
    for sketch in range(20):
        bench = Bench(sums, 96, sketch=sketch, seed=0)
        for text, rows in found.items():
            P = parse(text) if ":" in text else int(text)
            phases = tuple(P) if isinstance(P, Lengths) and P.phases else ((P, 1.0),)
            problems = [bench.problem(length) for length, _ in phases]
            runs = Runs(schedule).of(phases, 1.05, [1.0] * len(phases))
            state = at_rest(problems[0])
            for problem, run in zip(problems, runs, strict=True):
                state = full_batch(state, problem, None, run)
            terms = [state.terms(bench.problem(test)) for test in (16, 128, 4096)]
            rows.append([one["approx"] + one["bias"] for one in terms])
    for text, wanted in TABLE.items():
        assert np.mean(found[text], axis=0) == pytest.approx(wanted, rel=0.03), text
    ratio = np.array(found["2:0.9 then 4096:0.1"])[:, 2] / np.array(found["2"])[:, 2]
    assert ratio.mean() == pytest.approx(0.923, abs=0.015)


# The planner


LADDER = (
    "ladder",
    "-M",
    "24",
    "-d",
    "96",
    "--candidates",
    "2,16,256",
    "--eval-length",
    "256",
    "--sketches",
    "3",
)


def test_the_best_ladder():
    setup = setting(2, M=24, d=96, schedule=Constant(gamma=0.1, L=30_000), eval_length=256)
    found = seqlaw.ladder(setup, 2**22, candidates=[2, 16, 256], sketches=3, tune=False)
    ladder, single = found.ladder.lengths, found.single.lengths
    assert ladder.lengths[0] < ladder.lengths[1] == 256
    assert found.helps
    assert found.gain > 0.03
    best = min(found.singles, key=lambda one: one.reducible)
    assert (single, found.single.reducible) == (best.lengths, best.reducible)
    # What is tried here is what the exact method says, to the rounding of the sequences' numbers.
    plain = [ladder.steps(30_000)[k] / 30_000 for k in (0, 1)]
    assert plain == list(ladder.shares)
    counts = 2**22 * (ladder.shares[0] / ladder.lengths[0] + ladder.shares[1] / 256)
    rows = METHODS["exact"].rows([replace(setup, P=ladder, N=round(counts))], Draws(sketches=3))
    assert found.ladder.reducible == pytest.approx(np.mean([row["reducible"] for row in rows]), rel=1e-4)
    assert set(presets([4])) == {"long-only"}


def test_the_best_single_length_is_the_best_row():
    """On the sketch that chooses shares another length is best: it was named, and counted as the base."""
    sizes = {"M": 8, "d": 32, "P": 2, "batch": 1, "eval_length": 64}
    setup = seqlaw.Setting(teacher="regime1", **sizes, schedule=Constant(gamma=0.1, L=200))
    asked = {"sketches": 2, "seed": 5}
    found = seqlaw.ladder(setup, 256_000, candidates=[64, 128, 256], **asked)
    rows = {one.lengths: one.reducible for one in found.singles}
    assert found.single.lengths == min(rows, key=rows.get) == 64
    assert all(isinstance(one.lengths, Lengths) or one.lengths == 64 for one in (found.mixture, found.ladder))
    pair = ladder_curve(setup, 256_000, candidates=[64, 256], shares=[0.5], **asked)
    assert pair.single.reducible == min(row.reducible for row in pair.curve("only"))


def test_no_ladder_in_regime_one():
    setup = setting(2, teacher="regime1", M=24, d=96, schedule=Constant(gamma=0.1, L=3000), eval_length=256)
    found = seqlaw.ladder(setup, 2**22, candidates=[2, 256], sketches=2)
    assert (found.ladder.lengths, found.gain, found.helps) == (256, 0.0, False)
    assert "does not help" in str(found)


def test_a_ladder_of_one_pass_is_the_exact_method_s():
    setup = setting(2, batch=1, schedule=Constant(gamma=0.3, L=100), eval_length=16)
    sums = LagSums(MODES)
    bench = Bench(sums, 12, sketch=0, seed=0)
    for text in ("2:0.5 then 16:0.5", "16:0.5 then 2:0.5"):
        P = parse(text)
        one = replace(setup, P=P)
        trial = Trial(one.schedule, one.tokens, 16.0)
        mine = bench.trained(P, trial, Runs(one.schedule)).terms(bench.problem(16))
        (row,) = METHODS["exact"].rows([one], Draws(sketches=1))
        assert mine["variance"] == pytest.approx(row["variance"], rel=1e-9)
    # Channels side by side are the mixture's own.
    mixture = setting("2:0.5,16:0.5", batch=18, schedule=Constant(gamma=0.3, L=100), eval_length=16)
    trial = Trial(mixture.schedule, mixture.tokens, float(mixture.P.tokens))
    mine = bench.trained(mixture.P, trial, Runs(mixture.schedule)).terms(bench.problem(16))
    (row,) = METHODS["exact"].rows([mixture], Draws(sketches=1))
    # The exact method keeps the diagonal of the covariance at another test length, phases the whole.
    assert mine["variance"] == pytest.approx(row["variance"], rel=5e-3)
    assert mine["bias"] == pytest.approx(row["bias"], rel=1e-9)


@pytest.mark.parametrize("P", [1, 2, 16])
def test_directions_from_stored_channel_products_are_those_computed_anew(P):
    problem = sketched_problem(MODES, gaussian_sketch(12, 48), P)
    noises = step_noise(problem), step_noise(problem, many_starts=True)
    assert noises[1].products is not None
    for start in (None, np.random.default_rng(P).standard_normal((12, 12))):
        plain, kept = (sketch_directions(problem, noise, start) for noise in noises)
        for name in ("mu", "w", "R", "Q", "A", "beta", "ell"):
            wanted = getattr(plain, name)
            # The same sums in another order.
            assert getattr(kept, name) == pytest.approx(wanted, abs=1e-12 * np.abs(wanted).max() + 1e-15)


@pytest.mark.parametrize(("L", "helps"), [(1000, False), (100_000, True)])
def test_ladders_help_after_many_steps(L, helps):
    setup = setting(2, M=24, d=96, schedule=Constant(gamma=0.1, L=L), eval_length=256)
    found = seqlaw.ladder(setup, 2**24, candidates=[2, 256], tune=False, sketches=4)
    assert found.helps == helps
    if helps:
        assert found.ladder.lengths.lengths == (2, 256)
        assert found.gain > 0.02


@pytest.mark.parametrize("way", ["short-to-long", "long-to-short", "mixed"])
def test_the_curve_of_shares_is_the_exact_method_s(way):
    """Over the same sketches; a share of 1e8 tokens is whole sequences to 1e-6."""
    one = setting(2, schedule=Constant(gamma=0.1, L=2000), eval_length=64)
    found = ladder_curve(one, 1e8, candidates=[64, 2], shares=[0.3], tune=False, sketches=2, seed=3)
    [row] = found.curve(way)
    N = round(1e8 / row.lengths.mean)
    told = seqlaw.risk(replace(one, P=row.lengths, N=N), method="exact", sketches=2, seed=3)
    assert row.reducible == pytest.approx(told.reducible, rel=1e-5)
    assert row.against == pytest.approx(row.reducible / found.single.reducible, rel=0.05)
    shares = dict(row.lengths)
    assert shares == {2: 0.7, 64: 0.3}
    assert row.lengths.phases == (way != "mixed")
    assert row.lengths.lengths[0] == (64 if way == "long-to-short" else 2)


def test_mixtures_and_phases_in_tasks_and_sweeps(tmp_path):
    for one in (
        setting("2:0.5,8:0.5"),
        setting("2:0.5 then 8:0.5", eval_length=4),
        setting("2:0.5,8:0.5", batch=9),
    ):
        task = json.loads(json.dumps(task_of(one)))
        assert setting_of(task) == one
    sizes = {"M": 12, "N": 600, "P": [8, "2:0.5,8:0.5"], "d": 48}
    tables = {"method": "exact", "sizes": sizes, "schedules": [{"kind": "constant", "L": 500}], "sketches": 1}
    assert seqlaw.sweep(tables, tmp_path / "out").done == 2
    frame = seqlaw.load(tmp_path / "out").frame
    mixed = frame[frame["lengths"].notna()]
    wanted = seqlaw.risk(setting("2:0.5,8:0.5"), method="exact", sketches=1).reducible
    assert mixed["reducible"].tolist() == [wanted]


def test_the_ladder_command(capsys):
    with pytest.raises(SystemExit) as stop:
        main([*LADDER, "--tokens", "4e6", "--json"])
    assert stop.value.code == 0
    shown = json.loads(capsys.readouterr().out)
    assert {"single", "mixture", "ladder", "gain", "accuracy", "flags"} <= set(shown)
    assert sum(phase["steps"] for phase in shown["ladder"]["phases"]) == 30_000
    assert set(shown["single"]) == {"P", "reducible"}
    assert set(shown["mixture"]) == {"lengths", "shares", "reducible"}
    for options, words in (
        (("--tokens", "100"), "--candidates must be lengths of at most the tokens"),
        (("--candidates", "2,2"), "--candidates must name every length once, got [2, 2]"),
        (("--most-phases", "0"), "--most-phases must be at least 1"),
        (("-R", "100"), "--gamma must be a number with -R/--horizon"),
        (("-L", "50"), "-L/--steps must be at least 100 for phases"),
    ):
        with pytest.raises(SystemExit) as stop:
            main([*LADDER, *options])
        assert (stop.value.code, words in capsys.readouterr().err) == (2, True)


def test_a_phase_without_steps_changes_nothing():
    """Its contour had no length: the exact method ended in a traceback."""
    for idle in (0.0, 1e-300):
        sizes = np.concatenate([np.full(50, idle), np.full(50, 0.1)])
        one = setting("4:0.5 then 16:0.5", M=8, d=32, N=64, schedule=seqlaw.Explicit(sizes=sizes))
        [row] = METHODS["exact"].rows([one], Draws(sketches=1))
        alone = one.but(P=16, N=one.P.counts[1], schedule=seqlaw.Explicit(sizes=sizes[50:]))
        [plain] = METHODS["exact"].rows([alone], Draws(sketches=1))
        for name in ("bias", "variance", "cross"):
            assert row[name] == pytest.approx(plain[name], rel=1e-6)


@pytest.mark.parametrize("method", ["sampled", "exact"])
def test_a_pass_in_phases_says_what_its_step_does(method):
    one = setting("4:0.5 then 16:0.5", batch=1, safeguard=False, schedule=Constant(gamma=50, L=10))
    codes = [
        {flag.code for flag in seqlaw.risk(s, method=method).flags} for s in (one, one.but(safeguard=True))
    ]
    assert "diverges" in codes[0]
    assert "one-pass-safeguard" in codes[1]
