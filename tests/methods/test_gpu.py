"""Arrays of torch: the same numbers as NumPy's where nothing is drawn, the same law where data are.

On a card where there is one, else on torch's own CPU, which runs the same code.
"""

import importlib.util
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import seqlaw
from rows_of import exact_rows, population_rows, sampled_rows
from seqlaw import PRESETS, BlockDecay, InputError, Setting
from seqlaw.methods import ask
from seqlaw.methods.kernel import NUMPY
from seqlaw.methods.method import Draws
from seqlaw.methods.moments import cheaper_drawing, nested_moments
from seqlaw.methods.sampled import Sampled
from seqlaw.methods.score import smaller_blocks
from seqlaw.methods.terms import TERMS
from seqlaw.methods.trajectories import walk
from seqlaw.model import device as devices
from seqlaw.model import sketch
from seqlaw.model.checks import MissingLibrary
from seqlaw.model.device import cards, device_of, in_memory
from seqlaw.model.lengths import parse
from seqlaw.model.momentum import Momentum
from seqlaw.model.sketch import gaussian_sketch
from seqlaw.sweeping.codec import draws_of
from seqlaw.sweeping.file import Sizes, Sweep, load_sweep
from seqlaw.sweeping.run import sweep
from seqlaw.sweeping.task import risk_rows

HAS_TORCH = importlib.util.find_spec("torch") is not None and importlib.util.find_spec("array_api_compat")
needs_torch = pytest.mark.skipif(
    not HAS_TORCH, reason="torch or array-api-compat is not installed (the extra gpu)"
)
REGIME2 = PRESETS["regime2"]
SCHEDULE = BlockDecay(gamma=0.1, L=3000)


def here() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "torch"


def point(**changes):
    sizes = {"M": 12, "N": 400, "P": 9, "d": 40, "schedule": SCHEDULE}
    return Setting(**({"teacher": REGIME2, **sizes} | changes))


def one_pass(**changes):
    return point(**({"N": None, "batch": 3, "schedule": SCHEDULE.with_steps(60)} | changes))


@pytest.fixture
def torch_alone(monkeypatch):
    """Everything on the device, however small, and no array that slips back to NumPy unseen."""
    import torch

    def refused(*_, **__):
        raise AssertionError("an array of torch became one of NumPy")

    monkeypatch.setattr(torch.Tensor, "__array__", refused)
    monkeypatch.setattr(sketch, "WORTH", 0)


def far(one, other, name):
    """Relative, but for the cross term, a small difference of large ones: of what is reducible."""
    size = abs(one["reducible"]) if name == "cross" else abs(one[name])
    return abs(one[name] - other[name]) / size if size else abs(other[name])


@needs_torch
@pytest.mark.parametrize(
    ("rows", "settings"),
    [
        (
            exact_rows,
            [
                point(),
                point(P=32, eval_length=5, N=50),
                point(schedule=Momentum(gamma=0.05, L=900, beta=0.8)),
                point(M=70, d=96),
                point(M=70, d=96, eval_length=30),
            ],
        ),
        (population_rows, [point(), point(eval_length=30)]),
        (exact_rows, [one_pass(), one_pass(P=1), one_pass(M=70, d=80, eval_length=30)]),
    ],
)
def test_the_same_numbers(rows, settings, torch_alone):
    host, card = (rows(settings, sketches=2, seed=3, device=name) for name in (None, here()))
    for one, other in zip(host, card, strict=True):
        compared = [
            name for name in one if name in (*TERMS, "reducible", "total") or isinstance(one[name], float)
        ]
        assert max(far(one, other, name) for name in compared) < 1e-10  # two orders of sums, cond(G) ~ 1e4


@needs_torch
def test_stretches_are_the_recursion():
    """All positions at once by doubling, against one after the other on the same normals."""
    device, modes, rows, P = device_of(here()), REGIME2.modes(6), 5, 23
    again = device.stream(1, "walk")
    found = np.concatenate(
        [s.cpu().numpy() for s in walk(device.stream(1, "walk"), modes, rows, P, NUMPY, [7, 8])]
    )
    assert found.shape == (P + 1, rows, 6)
    x = again.standard_normal((1, rows, 6)).cpu().numpy()[0] * np.sqrt(modes.sigma_0)
    np.testing.assert_allclose(found[0], x, rtol=1e-15)
    normals = [again.standard_normal((size, rows, 6)).cpu().numpy() for size in (7, 1, 15)]
    for state, z in zip(found[1:], np.concatenate(normals), strict=True):
        x = modes.a * x + np.sqrt(modes.sigma_xi) * z
        np.testing.assert_allclose(state, x, rtol=1e-12, atol=1e-14)


def same_law(one, other):
    """|z| of the difference of two samples' means and of their variances, the worst column's.

    A column that never varies, like `cross` with epochs, has no |z|: 0 if it is equal, else infinite.
    """
    worst = 0.0
    for f in (lambda x: x, lambda x: (x - x.mean(axis=0)) ** 2):
        x, y = f(np.asarray(one)), f(np.asarray(other))
        spread = np.sqrt(x.var(axis=0) / len(x) + y.var(axis=0) / len(y))
        apart = np.abs(x.mean(axis=0) - y.mean(axis=0))
        z = np.where(spread > 0, apart / np.where(spread > 0, spread, 1), np.where(apart > 0, np.inf, 0))
        worst = max(worst, float(z.max()))
    return worst


@needs_torch
@pytest.mark.parametrize("drawing", ["direct", "gram"])
def test_the_same_law_of_moments(drawing, torch_alone):
    modes, S, count = REGIME2.modes(6), gaussian_sketch(2, 6), 100
    device = device_of(here())

    def draw(where, k):
        found = nested_moments(modes, S, [(14, 3), (28, 7)], seed=5, key=(k,), drawing=drawing, device=where)
        return np.concatenate([np.concatenate([one.G.ravel(), one.C.ravel()]) for one in found.values()])

    host, card = ([draw(where, k) for k in range(count)] for where in (None, device))
    assert same_law(host, card) < 5
    assert np.array_equal(draw(device, 3), card[3])
    assert not np.array_equal(host[3], card[3])
    assert same_law(host, [1.3 * one for one in card]) > 5


@needs_torch
@pytest.mark.parametrize("epochs", [1, 2])
def test_the_same_law_of_one_pass(epochs, torch_alone):
    setting = one_pass(M=4, d=8, epochs=epochs)
    host, card = (
        [
            [row["variance"], row["cross"], row["loss"]]
            for row in Sampled().rows([setting], Draws(sketches=1, repetitions=300, device=name))
        ]
        for name in (None, here())
    )
    assert same_law(host, card) < 5


@needs_torch
def test_sampled_on_a_device_says_so(torch_alone):
    found = seqlaw.risk(point(), method="sampled", sketches=2, repetitions=2, device=here())
    assert [flag.code for flag in found.flags][-1] == "device-stream"
    assert "not the CPU's" in str(found)
    assert found.to_dict()["inputs"]["device"] == here()
    again = seqlaw.risk(point(), method="sampled", sketches=2, repetitions=2, device=here())
    assert again.total == found.total
    assert "device" not in seqlaw.risk(point(), method="exact", sketches=1, device="cpu").to_dict()["inputs"]


@needs_torch
def test_sketches_are_the_cpus_up_to_a_size(monkeypatch, torch_alone):
    device = device_of(here())
    shared = gaussian_sketch(4, 9, seed=2, index=1, device=device)
    assert np.array_equal(shared.cpu().numpy(), gaussian_sketch(4, 9, seed=2, index=1))
    monkeypatch.setattr(sketch, "LARGEST_SHARED", 10)
    monkeypatch.setattr("seqlaw.methods.drawn.LARGEST_SHARED", 10)
    own = gaussian_sketch(4, 2000, seed=2, device=device).cpu().numpy()
    assert abs(own.var() * 4 - 1) < 5 * np.sqrt(2 / own.size)
    assert not np.array_equal(own, gaussian_sketch(4, 2000, seed=2))
    risk = ask.risks([point()], method="exact", draws=Draws(sketches=1, device=here()))[0]
    assert "device-stream" in {one.code for one in risk.flags}


@needs_torch
def test_a_full_device_takes_smaller_blocks_or_one_line():
    import torch

    device, tried = device_of(here()), []

    def work(block):
        tried.append(block)
        if block > 30:
            raise torch.OutOfMemoryError("full")
        return block

    x = device.array(np.zeros(2))
    assert smaller_blocks(work, x, 100, 4) == 25
    assert tried == [100, 50, 25]
    with pytest.raises(torch.OutOfMemoryError):
        smaller_blocks(work, x, 100, 40)
    with pytest.raises(InputError, match="device has too little memory"), in_memory(device):
        work(31)


@needs_torch
def test_a_sweep_on_a_device(tmp_path):
    tables = {"method": "sampled", "sketches": 1, "sizes": {"M": 4, "N": 50, "P": [2, 4], "d": 12}}
    host, card = (load_sweep(tables | {"device": name}) for name in ("cpu", here()))
    assert [task["device"] for task in host.tasks] == [None, None]
    assert [task | {"device": None} for task in card.tasks] == host.tasks
    assert all(draws_of(task)["device"] == here() for task in card.tasks)
    assert sweep(card, tmp_path / "rows").done == 2
    assert sweep(card, tmp_path / "rows").skipped == 2
    assert sweep(host, tmp_path / "rows").done == 2  # other numbers, under another key
    assert "device-stream" in risk_rows(card.tasks[0], 0)[0]["flags"]
    assert load_sweep(tables | {"method": "equivalent", "device": "cuda"}).tasks[0]["device"] is None


@pytest.fixture
def machine_without(monkeypatch):
    """A machine with a torch that sees so many cards; None: without torch."""

    def make(count):
        found = SimpleNamespace(
            cuda=SimpleNamespace(is_available=lambda: count > 0, device_count=lambda: count),
            device=lambda *where: where,
        )
        monkeypatch.setitem(sys.modules, "torch", None if count is None else found)
        monkeypatch.setitem(sys.modules, "array_api_compat", found)

    return make


def test_without_torch_or_a_card_one_line(machine_without):
    machine_without(None)
    with pytest.raises(MissingLibrary, match=r"needs torch: pip install 'seqlaw\[gpu\]'"):
        ask.risks([point()], method="exact", draws=Draws(device="cuda"))
    machine_without(0)
    with pytest.raises(InputError, match="device needs an NVIDIA card"):
        ask.risks([point()], method="sampled", draws=Draws(device="cuda"))
    with pytest.raises(InputError, match="device must be cuda or cpu, got 'gpu'"):
        Draws(device="gpu")


def test_a_worker_a_card(machine_without, monkeypatch, tmp_path):
    machine_without(2)
    for number, card in (("", 0), ("0", 0), ("1", 1), ("2", 0), ("tcp://host:1", 0)):
        monkeypatch.setenv(devices.WORKER, number)
        assert device_of("cuda").where == ("cuda", card)
    assert cards() == 2
    tables = {"method": "exact", "device": "cuda", "sizes": {"M": 4, "N": 50, "P": 4, "d": 12}}
    with pytest.raises(InputError, match="jobs must be at most 2, got 3"):
        sweep(load_sweep(tables), tmp_path, jobs=3)


def test_the_cheaper_drawing_on_a_card():
    assert cheaper_drawing(10**6, 512, 64, True)[0] == "gram"
    assert cheaper_drawing(2048, 512, 64, True)[0] == "direct"


@pytest.mark.parametrize("several", ["4:0.5,9:0.5", "4:0.5 then 9:0.5"])
@pytest.mark.parametrize("ask_for", [point, one_pass])
def test_several_lengths_are_for_the_cpu(several, ask_for):
    setting, line = ask_for(P=parse(several)), "device must be cpu .* for mixtures and phases of lengths"
    for method in ("sampled", "exact"):
        with pytest.raises(InputError, match=line):
            seqlaw.risk(setting, method=method, device="cuda")
        with pytest.raises(InputError, match=line):
            ask.METHODS[method].rows([point(), setting], Draws(device="torch"))
        assert seqlaw.risk(setting, method=method, sketches=1, repetitions=1, device="cpu").total > 0


def test_rows_of_mixtures_are_for_the_cpu():
    for rows, ask_for in ((exact_rows, point), (sampled_rows, point), (exact_rows, one_pass)):
        with pytest.raises(InputError, match="device must be cpu"):
            rows([ask_for(P=parse("4:0.5,9:0.5"))], device="torch")


def test_a_sweep_of_mixtures_is_for_the_cpu():
    grid = {"M": [12], "N": [400], "d": [40], "P": [9, "4:0.5,9:0.5"]}
    assert Sweep(sizes=Sizes(**grid), device="cuda").tasks  # the equivalent method draws nothing
    with pytest.raises(InputError, match="device must be cpu"):
        Sweep(sizes=Sizes(**grid), method="exact", device="cuda")
