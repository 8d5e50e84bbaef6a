"""A ladder as a file, and the recipe of docs/lengths.md that trains by it."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest

from conftest import ROOT
from seqlaw import Setting, ladder
from seqlaw.cli import main
from seqlaw.model.checks import InputError
from seqlaw.model.schedule import BlockDecay

PAGE = ROOT / "docs" / "lengths.md"
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


def found(**more):
    setting = Setting(
        teacher="regime2", M=24, N=1, P=2, d=96, schedule=BlockDecay(gamma=0.1, L=30_000), eval_length=256
    )
    return ladder(setting, 2**18, candidates=[2, 16, 256], sketches=4, **more)


@pytest.fixture(scope="module")
def answer():
    return found()


def test_phases_are_those_of_the_ladder(answer, tmp_path):
    phases = answer.schedule()
    assert answer.helps
    assert [one["length"] for one in phases] == list(answer.ladder.lengths.lengths)
    assert [one["steps"] for one in phases] == list(answer.steps(answer.steps_taken))
    shares = answer.ladder.lengths.shares  # the full batch: each phase has its share of the tokens as its own
    for one, share in zip(phases, shares, strict=True):
        assert one["batch"] * one["length"] == pytest.approx(share * 2**18, abs=one["length"])
    answer.export(tmp_path / "phases.toml")
    answer.export(tmp_path / "phases.json")
    assert tomllib.loads((tmp_path / "phases.toml").read_text())["phases"] == phases
    assert json.loads((tmp_path / "phases.json").read_text())["phases"] == phases


def test_where_no_ladder_helps_there_is_one_phase(answer):
    import dataclasses

    alike = dataclasses.replace(answer.ladder, against=1.0)
    (one,) = dataclasses.replace(answer, ladder=alike).schedule()
    assert one["length"] == answer.single.lengths
    assert one["steps"] == answer.steps_taken


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--export", "phases.yaml"], "--export must end in .toml or .json, got phases.yaml"),
        (["--export", "no/phases.toml"], "--export must lie in an existing folder, got no/phases.toml"),
        (["--export", "phases.toml", "--shares", "0.5"], "--export goes without --shares"),
    ],
)
def test_what_cannot_be_written_is_one_line(words, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["ladder", *words])
    out, err = capsys.readouterr()
    assert (stop.value.code, out, err.count("\n")) == (2, "", 1)
    assert says in err


def test_one_pass_has_the_tokens_of_the_batch_in_every_step(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = "--tokens 65536 --batch 2 --candidates 2,64 --eval-length 64 -M 8 -d 32 --sketches 3"
    with pytest.raises(SystemExit):
        main(["ladder", *words.split(), "--export", "phases.json"])
    assert "phases: phases.json" in capsys.readouterr().out
    phases = json.loads(Path("phases.json").read_text())["phases"]
    assert all(one["batch"] * one["length"] == 128 for one in phases)
    assert sum(one["steps"] for one in phases) == 65536 // 128


def test_paths_are_checked_in_python(answer):
    with pytest.raises(InputError, match="export must end in"):
        answer.export("phases.txt")


@needs_torch
def test_the_recipe_of_the_page_trains_by_the_phases(tmp_path, monkeypatch):
    """The block of docs/lengths.md, run as it stands; then its batches, one by one."""
    import torch

    monkeypatch.chdir(tmp_path)
    phases = [{"length": 4, "batch": 8, "steps": 5}, {"length": 16, "batch": 2, "steps": 3}]
    tables = ["\n".join(["[[phases]]", *(f"{k} = {v}" for k, v in one.items())]) for one in phases]
    Path("phases.toml").write_text("\n".join(tables))
    (block,) = (one for one in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S) if "torch" in one)
    made = {}
    exec(block, made)
    assert made["losses"][-1] < made["losses"][0]
    stream = torch.arange(10_000)
    shapes, seen = [], []
    for x, y in made["batches"](stream, phases):
        shapes.append(tuple(x.shape))
        seen += x.flatten().tolist()
        assert torch.equal(y, x + 1)
    assert shapes == [(8, 4)] * 5 + [(2, 16)] * 3
    assert sorted(seen) == list(range(8 * 4 * 5 + 2 * 16 * 3))  # one pass: each token once
