"""Every option of every command changes its answer: there is a value of it that changes the JSON.

An option that never does would be read, believed and do nothing.
"""

import functools
import io
import json
import shlex
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pandas as pd
import pytest

from seqlaw import PRESETS
from seqlaw.cli import main
from seqlaw.cli.app import COMMANDS, question_of
from seqlaw.methods import trajectories

SMALL = "-M 8 -d 32"
BASE = {
    "plan": "--compute 1e5 --tokens 1e4 -d 32",
    "tradeoff": f"{SMALL} --tokens 4096 --points 3 --eval-length 8",
    "ladder": f"{SMALL} --tokens 512 --eval-length 8 --candidates 2,8",
    "risk": SMALL,
    "curve": f"{SMALL} --from 2 --to 8 --points 3",
    "spectrum": f"{SMALL} --points 4",
    "rates": "-M 512 -N 65536 -P 16",
    "measure": "states.npy --tokens 1000",
    "forecast": "states.npy --lengths 2,4",
    "law": "runs.csv --loss loss --term N --bootstraps 20",
    "fit": "runs.csv --x N --y loss",
}
"""A small question of each command that asks one."""
CHANGES = """
* alpha: --alpha 2.5
* theta: --theta 1.7
* r: --r 0.7
* rho: --rho 0.3
* c_xi: --c-xi 0.4
* c_0: --c-0 2
* teacher: --teacher regime1
* M: -M 6
* d: -d 24
* N: -N 12
* P: -P 6
* eval_length: --eval-length 32
* lengths: --lengths 4:0.5,8:0.5
* window: --lengths lengths.txt | --window 3
* schedule: --schedule block
* gamma: --gamma 0.02
* L: -L 200
* R: -R 20
* warmup: --warmup 0.5
* decay: --decay 0.7
* batch: --batch 2
* position: --position 3
* phases: --method exact | --phases 2:0.5,8:0.5
* safeguard: --schedule constant --batch 2 --gamma 99 | --no-safeguard
* epochs: --batch 2 -P 4 -L 50 --method sampled | --epochs 2
* momentum: --schedule constant | --momentum 0.5
* nesterov: --schedule constant --momentum 0.5 | --nesterov
* precondition: --precondition 0.5
* weight_decay: --weight-decay 0.1
* optimizer: -N 8 -P 4 -L 50 --method sampled --gamma 0.01 --schedule constant | --optimizer adam
* method: --method exact
* sketches: --method exact | --sketches 2
* repetitions: -N 8 -P 4 -L 50 --method sampled | --repetitions 3
* seed: --method exact | --seed 1
* along: --along M
* start: --from 3
* stop: --to 16
* points: --points 2
* tokens: --tokens 600
* compute: --compute 3e5
* sampled: -N 8 -P 4 -L 50 --sampled 2
curve P: --along N | -P 6
curve lengths: --along M | --lengths 4:0.5,8:0.5
curve along: --along M
curve position: --along M | --position 3
curve window: --along M --lengths lengths.txt | --window 3
curve phases: --along M --method exact | --phases 2:0.5,8:0.5
curve tokens: --along b --batch 2 | --tokens 65536
spectrum last: --to 20
rates d: -d 4096
tradeoff repetitions: --compute 1e9 --method sampled | --repetitions 3
tradeoff optimizer: --compute 1e9 -L 50 --method sampled --gamma 0.01 --schedule constant | --optimizer adam
tradeoff safeguard: --schedule constant --batch 1 --gamma 2 | --no-safeguard
tradeoff epochs: --batch 1 | --epochs 2
tradeoff compute: --compute 1e9
tradeoff cost: --compute 1e9 | --cost N*P*L*M**3
tradeoff L: -L 200
tradeoff R: --gamma 0.1 | -R 20
tradeoff min_P: --min-P 4
tradeoff max_P: --max-P 64
ladder warmup: -L 300 | --warmup 0.5
ladder candidates: --candidates 2,4
ladder most_phases: ! -M 8 -d 32 --tokens 512 --candidates 2,4,8 | --most-phases 3
ladder shares: --shares 0.5
ladder sketches: --sketches 2
ladder seed: --seed 1
ladder L: -L 200
ladder R: --gamma 0.1 | -R 100
ladder batch: ! -M 8 -d 32 --tokens 4096 --candidates 2,8 | --batch 2
plan one_pass: ! --tokens 1e4 | --one-pass
plan epochs: ! --tokens 1e4 | --epochs 2
plan batch: ! --tokens 1e4 --epochs 2 | --batch 3
plan flops: --flops
plan cost: --cost N*P*L*M
plan max_M: --max-M 2
plan max_N: --max-N 8
plan max_P: --max-P 2
plan max_L: --max-L 10
plan min_P: --min-P 64
plan confirm: --confirm
plan draws: ! --compute 1e6 --tokens 1e3 -d 32 --alpha 1.7:1.9 --draws 2 | --draws 3
plan seed: ! --compute 1e6 --tokens 1e3 -d 32 --alpha 1.7:1.9 --draws 2 | --seed 1
plan lengths: --lengths 4:0.5,8:0.5
measure file: ! | others.npy
measure sequence: ! table.csv | --sequence s
measure time: ! table.csv --sequence s | --time t
measure features: ! table.csv --sequence s --time t | --features x
measure leave_out: ! table.csv --sequence s --time t | --leave-out y
measure centre: --no-centre
measure seed: --seed 1
measure held_out: --held-out
measure save_teacher: --save-teacher saved.toml
measure save_law: --save-law law.toml
measure tokens: --tokens 600
measure compute: --compute 1e9
measure M: -M 2
measure L: -L 50
forecast file: ! | others.npy
forecast sequence: ! table.csv | --sequence s
forecast time: ! table.csv --sequence s | --time t
forecast features: ! table.csv --sequence s --time t | --features x
forecast leave_out: ! table.csv --sequence s --time t | --leave-out y
forecast groups: ! table.csv --sequence s --time t | --groups g
forecast window: --window 6
forecast test: --test others.npy
forecast standardise: --standardise
forecast drop_missing: ! gaps.csv --sequence s | --drop-missing
forecast tokens: --tokens 100
forecast target_loss: --target-loss 0.1
forecast lengths: --lengths 2,8
forecast eval_length: --eval-length 8
forecast student: --student pca
forecast M: --student pca | -M 2
forecast steps: -L 50
forecast gamma: --gamma 0.02
forecast seed: --seed 1
law file: ! --loss loss --term N | others.csv
law loss: --loss other
law terms: --term P
law preset: ! runs.csv --loss loss | --preset chinchilla
law tested_at: --tested-at P
law groups: --groups g
law where: --where P>2
law let: --let K=N*P | --term K
law budget: --budget 1e6 --cost N
law cost: --budget 1e6 | --cost N
law without: --term P | --without P
law form: --term P | --form power-mean
law columns: --columns
law floor: --floor 0.1
law bootstraps: --bootstraps 21
law level: --level 0.5
law seed: --seed 1
law predict: --predict ahead.csv
law to: --predict ahead.csv --to told.csv
fit file: ! --x N --y loss | others.csv
fit x: --x P
fit y: --y other
fit where: --where P>2
fit window: --window 10:50
fit offset: --offset
fit level: --level 0.5
"""
"""A command (`*`: any) and an option: what changes the answer.

What stands before `|` both questions have, with `!` in place of the small question.
"""
KNOWN = dict(line.split(": ", 1) for line in CHANGES.split("\n") if line)
APART = {
    "workers": "how fast the answer comes, not what it is",
    "device": "its random numbers are the card's, which tests have not",
    "compare": "of the picture only",
    **dict.fromkeys(("network", "hidden", "depth"), "of networks, which need torch: see test_trained.py"),
    "take": "of logs, see test_run_logs.py",
    "common": "of two tables, see test_run_length.py",
    "export": "writes a file, see test_ladder_export.py",
    "software": "rows of a sweep, see test_sweep.py",
}
"""Options that this test leaves out, and why."""
WORK = ("sweep", "export", "reproduce", "explore")
"""Commands that say what to run, with which others answer."""
FAST = ("rates", "spectrum", "fit", "risk")
ASKED = [
    pytest.param(command, field, marks=() if command in FAST else pytest.mark.slow)
    for command in COMMANDS
    if command not in WORK
    for field in question_of(command).options()
    if field not in APART
]


@functools.cache
def asked(words):
    """The JSON of a command without what was asked; of a refusal nothing."""
    out = io.StringIO()
    with pytest.raises(SystemExit) as stop, redirect_stdout(out), redirect_stderr(io.StringIO()):
        main([*shlex.split(words), "--json"])
    if stop.value.code:
        return None
    return {name: value for name, value in json.loads(out.getvalue()).items() if name != "inputs"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files that the commands read."""
    path = tmp_path_factory.mktemp("files")
    (path / "lengths.txt").write_text("4\n4\n8\n8\n2\n")
    rng = np.random.default_rng(0)
    teacher = PRESETS["regime1"].modes(12)
    for name, count in (("states", 300), ("others", 200)):
        np.save(path / f"{name}.npy", trajectories(teacher, count, 12))
    states = np.load(path / "others.npy")[:60, :, :2]
    rows = [(s, 11 - t, s // 3, *x) for s, sequence in enumerate(states) for t, x in enumerate(sequence)]
    table = pd.DataFrame(rows, columns=list("stgxy"))
    table.to_csv(path / "table.csv", index=False)
    table.assign(x=table.x.mask(table.index == 100)).to_csv(path / "gaps.csv", index=False)
    N, P = (each.ravel() for each in np.meshgrid([8.0, 16, 32, 64, 128], [2.0, 4, 8, 16]))
    runs = pd.DataFrame(
        {"N": N, "P": P, "params": N, "tokens": 100 * P, "g": np.arange(20) // 2, "other": 1 / N}
    )
    for name, scale in (("runs", 1), ("others", 2)):
        loss = 0.2 + scale / N**0.7 + 1 / P**0.4 + 0.01 * rng.normal(size=20) ** 2
        runs.assign(loss=loss).to_csv(path / f"{name}.csv", index=False)
    pd.DataFrame({"N": [300.0], "P": [8.0]}).to_csv(path / "ahead.csv", index=False)
    return path


@pytest.mark.parametrize(("command", "field"), ASKED)
def test_an_option_changes_the_answer(command, field, folder, monkeypatch):
    monkeypatch.chdir(folder)
    beside, _, change = (KNOWN.get(f"{command} {field}") or KNOWN[f"* {field}"]).rpartition("|")
    before = f"{command} {beside[1:] if beside.startswith('!') else f'{BASE[command]} {beside}'}"
    found = asked(f"{before} {change}")
    assert found is not None
    assert found != asked(before)
