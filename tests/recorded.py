"""Some 400 questions with every option written out, and the numbers that the program answers.

    python tests/recorded.py                 # which answers differ from tests/data/recorded.json
    python tests/recorded.py --write NAME…   # record the named ones anew (a prefix is enough)

The questions do not change with the code. Where an option is renamed, RENAMED says so.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import math
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

FILE = Path(__file__).parent / "data" / "recorded.json"
RENAMED = {"--test": "--eval-length"}
"""Options by the name that the questions below know them by."""
DROPPED = {"rates": {"--eval-length", "--warmup", "--decay"}, "spectrum": {"-N", "--eval-length"}}
"""Options that a command took and that never changed its answer."""

ONE = "--alpha 1.5 --theta 2.5 --r 0.2 --rho 0.55 --c-xi 0.05 --c-0 0.01"
TWO = "--alpha 1.8 --theta 1.25 --r 0.35 --rho 0.55 --c-xi 0.03 --c-0 0.3"
TEACHERS = {
    "one": ONE,
    "two": TWO,
    "long": "--alpha 1.4 --theta 1.7 --r 0.1 --rho 0.9 --c-xi 0.2 --c-0 1",
}
SCHEDULES = {
    "wsd": "--schedule wsd --gamma 0.1 --warmup 0.1 --decay 0.2 -L 2000",
    "block": "--schedule block --gamma 0.2 -L 3000",
    "constant": "--schedule constant --gamma 0.3 -L 400",
    "cosine": "--schedule cosine --gamma 0.2 -L 900",
    "short": "--schedule wsd --gamma 5 --warmup 0.2 --decay 0.3 -L 40",
    "momentum": "--schedule constant --gamma 0.05 -L 500 --momentum 0.9",
    "nesterov": "--schedule constant --gamma 0.05 -L 300 --momentum 0.8 --nesterov",
}
WSD, BLOCK = SCHEDULES["wsd"], SCHEDULES["block"]
DRAWS = "--sketches 2 --repetitions 2 --seed 3 --jobs 1"
WAYS = {
    "full": "-N 512 -P 8",
    "few": "-N 3 -P 6",
    "single": "-N 1 -P 40",
    "mixture": "-N 96 --lengths 2:0.4,16:0.6",
    "pass": "--batch 4 -P 8",
    "phases": "-N 96 --phases 2:0.6,16:0.4",
}
Questions = Iterator[tuple[str, str]]
"""Names and command lines."""


def risks() -> Questions:
    """Every method, way of training, schedule and two widths; the teacher and the test length go round."""
    teachers, tests = itertools.cycle(TEACHERS), itertools.cycle((2, 8, 64, 8))
    methods = ("sampled", "exact", "equivalent")
    for method, way, schedule, M in itertools.product(methods, WAYS, SCHEDULES, (12, 5)):
        memory = schedule in ("momentum", "nesterov")
        if (memory and way in ("pass", "phases")) or (method, way) == ("equivalent", "phases"):
            continue
        t, test = next(teachers), next(tests)
        sizes = f"-M {M} -d 48 {WAYS[way]} --eval-length {test}"
        asked = f"risk --method {method} {TEACHERS[t]} {sizes} {SCHEDULES[schedule]} {DRAWS}"
        yield f"risk {method} {way} {schedule} {t} {M} {test}", asked
    for t, d, M in itertools.product(TEACHERS, ("inf", 4096), (16, 300)):
        sizes = f"-M {M} -d {d} -N 1e6 -P 32 --eval-length 512"
        yield f"risk large {t} {d} {M}", f"risk --method equivalent {TEACHERS[t]} {sizes} {WSD} {DRAWS}"
    tuning = ("--gamma best", "--gamma 0.4 --no-safeguard")
    for t, step, method in itertools.product(TEACHERS, tuning, ("exact", "equivalent")):
        sizes = f"-M 24 -d 96 --batch 8 -P 4 --eval-length 4 --schedule cosine {step} -L 2000"
        yield f"risk pass {method} {t} {step}", f"risk --method {method} {TEACHERS[t]} {sizes} {DRAWS}"
    for method in methods:
        sizes = "--teacher modes.npz -M 6 -N 200 -P 5 --eval-length 20"
        yield f"risk arrays {method}", f"risk --method {method} {sizes} {BLOCK} {DRAWS}"
    again = "--batch 4 -P 8 --epochs 3 -M 12 -d 48 --eval-length 8"
    yield "risk epochs", f"risk --method sampled {TWO} {again} {WSD} {DRAWS}"


def curves() -> Questions:
    ends = {"M": (4, 48), "N": (2, 4096), "P": (1, 256), "R": (2, 2000)}
    for axis, method, t in itertools.product(ends, ("exact", "equivalent"), TEACHERS):
        span = "--along {} --from {} --to {} --points 5".format(axis, *ends[axis])
        sizes = "-M 16 -N 128 -P 8 -d 64 --eval-length 16"
        yield (
            f"curve {axis} {method} {t}",
            f"curve --method {method} {span} {TEACHERS[t]} {sizes} {WSD} {DRAWS}",
        )
    span = "--along b --from 1 --to 32 --points 4 --tokens 65536"
    sizes = "-M 16 --batch 1 -P 4 -d 64 --eval-length 4 --schedule block --gamma best"
    for t in ("one", "two"):
        yield f"curve b {t}", f"curve --method equivalent {span} {TEACHERS[t]} {sizes} {DRAWS}"
    span = "--along N --from 4 --to 64 --points 3 --sampled 2"
    sizes = "-M 8 -P 4 -d 32 --eval-length 4"
    yield "curve sampled", f"curve --method exact {span} {TWO} {sizes} {BLOCK} {DRAWS}"


def theory() -> Questions:
    for t, P in itertools.product(TEACHERS, (2, 64)):
        sizes = f"-M 64 -N 4096 -P {P} -d 512 --eval-length {P}"
        yield f"spectrum {t} {P}", f"spectrum {TEACHERS[t]} {sizes} --points 8 --to 512 {WSD}"
        for schedule in ("wsd", "block"):
            yield f"rates {t} {P} {schedule}", f"rates {TEACHERS[t]} {sizes} {SCHEDULES[schedule]}"


def tradeoffs() -> Questions:
    common = "-M 32 -d 256 --test 8 --test 512 --points 5 --min-P 2 --max-P 512"
    for t, schedule, tokens in itertools.product(TEACHERS, ("wsd", "block"), ("1e4", "1e8")):
        asked = f"tradeoff {TEACHERS[t]} --tokens {tokens} {common} {SCHEDULES[schedule]}"
        yield f"tradeoff {t} {schedule} {tokens}", asked
    for t, teacher in TEACHERS.items():
        steps = "--schedule cosine --batch 4 --gamma best"
        yield f"tradeoff pass {t}", f"tradeoff {teacher} --tokens 1e6 {common} {steps}"
        mixed = "--lengths 4:0.5,64:0.5 --tokens 1e5"
        yield f"tradeoff mixture {t}", f"tradeoff {teacher} {mixed} {common} {WSD}"
        limits = "--compute 1e10 --cost 'N*P*L*M**2 + 1e3*L' --tokens 1e6"
        yield f"tradeoff cost {t}", f"tradeoff {teacher} {limits} {common} {SCHEDULES['constant']}"


def plans() -> Questions:
    kind = "--schedule wsd --gamma 0.1 --warmup 0.1 --decay 0.2 --seed 0 --no-confirm"
    budgets = (("1e8", "1e4"), ("1e12", "1e6"), ("1e15", "1e9"), ("1e3", "30"))
    for t, (compute, tokens), test in itertools.product(TEACHERS, budgets, (4, 1024)):
        limits = f"--compute {compute} --tokens {tokens} -d inf --eval-length {test}"
        yield f"plan {t} {compute} {tokens} {test}", f"plan {TEACHERS[t]} {limits} {kind}"
    base = "--compute 1e11 --tokens 1e6 -d 512 --eval-length 64"
    for name, more in {
        "limits": "--max-M 20 --max-N 3000 --max-P 100 --max-L 4000 --min-P 8",
        "cost": "--cost 'N*P*L*M**2*(1 + P/1024) + 1e4*L'",
        "mixture": "--lengths 4:0.5,64:0.5",
        "flops": "--flops",
    }.items():
        yield f"plan {name}", f"plan {TWO} {base} {kind} {more}"
    rough = "--alpha 1.7:1.9 --theta 1.2:1.4 --r 0.35 --rho 0.55 --c-xi 0.03 --c-0 0.3 --draws 4"
    yield "plan uncertain", f"plan {rough} {base} {kind}"
    small = "--compute 1e8 --tokens 1e5 -d 256 --eval-length 16 --one-pass --schedule cosine --seed 0"
    yield "plan one-pass", f"plan {TWO} {small}"


def ladders() -> Questions:
    sizes = "--tokens 1e6 -M 16 -d 64 --eval-length 64 --sketches 2 --seed 1"
    for t in ("one", "two"):
        yield f"ladder {t}", f"ladder {TEACHERS[t]} {sizes} --candidates 2,8,64 --most-phases 2 {WSD}"
    yield "ladder shares", f"ladder {TWO} {sizes} --candidates 2,64 --shares 0.2,0.5 {WSD}"


def data() -> Questions:
    """On the files of `make_files`."""
    for file, P in itertools.product(("noisy.npy", "smooth.npy"), (4, 16)):
        common = f"--eval-length {P} --seed 2"
        yield f"forecast {file} {P}", f"forecast {file} --tokens 400 --student all --steps 300 {common}"
        more = "--tokens 1e4 --student pca --width 4 --steps 200"
        yield f"forecast pca {file} {P}", f"forecast {file} {more} {common}"
    grouped = "--window 8 --eval-length 7 --student all --steps 200 --seed 1 --tokens 2000"
    yield "forecast windows", f"forecast recording.npy {grouped}"
    for file in ("noisy.npy", "smooth.npy"):
        asked = "--centre --tokens 1e5 --eval-length 64 --seed 1 --width 3 --steps 1000"
        yield f"measure {file}", f"measure {file} {asked}"
    fit = "runs.csv --loss loss --level 0.9 --bootstraps 60 --seed 4"
    for name, more in {
        "two": "--term params --term tokens",
        "three": "--term params --term tokens --term length --without length --tested-at tested",
        "allocate": "--term params --term tokens --budget 1e21 --cost 6*params*tokens",
        "predict": "--term params --term tokens --predict ahead.csv",
        "where": "--term params --where tokens>2e9",
    }.items():
        yield f"law {name}", f"law {fit} {more}"
    for more in ("", "--offset"):
        window = "--x tokens --y loss --level 0.95 --window 1e9:1e11"
        yield f"fit {more}", f"fit runs.csv {window} {more}"


def in_python() -> Questions:
    """Through the public API: what the command line has no word for, objects, and lists of settings."""
    t = "Teacher(alpha=1.8, theta=1.25, r=0.35, rho=0.55, c_xi=0.03, c_0=0.3)"
    arrays = "Modes(a=[0.7, -0.4, 0.3, 0.0], sigma_xi=[0.2, 0.1, 0.05, 0.1], sigma_0=[1, 0.5, 0, 0.1])"
    wsd = "WSD(gamma=0.1, L=2000, warmup=0.1, decay=0.2)"
    steps = "Explicit(sizes=0.3 * np.linspace(1, 0.1, 60))"
    sizes = "M=12, d=48, N=64, P=8, eval_length=16"
    base = f"Setting(teacher={t}, {sizes}, schedule={wsd})"
    odd = {
        "steps": f"Setting(teacher={t}, {sizes}, schedule={steps})",
        "modes": f"Setting(teacher={arrays}, M=3, N=64, P=8, eval_length=16, schedule={wsd})",
        "whole": f"Setting(teacher={arrays}, M=4, N=64, P=8, eval_length=8, schedule={wsd})",
        "lengths": f"Setting(teacher={t}, M=12, d=48, N=40, P=Lengths((2, 16), (0.3, 0.7)), eval_length=8, "
        f"schedule={wsd})",
        "phases": f"Setting(teacher={t}, M=12, d=48, N=40, P=Lengths((2, 16), (0.3, 0.7), phases=True), "
        f"eval_length=8, schedule={wsd})",
        "phases in one pass": f"Setting(teacher={t}, M=12, d=48, batch=2, "
        f"P=Lengths((2, 16), (0.3, 0.7), phases=True), eval_length=8, schedule={steps})",
        "test length not chosen": f"Setting(teacher={t}, M=12, d=48, N=64, P=8, schedule={wsd})",
    }
    draws = "sketches=2, repetitions=2, seed=3, workers=1"
    for name, setting in odd.items():
        for method in ("sampled", "exact", "equivalent"):
            if not (method == "equivalent" and name.startswith("phases")):
                yield f"python risk {method} {name}", f"risk({setting}, method={method!r}, {draws})"
    many = f"[{odd['steps']}, {odd['modes']}, {base}, {odd['lengths']}]"
    for method in ("sampled", "exact", "equivalent"):
        yield f"python risks {method}", f"risk({many}, method={method!r}, {draws})"
    yield "python curve", f"curve({base}, 'N', [1, 7, 50, 4000], method='equivalent', {draws})"
    tuned = f"Setting(teacher={t}, M=12, d=48, batch=2, P=8, eval_length=8, schedule={wsd})"
    along = f"curve({tuned}, 'b', [1, 4], method='equivalent', {draws}, tokens=32768, tune=True)"
    yield "python curve, step tuned", along
    yield "python rates", f"rates({base})"
    yield "python spectrum", f"spectrum({base}, points=5, last=48)"
    told = "tokens=1e5, lengths=[2, 16, 128], eval_lengths=[4, 256], tune=False"
    yield "python tradeoff", f"tradeoff({base}, {told})"
    yield "python tradeoff modes", f"tradeoff({odd['modes']}, {told})"
    budget = "Budget(compute=1e10, tokens=1e5, cost='N*P*L*M**2', max_P=256)"
    planned = f"schedule={wsd}, d=256, eval_length=32, confirm=False, draws=4, seed=0, workers=1, tune=False"
    yield "python plan", f"plan({t}, {budget}, {planned})"
    rough = f"Uncertain(teacher={t}, intervals={{'alpha': (1.7, 1.9), 'c_0': (0.2, 0.5)}})"
    yield "python plan uncertain", f"plan({rough}, {budget}, {planned})"
    ladder = "tokens=1e6, candidates=[2, 64], most_phases=2, sketches=2, seed=1, tune=False"
    yield "python ladder", f"ladder({base}, {ladder})"
    asked = "tokens=2000, lengths=[4, 16], eval_length=8, student='pca', M=4, steps=200, seed=1"
    yield "python forecast", f"forecast(np.load('noisy.npy'), {asked})"
    yield "python forecast list", f"forecast(list(np.load('smooth.npy')), {asked})"
    yield "python measure", "measure(np.load('noisy.npy'), centre=True, seed=1)"
    fit = "fit_law('runs.csv', loss='loss', terms=['params', 'tokens'], bootstraps=40, level=0.9, seed=4"
    yield "python law", f"{fit}, form='sum')"
    yield "python law power mean", f"{fit}, form='power-mean')"
    yield "python law floor", f"{fit}, form='sum', floor=1.8)"


def questions() -> dict[str, str]:
    """Name → command line, or an expression of Python where the name says so."""
    parts = (risks(), curves(), theory(), tradeoffs(), plans(), ladders(), data(), in_python())
    return dict(itertools.chain(*parts))


def make_files(folder: Path) -> None:
    """The data of the questions, made with NumPy alone."""
    rng = np.random.default_rng(11)
    j = np.arange(1, 25)
    arrays = {"a": 0.6 * j**-0.3, "sigma_xi": 0.2 * j**-1.5, "sigma_0": 0.5 * j**-1.2}
    np.savez(folder / "modes.npz", **arrays)
    a, scale = 0.8 * np.arange(1, 9) ** -0.3, np.arange(1, 9) ** -0.7
    noisy = np.empty((160, 20, 8))
    noisy[:, 0] = rng.standard_normal((160, 8)) * scale
    for p in range(1, 20):
        noisy[:, p] = a * noisy[:, p - 1] + 0.5 * scale * rng.standard_normal((160, 8))
    np.save(folder / "noisy.npy", noisy)
    phase, rate = rng.uniform(0, 6.28, (120, 1, 8)), np.linspace(0.1, 0.4, 8)
    waves = np.sin(phase + rate * np.arange(20)[None, :, None]) * scale
    np.save(folder / "smooth.npy", waves + 0.01 * rng.standard_normal(waves.shape))
    walk = np.zeros((600, 5))
    for p in range(1, 600):
        walk[p] = 0.7 * walk[p - 1] + rng.standard_normal(5)
    np.save(folder / "recording.npy", walk)
    n = 60
    params, tokens = np.exp(rng.uniform(17, 21, n)), np.exp(rng.uniform(20.7, 25.3, n))
    length = rng.choice([512, 2048, 8192], n)
    loss = (1.8 + 300 * params**-0.33 + 900 * tokens**-0.34 + 3 * length**-0.5) * np.exp(
        0.004 * rng.standard_normal(n)
    )
    rows = zip(params, tokens, length, loss, strict=True)
    table = "".join(
        f"{x!r},{t!r},{P},{y!r},2048\n" for x, t, P, y in (tuple(map(float, row)) for row in rows)
    )
    (folder / "runs.csv").write_text("params,tokens,length,loss,tested\n" + table)
    (folder / "ahead.csv").write_text("params,tokens,length\n7e9,1.4e11,2048\n7e10,1.4e12,2048\n")


def answered(name: str, command: str) -> dict[str, object]:
    """The numbers of an answer by their path, and the codes of its flags; of a refusal that there is one."""
    if name.startswith("python "):
        return _evaluated(command)
    return _commanded(command)


def _evaluated(expression: str) -> dict[str, object]:
    import seqlaw

    for old, new in RENAMED.items():
        expression = expression.replace(old, new)
    answer = eval(expression, {name: getattr(seqlaw, name) for name in seqlaw.__all__} | {"np": np})
    bodies = [one.to_dict() for one in (answer if isinstance(answer, list) else [answer])]
    found = [_numbers(body, planned=expression.startswith("plan(")) for body in bodies]
    return {
        "codes": sorted({code for one in found for code in one["codes"]}),
        "numbers": {f"[{k}].{path}": x for k, one in enumerate(found) for path, x in one["numbers"].items()},
    }


def _commanded(command: str) -> dict[str, object]:
    from seqlaw.cli import main

    out, err = io.StringIO(), io.StringIO()
    asked = [RENAMED.get(word, word) for word in shlex.split(command)]
    for option in DROPPED.get(asked[0], ()):
        if option in asked:
            place = asked.index(option)
            del asked[place : place + 2]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([*asked, "--json"])
        except SystemExit as stop:
            code = stop.code
    if code:
        return {"refused": int(code)}
    return _numbers(json.loads(out.getvalue()), planned=asked[0] == "plan")


def _numbers(body: dict, *, planned: bool) -> dict[str, object]:
    codes = sorted({one["code"] for one in body.pop("flag_records")})
    for word in ("version", "inputs", "flags", "command", "seconds"):
        body.pop(word, None)
    if planned:  # another allocation may be as good
        body = {"reducible": _planned(body)}
    return {"codes": codes, "numbers": dict(leaves(body))}


def _planned(body: dict) -> float:
    """The risk of a plan, whichever kind it is."""
    found = body.get("finite", body)
    return found.get("reducible", found.get("terms", {}).get("reducible"))


def leaves(value: object, path: str = "") -> Iterator[tuple[str, float]]:
    """The numbers in a document."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for k, one in enumerate(value):
            yield from leaves(one, f"{path}[{k}]")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


LOOSE = {"law": 1e-5, "measure": 1e-6, "fit": 1e-7, "forecast": 1e-7}
"""Where an optimizer or a resampled fit ends: its own tolerance, not the arithmetic's."""


def differences(name: str, was: dict, now: dict) -> list[str]:
    """What of an answer is another: numbers by more than 1e-9 of themselves or of the risk beside them."""
    if "refused" in was or "refused" in now or was["codes"] != now["codes"]:
        return [] if was == now else [f"{name}: was {_brief(was)}, is {_brief(now)}"]
    if name.startswith(("plan", "python plan")):
        (old,), (new,) = was["numbers"].values(), now["numbers"].values()
        return [] if new <= 1.001 * old else [f"{name}: the plan's risk was {old:.6g}, is {new:.6g}"]
    old, new, found = was["numbers"], now["numbers"], []
    if old.keys() != new.keys():
        found.append(f"{name}: fields {sorted(old.keys() ^ new.keys())[:6]}")
    share = LOOSE.get(name.removeprefix("python ").split()[0], 1e-9)
    flat = [path.removesuffix("slope") for path in old if path.endswith(".slope") and abs(old[path]) < 1e-12]
    for path in old.keys() & new.keys():
        if path.startswith(tuple(flat)):  # through a constant: of its slope and error no digit means anything
            continue
        # The error of a slope through points on a line is rounding.
        least = 1e-12 if "slopes." in path else share * _risk_of(old, path)
        # Quantiles of Student's t differ between versions of SciPy by some 1e-9.
        near = max(share, 1e-8) if path.startswith("intervals.") else share
        if not math.isclose(old[path], new[path], rel_tol=near, abs_tol=least):
            found.append(f"{name}: {path} was {old[path]!r}, is {new[path]!r}")
    return found


def _risk_of(numbers: dict[str, float], path: str) -> float:
    """The risk that a number is part of: a small term is the difference of larger ones, and good to that."""
    while path:
        path = path.rpartition(".")[0]
        if (risk := numbers.get(f"{path}.reducible" if path else "reducible")) is not None:
            return abs(risk)
    return 0.0


def _brief(answer: dict) -> str:
    return str({key: answer[key] for key in ("refused", "codes") if key in answer})


@contextlib.contextmanager
def in_folder() -> Iterator[None]:
    """In a folder of its own that has the data."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        make_files(Path(folder))
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)


def main(arguments: list[str]) -> int:
    wanted = [name for name in arguments if name != "--write"]
    asked = {k: v for k, v in questions().items() if not wanted or any(k.startswith(w) for w in wanted)}
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    with in_folder():
        found = {name: answered(name, command) for name, command in asked.items()}
    if "--write" in arguments:
        kept = {name: (known | found)[name] for name in questions() if name in known | found}
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in kept.items())
        FILE.write_text("{\n" + lines + "\n}\n")
        return 0
    apart = [line for name, one in found.items() for line in differences(name, known[name], one)]
    print(*apart, f"{len(found)} answers, {len(apart)} differences", sep="\n")
    return bool(apart)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
    sys.exit(main(sys.argv[1:]))
