"""Small networks, K students side by side: every parameter has K in front, every sequence too.

Inputs U are K × b × P × M, and so is what is predicted; at the start that is zero.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from seqlaw.model.checks import Array
from seqlaw.model.network import Network

Shapes = dict[str, tuple[int, ...]]
_SLOWEST = 0.99
"""The largest |λ| that a recurrent unit starts with."""
_PIECE, _STRETCH, _SHORT, _SEQUENCES = 2**9, 32, 8, 2**15
"""Tokens of a product, positions of a sum, of a short sequence, and sequences of an attention."""
JOINED = ("gru",)
"""Networks whose students share a product, of block-diagonal matrices."""
_ROTATION = 1e4
"""The longest wavelength of rotary positions, over 2π."""


def shapes(network: Network | None, M: int) -> Shapes:
    """Each parameter of one student; the last ones make the prediction, and start at zero."""
    if network is None:
        return {"out": (M, M)}
    (H, depth), found = network.sizes, Shapes()
    for k in range(depth):
        if network.name == "lru":
            found |= {f"decay{k}": (H,), f"turn{k}": (H,), f"in{k}": (2 * H, M)}
            found |= {f"read{k}": (M, 2 * H), f"skip{k}": (M, M)}
        elif network.name == "gru":
            found |= {f"in{k}": (3 * H, H if k else M), f"back{k}": (3 * H, H)}
            found |= {f"bias{k}": (3 * H,), f"shift{k}": (3 * H,)}
        else:
            found |= {f"norm{k}": (H,), f"mix{k}": (3 * H, H), f"join{k}": (H, H)}
            found |= {f"scale{k}": (H,), f"up{k}": (4 * H, H), f"down{k}": (H, 4 * H)}
    if network.name == "transformer":
        found |= {"embed": (H, M)}
    return found if network.name == "lru" else found | {"out": (M, H)}


def start(network: Network | None, M: int, rng: np.random.Generator) -> Array:
    """The parameters of one student before training, one after the other."""
    last = (
        {"out"}
        if network is None or network.name != "lru"
        else {f"{x}{network.sizes.depth - 1}" for x in ("read", "skip")}
    )
    drawn = []
    for name, shape in shapes(network, M).items():
        kind = name.rstrip("0123456789")
        if name in last or kind in ("bias", "shift", "skip"):
            values = np.zeros(shape)
        elif kind in ("norm", "scale"):
            values = np.ones(shape)
        elif kind == "decay":  # |λ|² even in [0, _SLOWEST²], |λ| = exp(-exp(decay))
            values = np.log(-np.log(rng.uniform(1e-6, _SLOWEST**2, shape)) / 2)
        elif kind == "turn":
            values = rng.uniform(0, math.pi, shape)
        else:
            values = rng.standard_normal(shape) / math.sqrt(shape[-1])
        drawn.append(values.ravel())
    return np.concatenate(drawn)


def unpacked(flat: Any, sizes: Shapes) -> dict[str, Any]:
    """The parameters of all students by name, from K × n."""
    parts = flat.split([math.prod(shape) for shape in sizes.values()], dim=1)
    return {name: part.reshape(-1, *shape) for part, (name, shape) in zip(parts, sizes.items(), strict=True)}


def predict(torch: Any, network: Network | None, own: dict[str, Any], U: Any) -> Any:
    """What each student says of the next state, at every position."""
    if network is None:
        return _dense(U, own["out"])
    for_each = {"lru": _lru, "gru": _gru, "transformer": _transformer}
    return for_each[network.name](torch, network, own, U)


def _dense(x: Any, W: Any) -> Any:
    """W x, K × b × P × in → K × b × P × out; in pieces, or one long sum for W's slope leaves a card idle."""
    K, b, P, _ = x.shape
    pieces = math.gcd(b * P, 2 ** max(0, (b * P // _PIECE).bit_length() - 1))
    return (x.reshape(K, pieces, b * P // pieces, -1) @ W.transpose(1, 2)[:, None]).reshape(K, b, P, -1)


def _lru(torch: Any, network: Network, own: dict[str, Any], U: Any) -> Any:
    """x_p = λ x_{p-1} + √(1-|λ|²) B u_p, out = Re(C x) + D u; all layers but the last add gelu(out)."""
    depth = network.sizes.depth
    for k in range(depth):
        size = -own[f"decay{k}"].exp()
        x = torch.complex(*_dense(U, own[f"in{k}"]).chunk(2, -1))
        x = x * (-torch.expm1(2 * size)).sqrt()[:, None, None]
        x = _decayed(torch, x, torch.complex(size, own[f"turn{k}"]))
        out = _dense(torch.cat([x.real, x.imag], -1), own[f"read{k}"]) + _dense(U, own[f"skip{k}"])
        U = out if k == depth - 1 else U + torch.nn.functional.gelu(out)
    return U


def _decayed(torch: Any, x: Any, rate: Any) -> Any:
    """Σ_q λ^(p-q) x_q up to each position p, log λ = rate: a product in each stretch, then over stretches."""
    K, b, P, H = x.shape
    if P == 1:
        return x
    size = min(P, _STRETCH)
    ahead = torch.arange(size, device=x.device)
    powers = (rate[..., None] * torch.arange(size + 1, device=x.device)).exp()
    within = torch.tril(powers[..., (ahead[:, None] - ahead).clamp(min=0)])
    padded = torch.nn.functional.pad(x, (0, 0, 0, -P % size))
    parts = padded.reshape(K, -1, size, H).permute(0, 3, 1, 2)  # K × H × stretches × size
    parts = (parts @ within.transpose(-1, -2)).permute(0, 2, 3, 1).reshape(K, b, -1, size, H)
    if P > size:
        before = _decayed(torch, parts[:, :, :-1, -1], rate * size)
        carried = before[..., None, :] * powers[..., 1:].transpose(1, 2)[:, None, None]
        parts = torch.cat([parts[:, :, :1], parts[:, :, 1:] + carried], 2)
    return parts.reshape(K, b, -1, H)[:, :, :P]


def _gru(torch: Any, network: Network, own: dict[str, Any], U: Any) -> Any:
    """All students as one GRU whose matrices are block-diagonal: a position costs one call."""
    (K, b, P, M), (H, depth) = U.shape, network.sizes
    weights = []
    for k in range(depth):
        for name in ("in", "back"):
            gates = own[f"{name}{k}"].reshape(K, 3, H, -1).unbind(1)
            weights.append(torch.cat([torch.block_diag(*gate.unbind(0)) for gate in gates]))
        for name in ("bias", "shift"):
            weights.append(own[f"{name}{k}"].reshape(K, 3, H).transpose(0, 1).reshape(-1))
    together = U.permute(1, 2, 0, 3).reshape(b, P, K * M)
    begin = torch.zeros(depth, b, K * H, dtype=U.dtype, device=U.device)
    with warnings.catch_warnings():  # the matrices are made anew in every step, so they are never one chunk
        warnings.filterwarnings("ignore", "RNN module weights")
        states, _ = torch.gru(
            together, begin, weights, True, depth, 0.0, torch.is_grad_enabled(), False, True
        )
    return _dense(states.reshape(b, P, K, H).permute(2, 0, 1, 3), own["out"])


def _transformer(torch: Any, network: Network, own: dict[str, Any], U: Any) -> Any:
    """Blocks of causal attention with rotary positions and a perceptron, each normed and added."""
    (K, b, P, _), (H, depth), heads = U.shape, network.sizes, network.heads
    half = H // heads // 2
    places = torch.arange(P, dtype=U.dtype, device=U.device)[:, None]
    angles = places * _ROTATION ** (-torch.arange(half, dtype=U.dtype, device=U.device) / half)
    cosine, sine = angles.cos(), angles.sin()

    def turned(x: Any) -> Any:
        left, right = x.chunk(2, -1)
        return torch.cat([left * cosine - right * sine, left * sine + right * cosine], -1)

    x = _dense(U, own["embed"])
    for k in range(depth):
        mixed = _dense(_normed(x, own[f"norm{k}"]), own[f"mix{k}"])
        q, key, v = mixed.reshape(K * b, P, 3, heads, H // heads).permute(2, 0, 3, 1, 4)
        seen = _attended(torch, turned(q), turned(key), v)
        x = x + _dense(seen.transpose(1, 2).reshape(K, b, P, H), own[f"join{k}"])
        hidden = _dense(_normed(x, own[f"scale{k}"]), own[f"up{k}"])
        x = x + _dense(torch.nn.functional.gelu(hidden), own[f"down{k}"])
    return _dense(x, own["out"])


def _attended(torch: Any, q: Any, key: Any, v: Any) -> Any:
    """Causal attention, so many sequences at a time as a card's kernel takes; that is slow for short ones."""
    if (P := q.shape[2]) <= _SHORT:
        far = torch.ones(P, P, dtype=torch.bool, device=q.device).triu(1)
        scores = (q[:, :, :, None] * key[:, :, None]).sum(-1) / math.sqrt(q.shape[3])
        shares = scores.masked_fill(far, -math.inf).softmax(-1)
        return (shares[..., None] * v[:, :, None]).sum(3)
    parts = zip(*(x.split(_SEQUENCES) for x in (q, key, v)), strict=True)
    attend = torch.nn.functional.scaled_dot_product_attention
    return torch.cat([attend(*part, is_causal=True) for part in parts])


def _normed(x: Any, scale: Any) -> Any:
    """x over its root mean square, times a scale of each entry."""
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * scale[:, None, None]
