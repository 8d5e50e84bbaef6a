"""Training by mini-batches with torch, K students side by side, each on data of its own.

The data are drawn some steps at a time, so memory does not grow with the steps; with epochs all sequences
are held. Students are compared with S A x_p, the best prediction there is, so the noise of the targets costs
the measurement nothing; and with B* u_p, whose excess is known, so only what differs from it is measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqlaw.methods.one_pass.descent import lengths_in_step
from seqlaw.methods.trained.networks import JOINED, predict, shapes, start, unpacked
from seqlaw.model.checks import Array
from seqlaw.model.device import Device
from seqlaw.model.lengths import Position, Test, parts
from seqlaw.model.network import Network
from seqlaw.model.optimizer import Adam, Muon, Optimizer
from seqlaw.model.randomness import generator, named
from seqlaw.model.setting import Setting
from seqlaw.model.sketch import Problem

_BLOCK, _STRETCH = {"cpu": 2**20, "cuda": 2**27}, {"cpu": 2**18, "cuda": 2**21}
"""Numbers of the latent states of one student: of the steps that are drawn together, and held at a time."""
_TEST_TOKENS, _FEWEST_SEQUENCES = {"cpu": 2**16, "cuda": 2**18}, 2**10
"""Tokens of a test, and the fewest sequences of it."""
_TEST_BLOCK = 2**15  # tokens that are predicted at a time
Key = tuple[int, int, int]
"""Seed, sketch and repetition."""
Tell = Callable[[int], None]
"""Is told the tokens of each step."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Student:
    """One of those trained side by side."""

    key: Key
    S: Array
    """Its sketch, M × d."""
    scale: float
    """The root mean square of what it sees, which is divided out."""
    step: float
    """Peak step."""


def train(device: Device, setting: Setting, students: Sequence[Student], tell: Tell) -> Any:
    """The parameters after training, K × n; those of a student that diverged are no numbers."""
    torch, network, sizes = device.torch, setting.network, shapes(setting.network, setting.M)
    several, own_data = _distinct(device, students, 3)
    streams = [generator(one.key[0], "trained", *one.key[1:], "start") for one in several]
    begun = np.stack([start(network, setting.M, stream) for stream in streams])
    flat = _tensor(device, begun)[own_data]
    steps = _tensor(device, np.array([[one.step] for one in students]))
    shape, state, lost = setting.schedule, None, torch.zeros_like(steps, dtype=torch.bool)
    for t, seen in enumerate(_steps(device, setting, several), 1):
        tokens = sum(U.shape[1] * (U.shape[2] - 1) for U in seen)
        slope = _slope(
            torch, network, flat, [U if len(several) == len(students) else U[own_data] for U in seen]
        )
        with torch.no_grad():
            way, state = _direction(torch, setting.optimizer, slope, state, t, sizes)
            weight = float(shape.at(np.array([t]))[0]) / shape.gamma
            moved = flat - weight * steps * way
            # A student that leaves all bounds is stopped.
            lost = lost | ~torch.isfinite(moved.square().sum(1, keepdim=True))
            flat = torch.where(lost, 0.0, moved)
        tell(tokens * len(students))
    return torch.where(lost, math.nan, flat)


def _slope(torch: Any, network: Network | None, flat: Any, seen: Sequence[Any]) -> Any:
    """The slope of each student's loss per token, K × n.

    Students of one product reach each other where one of them overflows (0 · inf): then each goes alone.
    """
    flat = flat.requires_grad_()
    own, loss = unpacked(flat, shapes(network, seen[0].shape[-1])), 0.0
    for U in seen:
        missed = predict(torch, network, own, U[:, :, :-1]) - U[:, :, 1:]
        loss = loss + missed.square().sum()
    [slope] = torch.autograd.grad(loss / (2 * sum(U[0, :, 1:, 0].numel() for U in seen)), flat)
    if len(flat) == 1 or network is None or network.name not in JOINED or torch.isfinite(slope).all():
        return slope
    alone = [[U[k : k + 1] for U in seen] for k in range(len(flat))]
    return torch.cat([_slope(torch, network, flat.detach()[k : k + 1], one) for k, one in enumerate(alone)])


def _direction(torch: Any, optimizer: Optimizer | None, slope: Any, state: Any, t: int, sizes: Any) -> Any:
    """D_t and what the optimizer remembers; Muon takes matrices, and Adam with the same step the rest."""
    if optimizer is None:
        return slope, None
    if not isinstance(optimizer, Muon):
        return optimizer.direction(slope, optimizer.start(slope) if state is None else state, t)
    slopes, known, ways = unpacked(slope, sizes), {} if state is None else state, []
    for name, one in slopes.items():
        rule = optimizer if min(one.shape[1:]) > 1 and one.ndim == 3 else _BESIDE_MUON
        way, known[name] = rule.direction(one, known.get(name) or rule.start(one), t)
        ways.append(way.reshape(len(one), -1))
    return torch.cat(ways, 1), known


_BESIDE_MUON = Adam()


def _steps(device: Device, setting: Setting, students: Sequence[Student]) -> Iterator[list[Any]]:
    """What is seen in each step: for each length of it K × b × (P+1) × M, scaled."""
    streams = [_stream(device, one.key, "data") for one in students]
    maps = [_maps(device, setting, students)[0]]

    def drawn(rows: int, P: int) -> Any:
        return _states(device, setting, streams, maps, rows, P)[0]

    if setting.epochs > 1:
        b, epoch = setting.batch or 1, setting.N // (setting.batch or 1)
        data = drawn(setting.N, setting.one_length)
        each = device.torch.arange(len(students), device=device.where)[:, None]
        for turn in range(setting.epochs):
            orders = np.stack(
                [
                    generator(seed, "trained", *names, "order", turn).permutation(setting.N)
                    for seed, *names in (one.key for one in students)
                ]
            )
            at = device.torch.tensor(orders, device=device.where)
            for k in range(min(epoch, setting.schedule.L - turn * epoch)):
                yield [data[each, at[:, k * b : k * b + b]]]
        return
    for stage in setting.stages:
        lengths = lengths_in_step(stage)
        a_step = sum(b * (P + 1) for P, b in lengths) * setting.modes.d
        together = max(1, _BLOCK[device.where.type] // a_step)
        for first in range(0, stage.steps, together):
            count = min(together, stage.steps - first)
            block = [
                drawn(count * b, P).reshape(len(students), count, b, P + 1, setting.M) for P, b in lengths
            ]
            for k in range(count):
                yield [U[:, k] for U in block]


def _states(
    device: Device, setting: Setting, streams: Sequence[Any], maps: Sequence[Any], rows: int, P: int
) -> list[Any]:
    """Fresh sequences under each of the maps (K × d × M): K × rows × (P+1) × M each."""
    modes, K, where = setting.modes, len(streams), device.where
    a, scale, first = (_tensor(device, x) for x in (modes.a, modes.sigma_xi**0.5, modes.sigma_0**0.5))
    out = [device.torch.empty(K, rows, P + 1, setting.M, device=where) for _ in maps]
    most, p, last = max(1, _STRETCH[where.type] // (rows * modes.d)), 0, None
    while p <= P:
        count = min(most, P + 1 - p)
        X = device.torch.empty(K, count, rows, modes.d, device=where)
        for one, stream in zip(X, streams, strict=True):
            one.normal_(generator=stream)
        for i in range(count):
            if last is None:
                X[:, i] *= first
            else:
                X[:, i].mul_(scale).addcmul_(a, last)
            last = X[:, i]
        for found, map_ in zip(out, maps, strict=True):
            product = X.reshape(K, count * rows, modes.d) @ map_
            found[:, :, p : p + count] = product.reshape(K, count, rows, -1).transpose(1, 2)
        p += count
    return out


def _maps(device: Device, setting: Setting, students: Sequence[Student]) -> tuple[Any, Any]:
    """Sᵀ and (S A)ᵀ of each student over its scale, K × d × M."""
    seen = np.stack([one.S.T / one.scale for one in students])
    return _tensor(device, seen), _tensor(device, seen * setting.modes.a[:, None])


def beyond_linear(
    device: Device,
    setting: Setting,
    students: Sequence[Student],
    flat: Any,
    problems: Sequence[Problem],
) -> list[float]:
    """The excess of each student over that of the best linear one at the test of `problems`.

    ½ E (‖f(u) - S A x_p‖² - ‖B*u - S A x_p‖²) over simulated test sequences, the same for all students of a
    sketch. For linear students it is ½‖B - B*‖² in the test's G: nothing is simulated.
    """
    if setting.network is None:
        B = flat.double().cpu().numpy().reshape(-1, setting.M, setting.M)
        finite = [bool(np.isfinite(one).all()) for one in B]
        return [
            test.excess(one) if well else math.inf
            for one, well, test in zip(B, finite, problems, strict=True)
        ]
    torch, own = device.torch, unpacked(flat, shapes(setting.network, setting.M))
    best = _tensor(device, np.stack([one.B_star for one in problems]))
    squared = _tensor(device, np.array([one.scale**2 for one in students]))
    several, own_data = _distinct(device, students, 2)
    maps = _maps(device, setting, several)
    found = torch.zeros(len(students), dtype=torch.float64, device=device.where)
    with torch.no_grad():
        for number, (P, share, only_last) in enumerate(_tests(setting.test_length)):
            streams = [_stream(device, (*one.key[:2], -1), "test", number) for one in several]
            rows = max(_FEWEST_SEQUENCES, _TEST_TOKENS[device.where.type] // P)
            each, done = max(1, _TEST_BLOCK // P), 0
            while done < rows:
                count = min(each, rows - done)
                drawn = _states(device, setting, streams, maps, count, P)
                u, wanted = (x[own_data, :, :-1] for x in drawn)
                said = predict(torch, setting.network, own, u)
                linear = (u.flatten(1, 2) @ best.transpose(1, 2)).reshape(wanted.shape)
                gap = (said - wanted).square() - (linear - wanted).square()
                gap = gap[:, :, -1:] if only_last else gap
                mean = gap.sum(-1).double().mean((1, 2))
                found += share * count / rows * mean * squared / 2
                done += count
    return [value if math.isfinite(value) else math.inf for value in found.tolist()]


def _distinct(device: Device, students: Sequence[Student], parts: int) -> tuple[list[Student], Any]:
    """One student for each beginning of a key, and which of these has each student's data."""
    several = {one.key[:parts]: one for one in students}
    order = list(several)
    index = [order.index(one.key[:parts]) for one in students]
    return list(several.values()), device.torch.tensor(index, device=device.where)


def _tests(test: Test) -> list[tuple[int, float, bool]]:
    """Length, share, and whether the last position alone counts."""
    if isinstance(test, Position):
        return [(test.p + 1, 1.0, True)]
    return [(P, share, False) for P, share in parts(test)]


def _stream(device: Device, key: Key, *names: str | int) -> Any:
    """Torch's generator of a name."""
    seed, *rest = key
    found = device.torch.Generator(device=device.where)
    found.manual_seed(int.from_bytes(named(seed, "trained", *rest, *names)[:8], "little"))
    return found


def _tensor(device: Device, values: Array) -> Any:
    return device.torch.tensor(np.asarray(values), dtype=device.torch.float32, device=device.where)
