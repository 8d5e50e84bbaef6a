"""What of an effect of length is the test's, and what a run costs by its length."""

import json

import numpy as np
import pytest

from run_tables import COMMON, EFFECTS, effect, own_and_common, sentence_is_right
from seqlaw import InputError, fit_law
from seqlaw.answers.law_words import effect_sentence
from seqlaw.cli import main
from seqlaw.runs.allocate import COSTS, make_cost
from seqlaw.runs.form import make_form
from seqlaw.runs.law import fit_form
from seqlaw.runs.table import read_runs

THREE_TERMS = ["params", "tokens", "length"]


@pytest.fixture(scope="module")
def tables():
    return own_and_common(7, training=0.02, test=0.03, noise=0.005, rows=80)


@pytest.fixture(scope="module")
def law(tables):
    own, common = tables
    shuffled = common.sample(frac=1, random_state=0)  # the order of the second table does not matter
    return fit_law(own, loss="loss", terms=THREE_TERMS, tested_at="tested", common=shuffled, bootstraps=100)


def test_the_change_is_that_of_the_law_in_the_middle(law):
    """E + Σ A (x/middle)^-e by hand, at the two ends of the length."""
    found = law.length

    def loss(length):
        x = law.fitted.middle | {"length": length}
        return law.E.value + sum(
            term.coefficient.value
            * np.prod([(x[name] / law.fitted.middle[name]) ** -e.value for name, e in term.exponents.items()])
            for term in law.terms
        )

    assert (found.low, found.high) == (128, 8192)
    assert found.own.value == pytest.approx(np.log(loss(8192) / loss(128)), abs=1e-12)
    assert found.test.value == pytest.approx(found.own.value - found.training.value, abs=1e-12)


def test_both_parts_are_found(law):
    found = law.length
    assert found.tested == COMMON
    assert found.shown == ("training", "test")
    assert found.training.low <= np.log(0.98) + 0.002  # shares are of the median loss, not of the middle's
    assert found.test.high < -0.02
    sentence = effect_sentence(found)
    assert sentence.startswith("From length 128 to 8,192 the loss changes by -")
    assert "with all tested at 2,048. Both matter: " in sentence
    assert sentence in " ".join(str(law).split())
    assert "[tested-at-own]" not in str(law)
    assert law.to_dict()["length"]["shown"] == ["training", "test"]


def test_the_same_runs_are_redrawn_together(tables):
    """Noise of the run is in both tables and cancels in the difference: its interval is the narrower one."""
    own, common = tables
    found = effect(own, common, bootstraps=100)
    assert found.test.se < 0.6 * found.own.se
    apart = effect(own, common.iloc[:-1], bootstraps=100)  # not the same runs: each table for itself
    assert apart.test.se > found.test.se


def test_equal_tables_have_no_test(tables):
    _, common = tables
    own = common.assign(tested=common.length)
    found = effect(own, common, bootstraps=50)
    assert found.test.value == found.test.low == found.test.high == 0
    assert found.shown == ("training",)


def test_a_law_of_runs_tested_at_their_own_length_says_so_first(tables, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own, common = tables
    own.to_csv("own.csv", index=False)
    common.to_csv("common.csv", index=False)
    common.assign(tested=np.where(common.index % 2, 512, 2048)).to_csv("mixed.csv", index=False)
    words = ["own.csv", "--loss", "loss", "--bootstraps", "20"]
    words += [word for name in THREE_TERMS for word in ("--term", name)]

    def run(*more):
        with pytest.raises(SystemExit) as stop:
            main(["law", *words, *more])
        out, err = capsys.readouterr()
        return stop.value.code, " ".join(out.split()), err

    code, out, err = run("--tested-at", "tested")
    assert (code, err) == (0, "")
    first = out.split("number value low high")[0]
    assert "Each run was tested at its own length (tested): an effect of length may be the test's." in first
    assert "(--common)." in first
    code, out, err = run("--tested-at", "tested", "--common", "common.csv", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["inputs"]["common"] == "common.csv"
    assert found["length"]["sentence"].startswith("From length 128 to 8,192")
    for more, says in (
        (["--common", "common.csv"], "--common goes with runs each tested at its own length"),
        (
            ["--tested-at", "tested", "--common", "mixed.csv"],
            "--common must have runs tested at one length; tested has 2, got 2048",
        ),
        (["--tested-at", "tested", "--common", "nothing.csv"], "--common must exist, got nothing.csv"),
    ):
        code, out, err = run(*more)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert says in err


def test_a_common_table_may_be_silent_on_its_length(tables):
    """Tested at `length` itself: the second table then does not say where it was tested."""
    own, common = (one.drop(columns="tested") for one in tables)
    law = fit_law(own, loss="loss", terms=THREE_TERMS, tested_at="length", common=common, bootstraps=20)
    assert law.length.tested is None
    assert "with all tested at one common length." in effect_sentence(law.length)
    with pytest.raises(InputError, match="common must be a column"):
        fit_law(own, loss="loss", terms=THREE_TERMS, tested_at="length", common=common.drop(columns="loss"))


def test_the_cost_of_a_transformer_grows_with_the_length(tables):
    """6·params·tokens and attention, row by row; layers·width is a power of params in this table."""
    own, _ = tables
    frame = own.assign(layers=(own.params / 1e7) ** (1 / 3), width=64 * (own.params / 1e7) ** (1 / 3))
    runs = read_runs(frame, "loss", THREE_TERMS)
    fitted = fit_form(make_form(THREE_TERMS, None), runs)
    cost = make_cost("transformer", frame, runs, fitted)
    direct = 6 * frame.params * frame.tokens
    direct = direct + 12 * frame.layers * frame.width * frame.length * frame.tokens
    assert cost.of(runs.columns) == pytest.approx(direct.to_numpy(), rel=2e-3)  # the formula's three digits
    assert make_cost("linear", frame, runs, fitted) == make_cost(COSTS["linear"], frame, runs, fitted)
    with pytest.raises(InputError, match="cost needs the columns params, tokens, length, layers, width"):
        make_cost("transformer", own, runs, fitted)


def test_attention_moves_the_best_sizes(tables):
    own, _ = tables
    frame = own.assign(layers=own.params ** (1 / 3), width=own.params ** (1 / 3))
    asked = {"loss": "loss", "terms": ["params", "tokens"], "bootstraps": 20, "budget": 1e20}
    linear = fit_law(frame, cost="linear", **asked).allocation
    attention = fit_law(frame, cost="transformer", **asked).allocation
    assert attention.cost.text.startswith("6*params*tokens + 12*params**0.667*length*tokens")
    assert attention.sizes["tokens"].value < linear.sizes["tokens"].value
    assert attention.loss.value > linear.loss.value


@pytest.mark.slow
def test_the_sentence_is_right():
    """Ten of the tables of `benchmarks/coverage_law.py 100 tests`, two of a kind."""
    right = []
    for kind, (training, test) in EFFECTS.items():
        for seed in (1100, 1101):
            found = effect(*own_and_common(seed, training=training, test=test, noise=0.006), bootstraps=200)
            right.append(sentence_is_right(found, kind))
    assert sum(right) >= 9
