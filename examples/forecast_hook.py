"""Hidden states of a torch module, caught by a hook, and the forecast: longer or more sequences?

Needs torch beside seqlaw (`pip install torch`); the module is a small recurrent network as it comes.
    python examples/forecast_hook.py
"""

from __future__ import annotations

import torch

from seqlaw import forecast


def main() -> None:
    torch.manual_seed(0)
    network = torch.nn.ModuleDict({"embed": torch.nn.Embedding(50, 32), "cell": torch.nn.GRU(32, 24)})
    caught = []
    # The hook sees what the module returns: the states (time × batch × width) and the last one.
    handle = network["cell"].register_forward_hook(lambda module, given, out: caught.append(out[0]))
    for _ in range(20):
        letters = torch.randint(0, 50, (24, 30))
        network["cell"](network["embed"](letters))
    handle.remove()
    states = torch.cat([one.transpose(0, 1) for one in caught])  # 600 sequences of 24 states
    print(forecast(states))  # a tensor as it is, gradients and all


if __name__ == "__main__":
    main()
