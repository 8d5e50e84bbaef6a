"""The report of the reproduction: notation, the variance over its predictions, conditions, progress."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import ROOT, python_path
from rows_of import exact_rows, sampled_rows
from seqlaw.answers.glossary import WORDS
from seqlaw.lab.progress import WorkBar, seconds_left
from seqlaw.lab.run import Summary, Tally
from seqlaw.lab.store import Outcome
from seqlaw.paper.experiments.checks import LONGER, TOKENS, noise_checks
from seqlaw.paper.experiments.conditions import conditions, named_conditions
from seqlaw.paper.experiments.panels import PRINTED, Panel, paper_panels, quick_panels
from seqlaw.paper.experiments.slopes import measured
from seqlaw.paper.report.page import LEAST, PAGE, Picture, environment, typeset
from seqlaw.paper.report.tables import Table
from seqlaw.paper.reproduce import reproduce

PANELS = paper_panels()
TEMPLATES = environment()
STYLE = TEMPLATES.get_template("style.css").render()

# --- notation


@pytest.mark.parametrize(
    ("plain", "html"),
    [
        ("alpha > 1", "α &gt; 1"),
        ("theta >= alpha - 2r", "θ ≥ α − 2<i>r</i>"),
        ("NP >~ C_rho R M", "<i>NP</i> ≳ <i>C</i><sub>ρ</sub> <i>R</i> <i>M</i>"),
        ("R <= c/M^-theta/P", "<i>R</i> ≤ <i>c</i>/<i>M</i><sup>−θ</sup>/<i>P</i>"),
        ("gamma <= 1/(4||G||)", "γ ≤ 1/(4‖<i>G</i>‖)"),
        ("c_0 kappa^{1-β_θ}", "<i>c</i><sub>0</sub> κ<sup>1−β<sub>θ</sub></sup>"),
        ("tr(Ω_P)/(2NP)", "tr(Ω<sub><i>P</i></sub>)/(2<i>NP</i>)"),
        ("(d) bias, d", "(d) bias, <i>d</i>"),
        ("3.2e-15, 1e+08, -0.7", "3.2·10<sup>−15</sup>, 1·10<sup>8</sup>, −0.7"),
        ("N = 4", "<i>N</i>\u00a0=\u00a04"),
        ("warm-up, the paper's finite-filter, rhombus, Regime I & <b>", None),
    ],
)
def test_notation_is_typeset(plain: str, html: str | None) -> None:
    expected = plain.replace("&", "&amp;").replace("<b>", "&lt;b&gt;") if html is None else html
    assert typeset(plain) == expected


def test_what_stands_between_tags_is_typeset_and_escaped_once() -> None:
    source = '{% filter typeset %}<p class="M">R <b>{{ text }}</b>\n</p>{% endfilter %}'
    found = TEMPLATES.from_string(source).render(text="R <= 1 &\n  <b> isn't M")
    inner = "<i>R</i> ≤ 1 &amp; &lt;b&gt; isn't <i>M</i>"
    assert found == f'<p class="M"><i>R</i> <b>{inner}</b>\n</p>'


def table(*cells: Any, **how: Any) -> str:
    return str(TEMPLATES.get_template("macros.html.j2").module.table(Table(*cells, **how)))  # type: ignore[attr-defined]


def picture(svg: str) -> str:
    source = '{% from "macros.html.j2" import picture %}{% call picture(it, "x") %}{% endcall %}'
    return TEMPLATES.from_string(source).render(it=Picture(svg.encode()))


def parts(html: str) -> list[str]:
    """The texts between tags."""
    return [text for text in re.split(r"<[^>]*>", html) if text.strip()]


def classes(html: str) -> set[str]:
    return {name for names in re.findall(r'class="?([\w -]+)', html) for name in names.split()}


def rules(name: str) -> str:
    """What the style sheet says of a class."""
    return " ".join(re.findall(rf"\.{name}\b[^{{}}]*\{{([^}}]*)\}}", STYLE))


def test_small_print_of_a_cell_stands_below() -> None:
    found = table(["", ""], [["x", "2\n✗ fails"]], far={(0, 1)})
    plain, marked = re.findall(r"<td.*?</td>", found)
    assert (parts(plain), parts(marked)) == (["x"], ["2", "✗ fails"])
    [small] = classes(marked[3 + marked.index("2") :])
    assert "display: block" in rules(small)
    [loud] = classes(marked) - classes(plain) - {small}
    assert "color" in rules(loud)


def test_columns_of_one_width() -> None:
    plain, even = (table(["", ""], [["x", "1"]], even=even) for even in (False, True))
    assert parts(even) == parts(plain)
    [name] = classes(even) - classes(plain)
    assert "table-layout: fixed" in rules(name)


def test_pictures_are_scaled_alike() -> None:
    """A picture's share of the page is its width in points, so letters are as large in all; none is cut."""
    found = [picture(f'<svg viewBox="0 0 {w} 200">') for w in (PAGE / 2, PAGE, 2 * PAGE)]
    sizes = [re.search(r"width:([\d.]+)%;min-width:([\d.]+)rem", one) for one in found]
    narrow, wide, wider = ([float(size[k]) for k in (1, 2)] for size in sizes if size)
    assert wide == [100, LEAST] == wider
    assert narrow == [50, LEAST / 2]
    around = re.search(r"<div[^>]*>(?=<img)", found[1])
    assert around is not None
    assert "overflow-x: auto" in " ".join(rules(name) for name in classes(around[0]))


# --- the variance over its predictions


def variance_rows(panel: Panel, seeds: int, factors: Any) -> list[dict[str, Any]]:
    """Rows of a panel whose sampled variance is `factors(seed, sketch, repetition, point)` times exact."""
    rows = []
    for seed in range(seeds):
        for sketch in range(2):
            for point in range(len(panel.settings)):
                place = {"panel": panel.name, "seed": seed, "sketch": sketch, "point": point}
                exact = (1 + seed) * (2 + sketch) / (1 + point)
                rows.append(
                    place | {"method": "exact", "variance": exact, "finite_filter_variance": exact / 2}
                )
                for k in range(2):
                    value = exact * factors(seed, sketch, k, point)
                    rows.append(place | {"method": "sampled", "repetition": k, "variance": value})
    return rows


def test_a_data_set_is_the_independent_unit() -> None:
    """Every data set off by a factor of its own, at all points: the curve's error is that of the factors."""
    panel = PANELS["f"]
    rng = np.random.default_rng(3)
    factor = {(i, j, k): float(rng.normal(1, 0.2)) for i in range(3) for j in range(2) for k in range(2)}
    rows = variance_rows(panel, 3, lambda *place: factor[place[:3]])
    each = np.array(list(factor.values()))
    checks = noise_checks(rows, measured([row for row in rows if row["seed"] == 0], [panel], "sampled"))
    assert [check.measured.curve.series.against for check in checks] == ["N", "P", "R"]
    for check in checks:
        points = len(check.measured.curve.series.settings)
        np.testing.assert_allclose(check.over_exact, np.outer(each, np.ones(points)), rtol=1e-12)
        np.testing.assert_allclose(check.over_finite_filter, 2 * check.over_exact, rtol=1e-12)
        assert check.mean == pytest.approx(each.mean(), rel=1e-12)
        assert check.mean_error == pytest.approx(each.std(ddof=1) / np.sqrt(12), rel=1e-9)
        noise = PRINTED["II", "variance", check.measured.curve.series.against].noise
        assert check.expected_error == pytest.approx(noise / np.sqrt(12), rel=1e-12)


def test_ratios_keep_the_order_of_the_points() -> None:
    panel = PANELS["f"]
    rows = variance_rows(panel, 1, lambda seed, sketch, k, point: 1 + point)
    for check in noise_checks(rows, measured(rows, [panel], "sampled")):
        places = [1 + panel.settings.index(setting) for setting in check.measured.curve.series.settings]
        np.testing.assert_allclose(check.over_exact, np.tile(places, (4, 1)), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sets"), [("c", 40), ("f", 60)])
def test_the_spread_of_a_data_set(name: str, sets: int) -> None:
    """A standard deviation of n numbers is off by 1/√(2n), three times that is allowed."""
    panel = quick_panels()[name]
    rows = [
        row | {"panel": name, "seed": 5}
        for make in (exact_rows, sampled_rows)
        for row in make(panel.settings, sketches=list(range(sets)), seed=5)
    ]
    for check in noise_checks(rows, measured(rows, [panel], "sampled")):
        series = check.measured.curve.series
        spread = check.over_exact.mean(axis=1).std(ddof=1)
        assert spread == pytest.approx(series.printed.noise, rel=3 / np.sqrt(2 * sets))


# --- conditions


def test_points_that_break_a_condition_are_counted() -> None:
    """Written out from the theorem, at constant one and with the scales (h_1 of P for the size of G)."""
    found = {(one["panel"], one["kind"]): one for one in conditions(list(PANELS.values()))}
    settings = PANELS["f"].settings
    short = [s.N < s.schedule.horizon * s.M for s in settings]
    assert (found["f", "trajectories"]["fails"], found["f", "trajectories"]["points"]) == (sum(short), 19)
    for name in "bcef":
        over = scaled = 0
        for s in PANELS[name].settings:
            t, R = s.teacher, s.schedule.horizon
            over += R * (s.M**-t.alpha + s.M**-t.theta / s.P) > 1
            scaled += R * (t.c_xi * s.M**-t.alpha + t.c_0 * s.M**-t.theta / s.P) > 1
        one = found[name, "unsaturated"]
        assert (one["fails"], one["scaled_fails"]) == (over, scaled), name
    assert all(one["scaled_fails"] is None for (_, name), one in found.items() if name == "ambient")


def test_named_conditions_hold_in_both_regimes() -> None:
    found = named_conditions(list(PANELS.values()))
    assert list(found) == ["I", "II"]
    assert all(all(one.values()) and len(one) == 7 for one in found.values())


# --- the page


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report")
    reproduce(out, method="equivalent")
    return out


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return re.sub(r"base64,[^\"]*", "", (folder / "report.html").read_text(encoding="utf-8"))


def test_the_page_has_no_raw_notation(page: str) -> None:
    text = re.sub(r"<style>.*?</style>|<[^>]*>", "", page, flags=re.DOTALL)
    for raw in ("&gt;=", "&lt;=", "&gt;~", "||", "^", "_", "alpha", "theta", "gamma", "kappa", "rho"):
        assert raw not in text.replace("results_", ""), raw


def test_the_setup_is_told_at_the_top(page: str) -> None:
    """The teachers' numbers and the sizes, from the paper's section on its experiments."""
    shown = re.search(r"<section[^>]*>(.*?)</section>", page, flags=re.DOTALL)
    assert shown is not None
    assert shown.start() < page.index("<figure>")
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", line) for line in re.findall(r"<tr.*?</tr>", shown[1])]
    lines = {re.sub(r"<[^>]*>", "", row[0]): row[1:] for row in rows if row}
    for name, panel in (("Regime I", "c"), ("Regime II", "f")):
        teacher = PANELS[panel].settings[0].teacher
        six = (teacher.alpha, teacher.theta, teacher.r, teacher.rho, teacher.c_xi, teacher.c_0)
        assert lines[name] == [f"{number:g}" for number in six]
    assert lines["(d) Regime II: approximation"] == ["512", "2,048", "–", "4–48", "–", "–", "–", "–"]
    variance = lines["(f) Regime II: GD variance"]
    assert variance[:2] == ["40", "128"]
    assert parts(variance[2]) == ["16,384–131,072", "else 65,536"]
    for word in ("Sketch", "Guide", "Safeguard", "Deterministic equivalent", "Method", "Reducible", "Cross"):
        assert f"<li>{word}: {typeset(WORDS[word.lower()])}." in shown[1]


def test_the_headline_counts_z(page: str) -> None:
    assert "within two standard deviations (|z| ≤ 2 in the table" in "".join(parts(page))


def test_columns_stand_beside_each_other(page: str) -> None:
    found = re.findall(r"<div([^>]*)>\s*<div>\s*<h3>(Agrees|With every constant named)", page)
    assert len(found) == 2
    for attributes, _ in found:
        [name] = classes(attributes)
        assert "display: flex" in rules(name)


def test_every_class_of_the_page_has_a_style(page: str) -> None:
    body = page[page.index("</style>") :]
    assert classes(body)
    assert not [name for name in classes(body) if not rules(name)]


def test_every_row_is_judged_by_one_rule(folder: Path, page: str) -> None:
    """Two standard deviations for a slope, ranges that meet for a ratio; from the numbers of the table."""
    text = re.sub(r"<[^>]*>", "", page)
    text = text[text.index("Differs, or needs care") : text.index("The theorem's conditions")]
    table = json.loads((folder / "table.json").read_text(encoding="utf-8"))
    names = {"approx": "Approx", "bias": "Bias", "variance": "Var"}
    far = []
    for row in table["slopes"]:
        name = f"{names[row['quantity']]} against {row['against']}, Regime {row['regime']}:"
        gap = abs(row["slope"] - row["guide"]) / np.hypot(row["spread"], 0.001 / np.sqrt(12))
        assert (f"{name} the measured slope" in text) == (gap > 2), name
        assert (f"{name} {row['slope']:.3f}".replace("-", "−")[:-2] in text) == (abs(row["z"]) > 2), name
        far += [name] if gap > 2 else []
    assert "Bias against P, Regime II:" in far
    for name, one in table["agreement"].items():
        meet = one["low"] <= one["paper_high"] and one["paper_low"] <= one["high"]
        assert (f"{name.partition('_')[2]}, Regime II: {one['mean']:.3f} [" in text) == (not meet), name
    assert "the difference of the two means is 1." in text  # variance along P: chance


def test_numbers_have_one_style(page: str) -> None:
    text = re.sub(r"<[^>]*>", " ", page[page.index("</style>") :])
    assert not re.findall(r"(?<![\d.,])\d{1,3} \d{3}(?!\d)", text)  # 4 096
    assert "4,096" in text


def test_failing_conditions_are_marked_in_words(page: str) -> None:
    assert "✓ holds" in page
    assert "✗ fails at 16 of 19" in page  # N ≳ RM in panel (f)
    assert "✗ fails<" in page  # R unsaturated in panel (f), at every point
    assert page.count("not named") >= 6


def test_the_caption_says_which_budget(page: str) -> None:
    text = re.sub(r"<[^>]*>", "", page).replace("\u00a0", " ")
    assert f"{TOKENS:,} tokens" in text
    for name in ("M", "d"):
        assert f"{name} = {LONGER[name]:,}" in text


# --- progress


def test_time_left_follows_the_work_and_not_the_number_of_tasks() -> None:
    """Costs of 20, 20, 2, 2, … seconds: exact after the first record, whatever the unit of the shares."""
    costs = [20.0, 20.0] + [2.0] * 10
    for done in range(1, len(costs)):
        elapsed, share = sum(costs[:done]), sum(costs[:done]) / sum(costs)
        assert seconds_left(elapsed, share) == pytest.approx(sum(costs) - elapsed)
    assert seconds_left(0.0, 0.0) is None
    assert seconds_left(10.0, 0.25, since=10.0) == pytest.approx(20.0)
    assert seconds_left(1.0, 0.5, since=100.0) == 0.0


def test_the_share_done_is_learned_from_the_tasks_that_ended() -> None:
    """Seconds of 0.5 + 3·size: known once two sizes have ended; before that a task takes as its size does."""
    sizes = {str(k): size for k, size in enumerate([8.0, 8.0, 4.0, 2.0, 1.0, 1.0])}
    seconds = {name: 0.5 + 3 * size for name, size in sizes.items()}
    tally = Tally(0.0, Summary(tasks=6, done=0, skipped=0, failed=0, seconds=0.0), sizes)
    shares = [tally.share()]
    for name in sizes:
        outcome = {"key": name, "software": "", "function": "", "task": {}, "machine": "", "rows": "[]"}
        tally.add([Outcome(**outcome, seconds=seconds[name])])
        shares.append(tally.share())
    whole = sum(seconds.values())
    assert shares[0] == 0
    assert shares[1:3] == pytest.approx([8 / 24, 16 / 24])
    assert shares[3] == pytest.approx((24.5 + 24.5 + 12.5) / whole)
    assert shares[-1] == 1
    assert shares == sorted(shares)


def test_a_bar_without_a_terminal_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    bar = WorkBar()
    bar.progress(Summary(tasks=2, done=1, skipped=0, failed=0, seconds=1.0), 0.5)
    bar.step("writing")
    assert capsys.readouterr() == ("", "")


def test_progress_of_replicates_is_one(tmp_path: Path) -> None:
    seen: list[tuple[Summary, float]] = []
    steps: list[str] = []
    how: dict[str, Any] = {"method": "exact", "panels": ["a"], "quick": True, "replicate": 3}
    reproduce(tmp_path, **how, progress=lambda *now: seen.append(now), step=steps.append)
    shares = [share for _, share in seen]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    ended = [now.done + now.skipped for now, _ in seen]
    assert ended == sorted(ended)
    assert {now.tasks for now, _ in seen} == {ended[-1]} == {4 + 3 + 3}  # the first has the equivalent too
    assert steps == ["drawing the figure, writing the report"]
    seen.clear()
    reproduce(tmp_path, **how, progress=lambda *now: seen.append(now))
    assert {share for _, share in seen} == {1.0}  # all is recorded


def test_a_terminal_sees_the_steps(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": python_path(ROOT / "src"), "COLUMNS": "100", "TERM": "xterm"}
    line = [sys.executable, "-m", "seqlaw", "reproduce", "--method", "equivalent", "--panels", "a", "--json"]
    line += ["--out", str(tmp_path)]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # the other end of a terminal closes with an error
        pass
    os.close(ours)
    output, _ = process.communicate()
    assert process.returncode == 0
    assert "drawing the figure, writing the report" in shown.decode()
    assert json.loads(output)["command"] == "reproduce"
