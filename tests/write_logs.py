"""Writes tests/data/logs with the libraries whose logs seqlaw reads: three runs of each.

python tests/write_logs.py     (needs wandb, transformers and lightning; no account, no network)

Kept beside the tests, which do not install these libraries. Run it again when one of them changes its layout.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent / "data" / "logs"
RUNS = {"small": (1e6, [3.0, 2.6, 2.7]), "middle": (4e6, [2.8, 2.4, 2.3]), "large": (16e6, [2.7, 2.2, 2.1])}
"""Each run's parameters, and its losses at steps 100, 200 and 300."""


def config(params: float) -> dict[str, object]:
    return {"params": params, "model": {"layers": 4, "width": 64}, "length": 512}


def write_wandb() -> None:
    """What wandb holds of a run, a line each as of its API, and the table of runs as its page exports it."""
    os.environ |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_CONSOLE": "off"}
    import wandb

    rows, lines = [], []
    with tempfile.TemporaryDirectory() as place:
        for name, (params, losses) in RUNS.items():
            run = wandb.init(project="seqlaw", name=name, dir=place, config=config(params))
            history = []
            for k, loss in enumerate(losses, 1):
                logged = {"eval/loss": loss, "tokens": 1e5 * k}
                run.log(logged, step=100 * k)
                history.append(logged | {"_step": 100 * k})
            run.finish()
            summary, known = dict(run.summary), run.config.as_dict()
            lines.append(
                json.dumps(
                    {"name": name, "config": known, "summary": summary, "history": history}, default=str
                )
            )
            # The columns of "Export CSV" of the table of runs: nested keys joined by dots.
            rows.append(
                {"Name": name, "State": "finished", "Notes": "", "params": params, "model.layers": 4}
                | {"model.width": 64, "length": 512, "eval/loss": losses[-1], "tokens": 3e5}
            )
    (FOLDER / "wandb.jsonl").write_text("\n".join(lines) + "\n")
    with (FOLDER / "wandb.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(rows)


def write_transformers() -> None:
    """The state of transformers' Trainer, in checkpoints and at the end, beside the model's config."""
    from transformers import GPT2Config
    from transformers.trainer_callback import TrainerState

    for name, (params, losses) in RUNS.items():
        state = TrainerState(max_steps=300, num_train_epochs=1, train_batch_size=8)
        GPT2Config(n_layer=4, n_embd=64, n_head=4, n_positions=512).save_pretrained(FOLDER / "trainer" / name)
        for k, loss in enumerate(losses, 1):
            state.global_step, state.epoch = 100 * k, k / 3
            state.total_flos, state.num_input_tokens_seen = 6 * params * 1e5 * k, int(1e5 * k)
            state.log_history.append(
                {"loss": loss - 0.1, "learning_rate": 1e-4, "epoch": k / 3, "step": 100 * k}
            )
            state.log_history.append(
                {"eval_loss": loss, "eval_runtime": 2.0, "epoch": k / 3, "step": 100 * k}
            )
            folder = FOLDER / "trainer" / name / f"checkpoint-{100 * k}"
            folder.mkdir(parents=True, exist_ok=True)
            state.save_to_json(str(folder / "trainer_state.json"))
        shutil.rmtree(FOLDER / "trainer" / name / "checkpoint-100")
        shutil.rmtree(FOLDER / "trainer" / name / "checkpoint-200")


def write_lightning() -> None:
    """Lightning's CSVLogger."""
    from lightning.pytorch.loggers import CSVLogger

    for k, (params, losses) in enumerate(RUNS.values()):
        logger = CSVLogger(str(FOLDER), name="lightning", version=k)
        logger.log_hyperparams(config(params))
        for step, loss in enumerate(losses, 1):
            logger.log_metrics({"train_loss": loss - 0.1}, step=100 * step)
            logger.log_metrics({"val_loss": loss, "epoch": step - 1}, step=100 * step)
        logger.save()


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    write_wandb()
    write_transformers()
    write_lightning()
