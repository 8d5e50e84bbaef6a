"""The explorer's API: the library's numbers, the library's rules, and nothing else gets in or out."""

import asyncio
import contextlib
import json
import math
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="needs the extra: pip install 'seqlaw[web]'")

import httpx
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as given_settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

import seqlaw
from conftest import ROOT
from seqlaw.answers.glossary import WORDS
from seqlaw.answers.ladder import ladder_curve
from seqlaw.cli import explore, main
from seqlaw.model import helper_process
from seqlaw.model.checks import InputError, MissingLibrary
from seqlaw.model.schedule import GAMMA, STEPS
from seqlaw.model.teacher import MODES
from seqlaw.planning.budget import Budget
from seqlaw.questions.options import typed
from seqlaw.questions.risk import Spectrum
from seqlaw.web import guard, panels, pool, schema, views
from web_server import QUESTION, TEACHER, environment, explorer, load

SETTING = seqlaw.Setting(
    teacher=seqlaw.Teacher(**TEACHER), M=32, N=2048, P=16, d=128, schedule=seqlaw.WSD(gamma=0.1, L=20000)
)
# JSON carries every bit; but a batch of another size sums in another order, and approx cancels a little.
ROUNDING = 1e-11
PLAN = {**TEACHER, "compute": 200, "tokens": 50, "d": 64}


@pytest.fixture(scope="module")
def server():
    with explorer() as (address, _), httpx.Client(base_url=address, timeout=30) as client:
        yield client


def finished(server, job, seconds=60.0):
    end = time.monotonic() + seconds
    while job["state"] in ("waiting", "running") and time.monotonic() < end:
        time.sleep(0.05)
        job = server.get(f"/api/jobs/{job['id']}").json()
    return job


# ---- numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("along", "start", "stop"), [("P", 2, 300), ("R", 5.5, 1e4)])
def test_the_curve_is_the_librarys(server, along, start, stop):
    body = QUESTION | {"along": along, "start": start, "stop": stop, "points": 5}
    answer = server.post("/api/curve", json=body).json()
    values = [row[along] for row in answer["rows"]]
    if along == "R":
        values = np.geomspace(start, stop, 5).tolist()
    for row, risk in zip(answer["rows"], seqlaw.curve(SETTING, along, values), strict=True):
        for name in ("approx", "bias", "variance", "reducible", "total"):
            assert row[name] == pytest.approx(getattr(risk, name), rel=ROUNDING)
    assert answer["point"]["reducible"] == pytest.approx(seqlaw.risk(SETTING).reducible, rel=ROUNDING)
    middle = answer["rows"][len(answer["rows"]) // 2]
    assert all(
        math.isclose(answer["guides"][name][len(values) // 2], middle[name]) for name in answer["guides"]
    )


@pytest.mark.parametrize("change", [{}, {"N": None, "batch": 8}], ids=["full batch", "mini-batches"])
def test_the_curve_along_the_position_is_the_librarys(server, change):
    """Beside it the risk at the training length: the mean over the positions."""
    body = QUESTION | {"along": "position", "start": 0, "stop": 31, "points": 4} | change
    answer = server.post("/api/curve", json=body).json()
    assert (answer["tested"], answer["guides"]) == ("position", {})
    setting = SETTING.but(N=None, batch=8) if change else SETTING
    for row, p in zip(answer["rows"], [0, 2, 9, 31], strict=True):
        told = seqlaw.risk(replace(setting, position=p)).reducible
        assert (row["position"], row["reducible"]) == (p, pytest.approx(told, rel=ROUNDING))
    assert answer["point"]["reducible"] == pytest.approx(seqlaw.risk(setting).reducible, rel=ROUNDING)
    assert "--along position --from 0 --to 31" in answer["copy"]["command"]


def test_the_spectrum_has_its_parts_and_its_marks(server):
    answer = server.post("/api/spectrum", json=SPECTRUM).json()
    initial, innovation = SETTING.teacher.at(answer["j"]).averaged_parts(16)
    np.testing.assert_array_equal(answer["initial"], initial)
    np.testing.assert_array_equal(answer["total"], initial + innovation)
    # The parts cross where they are equal; bisection stops at 1e-12 of log j.
    left, right = SETTING.teacher.at([answer["marks"]["m_P"]]).averaged_parts(16)
    assert left[0] == pytest.approx(right[0], rel=1e-10)
    assert answer["marks"]["kappa"] == seqlaw.rates(SETTING).guides["kappa"]
    assert answer["badge"]["regime"] == "II"
    assert len(answer["badge"]["conditions"]) == len(seqlaw.rates(SETTING).conditions)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ({"alpha": 0.5}, "The theorem needs alpha > 1, got 0.5. "),
        (
            {"theta": 0.8},
            "The theorem needs theta > 1, got 0.8; the theorem needs theta >= alpha - 2r",
        ),
        ({"d": 40}, "The theorem needs d >= C_amb M"),
    ],
)
def test_outside_the_theorem_the_badge_says_so_and_no_guide_is_drawn(server, broken, says):
    body = QUESTION | {"along": "P", "start": 2, "stop": 64, "points": 3}
    inside, outside = (server.post("/api/curve", json=body | change).json() for change in ({}, broken))
    assert inside["badge"]["covered"]
    assert set(inside["guides"]) == {"approx", "bias", "variance"}
    assert not outside["badge"]["covered"]
    assert outside["badge"]["sentence"].startswith(says)
    assert outside["guides"] == {}


def test_a_guide_ends_where_the_theorem_does(server):
    """d = 128 is enough for widths up to 64; the guide is scaled at the middle of these."""
    body = QUESTION | {"along": "M", "start": 8, "stop": 128, "points": 5}
    answer = server.post("/api/curve", json=body).json()
    for name in ("approx", "bias", "variance"):
        guide = answer["guides"][name]
        assert [value is None for value in guide] == [row["M"] > 64 for row in answer["rows"]]
        assert guide[2] == pytest.approx(answer["rows"][2][name])


def test_a_curve_through_the_interpolation_peak_has_it_marked(server):
    """Saturated training on about as many tokens as the student has dimensions: a peak near N·P = M = 32."""
    body = QUESTION | {"P": 4, "schedule": "constant", "L": 1e7}
    body |= {"along": "N", "start": 2, "stop": 128, "points": 7}
    answer = server.post("/api/curve", json=body).json()
    assert answer["mark"] == {"at": 8.0, "words": "N·P = M"}
    peak = max(answer["rows"], key=lambda row: row["reducible"])
    assert (peak["N"], answer["slopes"]["bias"]) == (8, None)
    for row in [answer["point"], *answer["rows"]]:
        parts = sum(row[name] for name in ("approx", "bias", "variance", "cross"))
        assert row["reducible"] == pytest.approx(parts, rel=1e-12)
    assert server.post("/api/curve", json=body | {"start": 16}).json()["mark"] is None


def test_the_slopes_of_a_curve_have_no_chance_in_them(server):
    answer = server.post("/api/curve", json=QUESTION | {"along": "P"}).json()
    assert answer["se_is"] == "curvature"
    assert set(answer["slopes"]["bias"]) == {"slope", "se", "r2"}


def test_the_page_starts_with_the_defaults_of_the_commands(server):
    """The risk views with d of `risk`, the planner with that of `plan`; ranges are the questions'."""
    controls = server.get("/api/start").json()["controls"]
    assert (controls["curve"]["d"]["value"], controls["plan"]["d"]["value"]) == (str(MODES), "inf")
    assert (controls["curve"]["gamma"]["value"], controls["curve"]["L"]["value"]) == (str(GAMMA), str(STEPS))
    assert controls["curve"]["M"]["words"] == Spectrum.options()["M"].words
    assert controls["curve"]["M"]["high"] == Spectrum.options()["M"].slider.high


def test_longer_or_more_is_the_librarys(server):
    body = SPLIT | {"tokens": 1e5, "eval_length": [64], "points": 4}
    answer = server.post("/api/tradeoff", json=body).json()
    lengths = list(dict.fromkeys(row["P"] for row in answer["rows"]))
    mine = seqlaw.tradeoff(SETTING, 1e5, lengths=lengths, eval_lengths=(64,))
    for name in ("cross", "reducible"):
        shown = [row[name] for row in answer["rows"]]
        assert shown == pytest.approx([getattr(row, name) for row in mine.rows], rel=ROUNDING)
    assert answer["best"] == {name: list(ends) for name, ends in mine.best.items()}


SPECTRUM = {name: value for name, value in QUESTION.items() if name != "N"}
SPLIT = {name: value for name, value in QUESTION.items() if name not in ("N", "P")}
LADDER = {**TEACHER, "M": 16, "d": 64, "schedule": "constant", "L": 3000}


def test_ladders_are_the_librarys_and_so_are_the_copies(server, capsys):
    body = LADDER | {"candidates": [2, 256], "shares": [0.02, 0.3, 0.5, 0.98], "eval_length": 256}
    body |= {"sketches": 2, "tokens": 1e6}
    answer = server.post("/api/ladders", json=body).json()
    setting = replace(
        SETTING, M=16, d=64, schedule=seqlaw.Constant(gamma=GAMMA, L=3000), eval_length=256, N=1, P=2
    )
    mine = ladder_curve(setting, 1e6, candidates=[2, 256], shares=[0.02, 0.3, 0.5, 0.98], sketches=2)
    shown = [row["reducible"] for row in answer["rows"]]
    assert shown == pytest.approx([row.reducible for row in mine.rows], rel=ROUNDING)
    assert answer["notes"] == [mine.sentence]
    assert answer["badge"]["conditions"] == []  # which are of one length
    document = json.loads(run(capsys, answer["copy"]["command"] + " --json"))
    assert [row["reducible"] for row in document["rows"]] == pytest.approx(shown, rel=ROUNDING)
    printed = run_python(answer["copy"]["python"])
    assert [float(row[-1]) for row in printed] == pytest.approx(shown, rel=ROUNDING)


def test_names_stand_for_a_teacher_and_a_schedule(server):
    """As in Python; the bodies are those of docs/explorer-api.md, and the document says what is taken."""
    body = {"teacher": "regime2", "M": 32, "d": 256, "schedule": "wsd"}
    body |= {"candidates": [2, 512], "shares": [0.1, 0.3], "tokens": 1e6, "eval_length": 512}
    spelt = {**TEACHER, "schedule": "wsd", "gamma": "best", "L": STEPS}
    few = body | {"sketches": 2}
    named = server.post("/api/ladders", json=few).json()
    assert named["rows"] == server.post("/api/ladders", json=few | spelt).json()["rows"]
    plan = {"teacher": "regime2", "schedule": "wsd", "d": "inf", "compute": 1e14, "tokens": 1e6}
    assert server.post("/api/plan", json=plan).status_code == 200
    page = (ROOT / "docs/explorer-api.md").read_text(encoding="utf-8")
    shown = [json.loads(each) for each in re.findall(r"-d '(\{.*?\})'", page, re.DOTALL)]
    assert shown[1:] == [plan, body]
    kinds = server.get("/openapi.json").json()["components"]["schemas"]
    ladder = {name: part["anyOf"][0] for name, part in kinds["LaddersBody"]["properties"].items()}
    assert (ladder["M"]["maximum"], ladder["sketches"]["maximum"]) == (128, 8)
    assert ladder["teacher"]["enum"] == list(seqlaw.PRESETS)


def once(**change):
    """The question in one pass: a batch instead of N, and a schedule that costs little."""
    return (
        {k: v for k, v in QUESTION.items() if k != "N"}
        | {"batch": 8, "schedule": "block", "L": None}
        | change
    )


ONCE = seqlaw.Setting(
    teacher=SETTING.teacher, M=32, P=16, d=128, batch=8, schedule=seqlaw.BlockDecay(gamma=GAMMA, L=STEPS)
)


def test_one_pass_along_the_batch_is_the_librarys_and_so_are_its_copies(server, capsys):
    body = once(along="b", start=1, stop=512, points=4, tokens=1e6, gamma="best")
    answer = server.post("/api/curve", json=body).json()
    mine = seqlaw.curve(ONCE, "b", [1, 8, 64, 512], tokens=1e6, tune=True)
    shown = [row["reducible"] for row in answer["rows"]]
    assert shown == pytest.approx([one.reducible for one in mine], rel=ROUNDING)
    assert [row["L"] for row in answer["rows"]] == [10**6 // (16 * b) for b in (1, 8, 64, 512)]
    own = next(row for row in answer["rows"] if row["batch"] == 8)
    assert answer["point"]["reducible"] == pytest.approx(own["reducible"], rel=ROUNDING)
    assert answer["derived"] == {"N": own["N"], "tokens": 16 * own["N"]}
    assert (answer["guides"], answer["badge"]["conditions"]) == ({}, [])  # the theorem is of the full batch
    # Beyond the critical batch bias + variance are 20 % above their best, which lies among small batches.
    critical = seqlaw.risk(mine[1].setting).diagnostics["critical_tokens"] / 16
    assert answer["mark"] == {"at": pytest.approx(critical, rel=1e-6), "words": "critical batch"}
    assert "20 % above their best" in answer["notes"][0]
    document = json.loads(run(capsys, answer["copy"]["command"] + " --json"))
    assert [row["reducible"] for row in document["rows"]] == pytest.approx(shown, rel=ROUNDING)
    printed = run_python(answer["copy"]["python"])
    assert [float(row[-1]) for row in printed] == pytest.approx(shown, rel=ROUNDING)
    moving = server.post("/api/curve", json=body | {"quick": True}).json()
    assert (moving["point"], moving["mark"]) == (None, None)
    assert moving["rows"][0]["variance"] == pytest.approx(mine[0].variance, rel=1e-3)


def test_longer_or_more_in_one_pass_is_the_librarys(server, capsys):
    """A batch of 4096 leaves the longest sequences no steps: the lengths end before."""
    body = once(batch=4096, tokens=1e6, eval_length=[64], points=4, gamma="best")
    del body["P"]
    answer = server.post("/api/tradeoff", json=body).json()
    lengths = list(dict.fromkeys(row["P"] for row in answer["rows"]))
    assert lengths[-1] * 4096 * ONCE.schedule.least_steps() <= 1e6
    setting = replace(ONCE, batch=4096)
    mine = seqlaw.tradeoff(setting, 1e6, lengths=lengths, eval_lengths=(64,), tune=True)
    shown = [row["reducible"] for row in answer["rows"]]
    assert shown == pytest.approx([row.reducible for row in mine.rows], rel=ROUNDING)
    document = json.loads(run(capsys, answer["copy"]["command"] + " --json"))
    assert [row["reducible"] for row in document["rows"]] == pytest.approx(shown, rel=ROUNDING)


def test_one_pass_is_sampled_in_a_job(server):
    change = {"M": 8, "d": 32, "sketches": 2, "seed": 5}
    body = once(along="b", start=1, stop=8, points=2, tokens=3200, **change)
    job = finished(server, server.post("/api/jobs/sampled", json=body).json())
    assert job["state"] == "done", job["error"]
    mine = seqlaw.curve(
        replace(ONCE, M=8, d=32),
        "b",
        [1, 8],
        tokens=3200,
        method="sampled",
        sketches=2,
        repetitions=1,
        seed=5,
    )
    shown = [row["reducible"] for row in job["answer"]["rows"]]
    assert shown == pytest.approx([one.reducible for one in mine], rel=1e-9)
    long = once(along="P", stop=64, schedule="block", L=10**7)
    job = finished(server, server.post("/api/jobs/sampled", json=long).json())
    assert (job["error"]["field"], "lower d, b, the steps" in job["error"]["rule"]) == ("sampled", True)


def test_epochs_are_the_librarys_along_them_and_at_one(server):
    """Along epochs the sequences stay, with the worth E and its sentence; elsewhere K goes with the batch."""
    change = {"L": 300, "points": 3, "gamma": "best"}
    answer = server.post("/api/curve", json=once(along="epochs", start=1, stop=9, **change)).json()
    asked = replace(ONCE, schedule=seqlaw.BlockDecay(gamma=GAMMA, L=300))
    mine = seqlaw.curve(asked, "epochs", [1, 3, 9], tune=True)
    assert [row["N"] for row in answer["rows"]] == [2400] * 3
    for name in ("reducible", "E"):
        assert [row[name] for row in answer["rows"]] == pytest.approx(
            [r[name] for r in mine.points], rel=1e-9
        )
    assert answer["notes"] == [mine.sentence]
    body = once(along="P", start=2, stop=8, epochs=4, **change)
    answer = server.post("/api/curve", json=body).json()
    mine = seqlaw.curve(asked.but(epochs=4), "P", [2, 4, 8], tune=True)
    assert [row["reducible"] for row in answer["rows"]] == pytest.approx(
        [r.reducible for r in mine], rel=1e-9
    )
    assert "--batch 8 --epochs 4" in answer["copy"]["command"]
    body = once(tokens=3200, eval_length=[64], epochs=4, points=3, gamma="best")
    answer = server.post("/api/tradeoff", json={k: v for k, v in body.items() if k != "P"}).json()
    assert {row["L"] * 8 * row["P"] for row in answer["rows"]} <= {
        4 * row["N"] * row["P"] for row in answer["rows"]
    }
    assert "--epochs 4" in answer["copy"]["command"]


def test_mini_batches_that_come_round_are_sampled_and_copied(server):
    change = {"M": 8, "d": 32, "schedule": "block", "L": 100, "sketches": 2, "epochs": 4}
    body = once(along="P", start=2, stop=4, points=2, safeguard=False, **change)
    job = finished(server, server.post("/api/jobs/sampled", json=body).json())
    assert job["state"] == "done", job["error"]
    asked = replace(ONCE, M=8, d=32, schedule=seqlaw.BlockDecay(gamma=GAMMA, L=100), epochs=4)
    mine = seqlaw.curve(asked, "P", [2, 4], method="sampled", sketches=2, repetitions=1)
    shown = [row["reducible"] for row in job["answer"]["rows"]]
    assert shown == pytest.approx([one.reducible for one in mine], rel=1e-9)
    assert [row["N"] for row in job["answer"]["rows"]] == [8 * 25] * 2
    assert "--batch 8 --epochs 4 --no-safeguard" in job["answer"]["copy"]["command"]
    assert "batch=8, epochs=4" in job["answer"]["copy"]["python"]


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed (the extra gpu)")
def test_networks_are_trained_in_a_job(server):
    change = {"M": 4, "d": 16, "L": 20, "sketches": 2, "seed": 3}
    body = once(along="P", start=2, stop=4, points=2, method="trained", network="lru", **change)
    job = finished(server, server.post("/api/jobs/sampled", json=body).json())
    assert job["state"] == "done", job["error"]
    asked = replace(
        ONCE, M=4, d=16, schedule=ONCE.schedule.with_steps(20), network=seqlaw.Network(name="lru")
    )
    mine = seqlaw.curve(asked, "P", [2, 4], method="trained", sketches=2, repetitions=1, seed=3)
    shown = [row["reducible"] for row in job["answer"]["rows"]]
    assert shown == pytest.approx([one.reducible for one in mine], rel=1e-6)
    assert [row["network"] for row in job["answer"]["rows"]] == ["lru"] * 2
    assert "--method trained" in job["answer"]["copy"]["command"]
    assert "--network lru" in job["answer"]["copy"]["command"]
    assert "network=Network(name='lru'" in job["answer"]["copy"]["python"]


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed (the extra gpu)")
def test_what_cannot_be_trained_in_a_job_is_refused(server):
    whole = QUESTION | {"method": "trained", "points": 2}
    job = finished(server, server.post("/api/jobs/sampled", json=whole).json())
    assert job["error"]["field"] == "batch"
    long = once(along="P", stop=64, method="trained", network="transformer", L=10**5)
    job = finished(server, server.post("/api/jobs/sampled", json=long).json())
    assert (job["error"]["field"], "at most 120 s" in job["error"]["rule"]) == ("sampled", True)


def test_without_torch_a_job_names_the_extra(monkeypatch):
    monkeypatch.setattr(views, "find_spec", lambda name: None)
    asked = schema.Sampled(method="trained", batch=4, M=4, d=16, L=20)
    with pytest.raises(InputError, match=r"method needs torch: pip install 'seqlaw\[gpu\]'"):
        views.sampled(asked, lambda done, total: None)


def test_a_step_as_given_may_diverge_and_the_curve_says_where(server, capsys):
    body = once(M=8, d=32, along="P", start=2, stop=8, points=3)
    body |= {"schedule": "constant", "gamma": 10, "L": 200}
    kept, free = (
        server.post("/api/curve", json=body | change).json() for change in ({}, {"safeguard": False})
    )
    assert "--no-safeguard" not in kept["copy"]["command"]
    assert all(row["reducible"] < 1 for row in kept["rows"])
    assert [row["reducible"] is None for row in free["rows"]] == [True, False, False]
    assert free["slopes"]["reducible"] is None
    assert "diverges" in " ".join(free["flags"])
    document = json.loads(run(capsys, free["copy"]["command"] + " --json"))
    assert [row["variance"] for row in document["rows"]] == [row["variance"] for row in free["rows"]]


def test_the_page_is_sent_what_words_mean(server):
    assert server.get("/api/start").json()["words"] == WORDS


@pytest.mark.slow
def test_one_pass_is_planned_in_a_job(server, capsys):
    body = PLAN | {"schedule": "block", "compute": 1e8, "tokens": 1e5, "max_P": 64}
    job = finished(server, server.post("/api/jobs/one-pass", json=body).json())
    answer = job["answer"]
    budget = Budget(compute=1e8, tokens=1e5, max_P=64)
    mine = seqlaw.plan(SETTING.teacher, budget, schedule="block", d=64, one_pass=True)
    assert answer["notes"] == [mine.sentence]
    best, one = answer["finite"], mine.setting
    assert [best[name] for name in ("M", "P", "batch", "L")] == [one.M, one.P, one.batch, one.schedule.L]
    document = json.loads(run(capsys, answer["copy"]["command"] + " --json"))
    assert document["finite"] == answer["finite"]
    assert "one_pass=True" in answer["copy"]["python"]


def test_sampled_points_come_from_a_job(server):
    body = QUESTION | {"M": 8, "d": 32, "N": 64, "along": "P", "start": 2, "stop": 16, "points": 3}
    body |= {"sketches": 2, "repetitions": 2, "seed": 5}
    job = finished(server, server.post("/api/jobs/sampled", json=body).json())
    assert (job["state"], job["done"], job["total"]) == ("done", 4, 4)
    setting = seqlaw.Setting(teacher=SETTING.teacher, M=8, N=64, P=16, d=32, schedule=SETTING.schedule)
    values = [row["P"] for row in job["answer"]["rows"]]
    mine = seqlaw.curve(setting, "P", values, method="sampled", sketches=2, repetitions=2, seed=5)
    for row, risk in zip(job["answer"]["rows"], mine, strict=True):
        # Same bits on one BLAS thread; the library's caller may have more.
        assert row["reducible"] == pytest.approx(risk.reducible, rel=1e-12)
        assert row["standard_error"]["bias"] == pytest.approx(risk.standard_error["bias"], rel=1e-9)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"compute": 1e9, "tokens": 1e4, "d": "inf"},
        {"compute": 1e9, "tokens": 1e4, "cost": "N*P*M*L", "d": "inf"},
    ],
)
def test_the_plan_is_the_librarys(server, change):
    body = PLAN | change
    answer = server.post("/api/plan", json=body).json()
    limits = {name: body[name] for name in ("compute", "tokens", "cost") if name in body}
    budget, d = Budget(**limits), float(body["d"])
    mine = seqlaw.plan(SETTING.teacher, budget, schedule=SETTING.schedule, d=d)
    best = answer["finite"]
    assert [best[name] for name in "MNPL"] == [getattr(mine.finite.best, name) for name in "MNPL"]
    assert answer["notes"] == list(mine.notes)
    assert answer["confirmation"] is None
    lengths = [[point[name] for name in "PMNL"] for point in best["by_length"]]
    assert lengths == [[getattr(point, name) for name in "PMNL"] for point in mine.finite.by_length]


def test_the_six_panels_have_the_papers_slopes(server):
    answer = server.get("/api/panels").json()
    slopes = [c for panel in answer["panels"] for c in panel["curves"]]
    assert len(answer["panels"]) == 6
    assert len(slopes) == 10
    # The paper's slopes scatter by up to 0.075 over repetitions (variance along P in Regime I).
    assert all(abs(c["slope"] - c["paper"]) < 0.08 for c in slopes)
    assert {c["se_is"] for c in slopes} == {"curvature"}  # nothing is drawn


def run(capsys, command):
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(command)[1:])
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.slow
def test_the_panels_of_a_reproduce_folder_are_its_own_and_so_is_the_copied_run(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    folder = str(tmp_path / "a folder")
    run(capsys, f"seqlaw reproduce --quick --panels bf --seed 3 --overlay exact --out '{folder}' --jobs 1")
    answer = panels.panels(folder)
    curves = [curve for panel in answer["panels"] for curve in panel["curves"]]
    document = json.loads(run(capsys, answer["copy"]["command"] + " --json"))
    again = document["slopes"]
    assert document["overlay"] == ["exact"]
    assert answer["overlay"] == {"exact": {"dash": "14.4px,4px", "words": "long dashes"}}
    assert [len(panel["overlays"]) for panel in answer["panels"]] == [1, 3]
    assert [c["guide_slope"] for c in curves] == [row["guide"] for row in again]
    assert [c["slope"] for c in curves] == [row["slope"] for row in again]
    # The quick grid has one sketch of the bias, and so the error of the fit instead of one over sketches.
    assert [c["se"] for c in curves[1:]] == [row["slope_se"] for row in again[1:]]
    assert [c["se_is"] for c in curves] == ["curvature"] + 3 * ["standard error"]
    assert [c["axis"] for c in curves] == ["R", "N", "P", "R"]
    assert all(len(c["error"]) == len(c["y"]) == len(c["x"]) for c in curves[1:])
    printed = run_python(answer["copy"]["python"])
    assert [float(row[-1]) for row in printed] == [c["slope"] for c in curves]
    for text in ("{}", "[]", "not json"):
        (tmp_path / "a folder" / "table.json").write_text(text)
        with pytest.raises(InputError, match=r"table\.json"):
            panels.panels(folder)


# ---- rules --------------------------------------------------------------------------------------------


def test_all_that_is_wrong_is_named_at_once(server):
    error = server.post("/api/curve", json={"M": -3, "P": "x"}).json()["error"]
    assert error["message"] == "M must be at least 1, got -3"
    assert error["also"] == ["P must be a number, got x"]


REFUSED = [
    ("/api/curve", {"rho": 1.2}, "Teacher.rho"),
    ("/api/curve", {"alpha": "steep"}, "alpha"),
    ("/api/curve", {"M": "abc"}, "M"),
    ("/api/curve", {"M": 2.5}, "M"),
    ("/api/curve", {"M": 129}, "M"),
    ("/api/curve", {"N": 1e16}, "N"),
    ("/api/curve", {"d": "many"}, "d"),
    ("/api/curve", {"schedule": "wsd", "L": 10, "R": 3}, "R"),
    ("/api/curve", {"schedule": "block", "warmup": 0.2}, "schedule.warmup"),
    ("/api/curve", {"gamma": -1}, "WSD.gamma"),
    ("/api/curve", {"along": "M", "start": 8, "stop": 500}, "stop"),
    ("/api/curve", {"along": "R", "start": 0.1, "stop": 50}, "start"),
    ("/api/curve", {"start": 9, "stop": 9}, "stop"),
    ("/api/curve", {"points": 1000}, "points"),
    ("/api/curve", {"colour": "red"}, "colour"),
    ("/api/curve", {"method": "exact"}, "method"),
    ("/api/jobs/sampled", {"method": "exact"}, "method"),
    ("/api/jobs/sampled", {"quick": True}, "quick"),
    ("/api/curve", {"batch": 8}, "N"),
    ("/api/curve", {"L": None, "R": 100, "gamma": "best"}, "gamma"),
    ("/api/curve", {"safeguard": False}, "safeguard"),
    ("/api/curve", {"N": None, "batch": 8, "epochs": 65}, "epochs"),
    ("/api/curve", {"N": None, "batch": 8, "epochs": 0}, "epochs"),
    ("/api/tradeoff", {"epochs": 2, "eval_length": [16]}, "epochs"),
    ("/api/jobs/sampled", {"epochs": 2}, "epochs"),
    ("/api/curve", {"tokens": 1e6}, "tokens"),
    ("/api/curve", {"along": "b"}, "along"),
    ("/api/curve", {"N": None, "batch": 8, "along": "N"}, "along"),
    ("/api/curve", {"N": None, "batch": 0}, "batch"),
    ("/api/curve", {"N": None, "batch": 8, "points": 25}, "points"),
    ("/api/curve", {"N": None, "batch": 8, "L": 1e13}, "L"),
    ("/api/curve", {"N": None, "batch": 8, "along": "R", "stop": 1e14}, "stop"),
    ("/api/curve", {"N": None, "batch": 8, "along": "R", "start": 90, "gamma": "best"}, "gamma"),
    ("/api/curve", {"N": None, "batch": 8, "along": "b", "stop": 64, "tokens": 9}, "tokens"),
    ("/api/curve", {"N": None, "batch": 8, "schedule": "constant", "momentum": 0.9}, "momentum"),
    ("/api/spectrum", {"batch": 8}, "batch"),
    ("/api/tradeoff", {"batch": 8, "L": None, "eval_length": [16] * 4, "gamma": "best"}, "points"),
    ("/api/tradeoff", {"batch": 8, "gamma": 0.1, "L": None, "eval_length": [16], "tokens": 1e14}, "tokens"),
    ("/api/tradeoff", {"batch": 8, "gamma": 0.1, "L": None, "eval_length": [16], "tokens": 100}, "tokens"),
    ("/api/tradeoff", {"eval_length": []}, "eval_length"),
    ("/api/tradeoff", {"eval_length": [16], "tokens": 1}, "tokens"),
    ("/api/jobs/sampled", {"sketches": 100}, "sketches"),
    ("/api/plan", {"rho": 1.2}, "Teacher.rho"),
    ("/api/plan", {"compute": "much", "tokens": 50}, "compute"),
    ("/api/plan", {"compute": 1e31, "tokens": 50}, "compute"),
    ("/api/plan", {"compute": 200, "tokens": 0}, "tokens"),
    ("/api/plan", {"compute": 200, "tokens": 50, "min_P": 60}, "min_P"),
    ("/api/plan", {"compute": 200, "tokens": 50, "colour": 1}, "colour"),
    ("/api/plan", {"compute": 2, "tokens": 50}, "compute"),  # of the search, not of the body
    ("/api/plan", {"compute": 200, "tokens": 50, "cost": "N**2"}, "cost"),
    ("/api/plan", {"d": 2.5}, "d"),
    ("/api/plan", {"eval_length": 0}, "eval_length"),
    ("/api/plan", {"M": 9}, "M"),
    ("/api/ladders", {"M": 200, "d": 512}, "M"),
    ("/api/ladders", {"d": "inf"}, "d"),
    ("/api/ladders", {"candidates": [9, 9]}, "candidates"),
    ("/api/ladders", {"shares": [2]}, "shares"),
    ("/api/ladders", {"candidates": [2, 1e9], "tokens": 1e6}, "candidates"),
    ("/api/ladders", {"L": 20}, "L"),
    ("/api/ladders", {"schedule": "constant", "momentum": 0.9}, "momentum"),
    ("/api/ladders", {"batch": 8}, "batch"),
    ("/api/ladders", {"teacher": "regime3"}, "teacher"),
    ("/api/ladders", {"schedule": "os:path"}, "schedule"),
]


@pytest.mark.parametrize(("path", "change", "field"), REFUSED)
def test_what_is_refused_names_the_field(server, path, change, field):
    bodies = {"/api/plan": PLAN, "/api/ladders": LADDER, "/api/tradeoff": SPLIT, "/api/spectrum": SPECTRUM}
    answer = server.post(path, json=bodies.get(path, QUESTION) | change)
    assert answer.status_code == 422, answer.text
    error = answer.json()["error"]
    assert error["field"] == field
    assert error["message"].startswith(f"{field} {error['rule']}")
    assert "input should" not in error["message"]  # our words, not pydantic's


@pytest.mark.parametrize(
    ("change", "field"),
    [({"d": "inf"}, "d"), ({"M": 300, "d": 900}, "M"), ({"d": 1000, "N": 10**6, "stop": 10**5}, "sampled")],
)
def test_a_job_that_is_too_large_says_so(server, change, field):
    job = finished(server, server.post("/api/jobs/sampled", json=QUESTION | change).json())
    assert job["state"] == "failed"
    assert job["error"]["field"] == field


def test_bodies_that_are_no_bodies(server):
    for content, status in ((b'{"a"', 400), (b"[" * 9000, 400), (b"", 422), (b"null", 422)):
        answer = server.post("/api/curve", content=content, headers={"content-type": "application/json"})
        assert (answer.status_code, set(answer.json())) == (status, {"error"})
    long = server.post("/api/curve", content=b" " * (guard.MOST_BYTES + 1))
    assert long.status_code == 413
    unmeasured = server.post("/api/curve", content=iter([b" " * 9000] * 3))
    assert unmeasured.status_code == 413
    assert server.get("/api/nothing").json()["error"]["field"] == "request"
    assert server.get("/api/jobs/nothing").status_code == 404
    wrong = server.get("/api/curve")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert wrong.json()["error"]["message"] == "request must be by POST, got GET /api/curve"
    plain = server.post("/api/curve", content=b"{}", headers={"content-type": "text/plain"})
    assert plain.status_code == 415
    assert plain.json()["error"]["message"] == "content-type must be application/json, got text/plain"


# ---- the door ------------------------------------------------------------------------------------------


def test_every_answer_has_the_headers_and_no_cookie(server):
    for path in ("/", "/app.js", "/plotly.js", "/api/start", "/api/nothing"):
        headers = server.get(path).headers
        for name, value in guard.HEADERS.items():
            assert headers[name] == value
        assert "set-cookie" not in headers
        assert "server" not in headers
    policy = dict(part.split(" ", 1) for part in guard.POLICY.split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert "http" not in guard.POLICY


def test_pages_that_load_from_elsewhere_are_off(server):
    assert {server.get(path).status_code for path in ("/docs", "/redoc")} == {404}
    for file in (files("seqlaw.web") / "static").iterdir():
        addresses = set(re.findall(r"(?:https?:)?//[\w.]+", re.sub(r"//\s.*", "", file.read_text())))
        assert addresses <= {"http://www.w3.org"}, file  # the name of the SVG language, not an address


def test_only_this_host_and_this_page_are_let_in(server):
    assert server.get("/api/start", headers={"host": "evil.example"}).status_code == 421
    assert server.get("/api/start", headers={"host": "localhost:8765"}).status_code == 200
    assert server.get("/api/start", headers={"host": "[::1]:8765"}).status_code == 200
    assert server.get("/api/start", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert server.get("/api/start", headers={"sec-fetch-site": "same-origin"}).status_code == 200
    origins = (("http://evil.example", 403), ("null", 403), ("http://[", 403), ("http://localhost:8765", 200))
    for origin, status in origins:
        assert server.get("/api/start", headers={"origin": origin}).status_code == status


def test_the_command_refuses_other_hosts_a_taken_port_and_a_missing_extra(server, monkeypatch):
    with pytest.raises(InputError, match="loopback address without --allow-remote"):
        explore.explore(explore.Explore(host="0.0.0.0", port=0, no_open=True))
    with pytest.raises(InputError, match="must be free"):
        explore.explore(explore.Explore(host="127.0.0.1", port=server.base_url.port, no_open=True))
    with pytest.raises(InputError, match="must be a folder of `seqlaw reproduce`"):
        explore.explore(explore.Explore(port=0, no_open=True, results="nowhere"))
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingLibrary, match=r"pip install 'seqlaw\[web\]'"):
        explore.explore(explore.Explore(port=0, no_open=True))


# ---- jobs and workers --------------------------------------------------------------------------------------


def test_a_job_can_be_cancelled_and_jobs_are_few(server):
    body = QUESTION | {"d": 512, "N": 4096, "stop": 512, "points": 3, "sketches": 4}
    jobs = [server.post("/api/jobs/sampled", json=body) for _ in range(6)]
    assert [job.status_code for job in jobs] == [202] * 4 + [429] * 2
    began = time.monotonic()
    for job in jobs[:4]:
        assert server.delete(f"/api/jobs/{job.json()['id']}").json()["state"] == "cancelled"
    assert time.monotonic() - began < 5  # a killed worker does not finish its data set first
    assert server.get(f"/api/jobs/{jobs[0].json()['id']}").json()["state"] == "cancelled"
    again = body | {"d": 64, "N": 16, "stop": 8, "sketches": 1}
    assert finished(server, server.post("/api/jobs/sampled", json=again).json())["state"] == "done"


def test_a_late_answer_is_stopped_and_the_queue_is_short():
    question = Spectrum.read(SPECTRUM)

    async def run():
        few = pool.Pool(size=1, queue=1, seconds=60)
        try:
            await few.warm()
            few.seconds = 1e-4
            with pytest.raises(pool.OutOfTime):
                await few.run("spectrum", question)
            few.seconds = 60
            first = asyncio.create_task(few.run("spectrum", question))
            await asyncio.sleep(0)
            second = asyncio.create_task(few.run("spectrum", question))
            await asyncio.sleep(0)
            with pytest.raises(pool.Busy):
                await few.run("spectrum", question)
            second.cancel()  # a question still waiting leaves no trace
            assert b'"total"' in await first
            with pytest.raises(InputError, match="must be at most 1024 for sampled points"):
                await few.run("sampled", schema.Sampled.read(QUESTION | {"d": math.inf}))
            assert b'"total"' in await few.run("spectrum", question)
        finally:
            await few.close()

    asyncio.run(run())


def children(pid):
    """The processes that a process has started (Linux)."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def end(pids, seconds=10.0):
    """Wait for processes to end (one that nobody has waited for has ended too)."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        left = [pid for pid in pids if Path(f"/proc/{pid}/cmdline").exists()]
        if not any(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left):
            return True
        time.sleep(0.05)
    return False


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
SMALL_JOB = QUESTION | {"M": 8, "d": 32, "N": 64, "stop": 8, "points": 2, "sketches": 1}
LONG_JOB = QUESTION | {"d": 512, "N": 4096, "stop": 512, "points": 3, "sketches": 4}


@on_linux
def test_a_worker_that_ended_while_idle_costs_nothing():
    with explorer() as (address, process), httpx.Client(base_url=address, timeout=30) as client:
        assert finished(client, client.post("/api/jobs/sampled", json=SMALL_JOB).json())["state"] == "done"
        idle = children(process.pid)
        assert len(idle) == 2
        for pid in idle:
            os.kill(pid, signal.SIGKILL)
        jobs = [client.post("/api/jobs/sampled", json=SMALL_JOB).json() for _ in range(3)]
        assert client.post("/api/spectrum", json=SPECTRUM).status_code == 200
        assert [finished(client, job)["state"] for job in jobs] == ["done"] * 3


@on_linux
def test_a_worker_that_ends_amid_a_job_fails_it_and_no_more():
    """The worker of a killed job is replaced once: the question may be at fault."""
    with explorer() as (address, process), httpx.Client(base_url=address, timeout=30) as client:
        before = set(children(process.pid))
        job = client.post("/api/jobs/sampled", json=LONG_JOB).json()
        killed = 0
        while client.get(f"/api/jobs/{job['id']}").json()["state"] in ("waiting", "running"):
            for pid in set(children(process.pid)) - before:
                os.kill(pid, signal.SIGKILL)
                killed += 1
            time.sleep(0.2)
        assert killed >= 1
        state = client.get(f"/api/jobs/{job['id']}").json()
        assert (state["state"], state["error"]["field"]) == ("failed", "job")
        assert finished(client, client.post("/api/jobs/sampled", json=SMALL_JOB).json())["state"] == "done"


@on_linux
@pytest.mark.slow
def test_a_busy_worker_ends_with_a_killed_server():
    with explorer() as (address, process):
        job = httpx.post(f"{address}/api/jobs/sampled", json=LONG_JOB).json()
        while httpx.get(f"{address}/api/jobs/{job['id']}").json()["done"] == 0:
            time.sleep(0.05)
        workers = children(process.pid)
        assert workers
        process.kill()
        assert end(workers)


@pytest.mark.slow
def test_an_answer_to_a_client_that_left_is_no_answer_to_others():
    """The panels were cached, empty, if who asked left while the workers were busy."""
    slow = once(along="P", start=2, stop=4096, points=24, gamma="best")
    with (
        explorer() as (address, _),
        httpx.Client(base_url=address, timeout=60) as client,
        ThreadPoolExecutor(4) as threads,
    ):
        busy = [threads.submit(client.post, "/api/curve", json=slow) for _ in range(4)]
        time.sleep(0.3)
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(f"{address}/api/panels", timeout=0.3)
        for one in busy:
            one.result()
        answer = client.get("/api/panels")
        assert (answer.status_code, len(answer.json()["panels"])) == (200, 6)


def test_bodies_that_never_come_hold_nobody(server):
    with contextlib.ExitStack() as stack:
        for _ in range(guard.MOST_AT_ONCE + 6):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", server.base_url.port)))
            one.sendall(
                b"POST /api/curve HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                b"content-length: 100\r\n\r\n{"
            )
        time.sleep(0.5)
        assert server.post("/api/spectrum", json=SPECTRUM).status_code == 200


def test_a_body_that_never_comes_is_refused_and_a_client_that_reads_nothing_is_left(monkeypatch):
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.05)
    monkeypatch.setattr(guard, "SEND_SECONDS", 0.05)
    scope = {"type": "http", "headers": [(b"host", b"localhost")]}
    sent = []

    async def never(*_):
        await asyncio.sleep(60)

    async def send(message):
        sent.append(message)

    async def empty():
        return {"type": "http.request", "body": b""}

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    door = guard.Guard(app, ["localhost"])
    asyncio.run(door(scope, never, send))
    assert (sent[0]["status"], json.loads(sent[1]["body"])["error"]["field"]) == (408, "body")
    with pytest.raises(TimeoutError):
        asyncio.run(door(scope, empty, never))
    assert door._inside == 0


# ---- folders of strangers ------------------------------------------------------------------------------

SOUND = {
    "method": "exact",
    "seed": 0,
    "grid": "quick",
    "replicates": 1,
    "overlay": [],
    "slopes": [{"panel": "a"}],
}


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """A folder of a stranger's, with a module that must not be run, found by Python."""
    pytest.importorskip("pyarrow")
    (tmp_path / "canary.py").write_text("open('sang', 'w').close()\nclass X: pass\n")
    (tmp_path / "rows.parquet").write_bytes(b"PAR1 of another kind PAR1")
    (tmp_path / "table.json").write_text(json.dumps(SOUND))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize("change", [{"method": "canary:X"}, {"overlay": ["canary:X"]}])
def test_nothing_that_a_folder_names_is_imported(stranger, change, capsys):
    (stranger / "table.json").write_text(json.dumps(SOUND | change))
    with pytest.raises(SystemExit) as ended:
        main(["explore", "--results", str(stranger), "--no-open", "--port", "0"])
    assert ended.value.code == 2
    assert "--results was made with code that is not seqlaw's, canary:X: name it" in capsys.readouterr().err
    with pytest.raises(InputError, match="canary:X"):
        panels.panels(str(stranger))
    assert "canary" not in sys.modules
    assert not (stranger / "sang").exists()


def test_a_worker_finds_no_module_in_the_current_folder_before_the_librarys(tmp_path):
    (tmp_path / "numpy.py").write_text("open('sang', 'w').close()\n")
    (tmp_path / "numba.py").write_text("open('sang', 'w').close()\n")
    done = subprocess.run(
        helper_process.command("seqlaw.web.worker"),
        input=helper_process.pack(("spectrum", Spectrum.read(SPECTRUM))),
        capture_output=True,
        cwd=tmp_path,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "sang").exists()


ODD = [{name: odd} for name in SOUND for odd in (None, 3.5, [], {"a": 1}, "x", [["a"]], -1)]
ODD += [{"slopes": [{"panel": odd}]} for odd in (None, 3, "z", ["a"], {})] + [{"overlay": [3]}]


def test_odd_types_in_a_folder_are_one_clear_error(stranger):
    for change in ODD:
        if change in ({"overlay": []}, {"seed": "3"}):
            continue
        (stranger / "table.json").write_text(json.dumps(SOUND | change))
        with pytest.raises(InputError) as caught:
            panels.panels(str(stranger))
        assert caught.value.field == "results", change
    for text in ("[" * 100000, "\ud800", "{}", "[]", "3"):
        (stranger / "table.json").write_text(text, encoding="utf-8", errors="surrogatepass")
        with pytest.raises(InputError, match=r"must have the table\.json that"):
            panels.panels(str(stranger))
    (stranger / "table.json").write_text(json.dumps(SOUND))
    with pytest.raises(InputError, match=r"must have rows\.parquet as `seqlaw reproduce` wrote it"):
        panels.panels(str(stranger))


# ---- copies -------------------------------------------------------------------------------------------


def run_python(text):
    """What a copied script finds: its reducible risks, row by row."""
    text = text.replace("print(answer)", "for row in answer.tidy_rows(): print(repr(row['reducible']))")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


@pytest.mark.parametrize("along", ["M", "R"])
def test_the_copied_curve_gives_the_same_numbers(server, along):
    body = QUESTION | {"d": "inf", "along": along, "start": 4, "stop": 90, "points": 4, "eval_length": 50}
    answer = server.post("/api/curve", json=body).json()
    printed = run_python(answer["copy"]["python"])
    shown = [row["reducible"] for row in answer["rows"]]
    assert [float(row[-1]) for row in printed] == pytest.approx(shown, rel=ROUNDING)
    words = answer["copy"]["command"].split()
    assert words[:2] == ["seqlaw", "curve"]
    assert words[words.index("-d") + 1] == "inf"


def test_numbers_are_copied_as_typed_and_exactly():
    shown = [typed(x) for x in (4096, 1e6, 1e12, 1234567, 0.1, 1 / 3, math.inf, 1e20)]
    assert shown == ["4096", "1e6", "1e12", "1234567", "0.1", repr(1 / 3), "inf", "1e+20"]


# ---- fuzzing ------------------------------------------------------------------------------------------

EXTREMES = st.one_of(
    st.floats(0.01, 5),
    st.floats(0, 1e308),
    st.sampled_from([0.0, 5e-324, 1e-12, 1.0, 1 - 1e-16, 1.0000001, 60.0, 1e308]),
)
COUNTS = st.one_of(st.integers(1, 50), st.integers(1, 10**15))


@st.composite
def valid_bodies(draw):
    """Specs that the library accepts, at the ends of what it accepts."""
    teacher = {name: draw(EXTREMES) for name in ("alpha", "theta", "r")}
    teacher |= {
        "rho": draw(st.floats(1e-300, 1 - 1e-15)),
        "c_xi": draw(EXTREMES) or 1,
        "c_0": draw(EXTREMES) or 1,
    }
    M = draw(st.integers(1, 10**9))
    body = {
        **teacher,
        "M": M,
        "N": draw(COUNTS),
        "P": draw(COUNTS),
        "d": draw(st.one_of(st.just("inf"), st.integers(M, 10**15))),
        "schedule": draw(st.sampled_from(["wsd", "block", "constant", "cosine"])),
        "gamma": draw(EXTREMES) or 0.1,
        "L": draw(st.integers(20, 10**15)),
    }
    path = draw(st.sampled_from(["spectrum", "curve", "tradeoff", "plan"]))
    once = path in ("curve", "tradeoff") and draw(st.booleans())
    if once:
        body |= {"N": None, "batch": draw(COUNTS), "safeguard": draw(st.booleans())}
    kept = {"spectrum": ("N",), "tradeoff": ("N", "P")}.get(path, ())
    body = {name: value for name, value in body.items() if name not in kept}
    if path == "curve":
        low = draw(st.integers(1, 10**6))
        along = draw(st.sampled_from("MPRb" if once else "MNPR"))
        body["gamma"] = "best" if once and along != "R" and draw(st.booleans()) else body["gamma"]
        body |= {"along": along, "start": low, "stop": low * draw(st.integers(2, 10**6)), "points": 3}
    if path == "tradeoff":
        body |= {"tokens": draw(st.integers(4, 10**15)), "eval_length": [draw(COUNTS)], "points": 2}
    if path == "plan":
        body = {name: body[name] for name in (*teacher, "d", "schedule", "gamma")}
        body |= {"compute": draw(COUNTS) * draw(COUNTS), "tokens": draw(COUNTS)}
    return path, body


def quiet(examples):
    return given_settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def fuzz(server, examples):
    """Requests from the OpenAPI document, valid and not, and from the ends of the specs; the statuses."""
    import schemathesis
    from schemathesis.checks import load_all_checks
    from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

    load_all_checks()
    address = str(server.base_url).rstrip("/")
    document = schemathesis.openapi.from_url(f"{address}/openapi.json")
    seen = []

    def check(case):
        began = time.monotonic()
        answer = case.call(timeout=30)
        seen.append(answer.status_code)
        assert answer.status_code < 500, (case.body, answer.text)
        assert time.monotonic() - began < 15, case.body
        # The router's own refusals (a key with a slash is no job) are no part of the description.
        if answer.status_code not in (404, 405):
            case.validate_response(answer, checks=[status_code_conformance, response_schema_conformance])

    for found in document.get_all_operations():
        operation = found.ok()
        modes = ["POSITIVE", "NEGATIVE"] if operation.method.upper() == "POST" else ["POSITIVE"]
        for mode in modes:
            strategy = operation.as_strategy(generation_mode=schemathesis.GenerationMode[mode])
            try:
                quiet(examples)(given(strategy)(check))()
            except Unsatisfiable:  # of FastAPI 0.110's description schemathesis can think of nothing wrong
                if mode == "POSITIVE":
                    raise

    @quiet(4 * examples)
    @given(valid_bodies())
    def ends(question):
        path, body = question
        began = time.monotonic()
        answer = server.post(f"/api/{path}", json=body)
        seen.append(answer.status_code)
        assert answer.status_code in (200, 422), (path, body, answer.text)
        assert time.monotonic() - began < 90, (path, body)  # it ends, on a busy machine too

    ends()
    return seen


def test_a_short_fuzz_finds_no_server_error(server):
    seen = fuzz(server, 6)
    assert {200, 422} <= set(seen)


@pytest.mark.slow
def test_two_thousand_fuzzed_requests_find_no_server_error(server):
    seen = fuzz(server, 140)
    assert len(seen) >= 2000
    print({status: seen.count(status) for status in sorted(set(seen))})


@pytest.mark.slow
def test_two_hundred_at_once_are_answered_or_told_to_wait_and_memory_is_flat():
    with explorer() as (address, process):
        statuses, memory = asyncio.run(load(address, process.pid, clients=200, seconds=20))
    print(dict(statuses), [round(value) for value in memory])
    assert set(statuses) <= {200, 429}
    assert statuses[200] > 50
    half = len(memory) // 2
    # Growth without bound would show as a slope; the allocator's own steps are a few per cent.
    assert max(memory[half:]) < 1.05 * max(memory[2:half])
