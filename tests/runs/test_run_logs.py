"""Runs read from where people log them: one row a run, and one line for what does not fit."""

import json
import math

import numpy as np
import pytest

from conftest import DATA
from seqlaw import fit_law
from seqlaw.cli import main
from seqlaw.model.checks import InputError
from seqlaw.runs.logs import flat, is_log, read_any, read_logs, require_table

LOSSES = [3.0, 2.5, 2.6]
LOGS = DATA / "logs"
"""Three runs as wandb, transformers and lightning wrote them (tests/write_logs.py)."""
WRITTEN = {"small": (1e6, 2.7, 2.6), "middle": (4e6, 2.3, 2.3), "large": (16e6, 2.1, 2.1)}
"""Of each the parameters, the last loss and the best."""


def wandb_line(name, losses=LOSSES, **config):
    """A line as `json.dumps` writes what W&B's API gives for a run."""
    rows = [{"_step": k, "eval/loss": loss, "tokens": 1000.0 * (k + 1)} for k, loss in enumerate(losses)]
    return json.dumps(
        {
            "name": name,
            "state": "finished",
            "config": {"_wandb": {"value": {"cli": 1}}, **config},
            "summary": {"eval/loss": losses[-1], "_runtime": 12, "gradients": {"_type": "histogram"}},
            "history": rows,
        }
    )


def trainer_state(folder, losses=LOSSES, step=300, **more):
    """The layout that transformers' TrainerState.save_to_json writes."""
    folder.mkdir(parents=True)
    history = []
    for k, loss in enumerate(losses, 1):
        history.append(
            {"epoch": k / 3, "grad_norm": 1.0, "learning_rate": 1e-4, "loss": loss, "step": 100 * k}
        )
        history.append({"epoch": k / 3, "eval_loss": loss + 0.1, "eval_runtime": 2.0, "step": 100 * k})
    state = {
        "best_metric": None,
        "best_model_checkpoint": None,
        "epoch": 1.0,
        "global_step": step,
        "is_hyper_param_search": False,
        "log_history": history,
        "max_steps": 300,
        "num_input_tokens_seen": 0,
        "num_train_epochs": 1,
        "total_flos": 1.5e15,
        "train_batch_size": 8,
        "trial_name": None,
    }
    (folder / "trainer_state.json").write_text(json.dumps(state | more))


def event_files(folder, losses=LOSSES, hparams=None):
    """What TensorBoard's own writer writes: old scalars, a tensor of the new kind, and hyperparameters."""
    pytest.importorskip("tensorboard", reason="the extra runs is not installed")
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    from tensorboard.util.tensor_util import make_tensor_proto

    writer = EventFileWriter(str(folder))
    for k, loss in enumerate(losses):
        old = Summary(value=[Summary.Value(tag="loss", simple_value=loss)])
        writer.add_event(Event(wall_time=k, step=100 * k, summary=old))
        new = Summary(value=[Summary.Value(tag="tokens", tensor=make_tensor_proto(1000.0 * (k + 1)))])
        writer.add_event(Event(wall_time=k, step=100 * k, summary=new))
    if hparams is not None:
        writer.add_event(Event(wall_time=9, step=0, summary=hparams_pb(hparams)))
    writer.close()


def metrics_csv(folder, hparams="params: 1000\nmodel:\n  layers: 4\n"):
    """The layout of Lightning's CSVLogger: a row a flush, blank where a metric was not logged."""
    folder.mkdir(parents=True)
    rows = [
        "epoch,step,train_loss,val_loss",
        "0,99,3.1,",
        "0,99,,3.0",
        "1,199,2.4,",
        "1,199,,2.5",
        "2,299,,2.6",
    ]
    (folder / "metrics.csv").write_text("\n".join(rows) + "\n")
    (folder / "hparams.yaml").write_text(hparams)


@pytest.fixture
def run(capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as stop:
            main(["law", *map(str, arguments)])
        out, err = capsys.readouterr()
        return stop.value.code, out, err

    return call


def test_wandb_lines_give_a_row_a_run(tmp_path):
    file = tmp_path / "runs.jsonl"
    file.write_text(
        "\n".join([wandb_line("a", params=1e6, model={"layers": 4}), wandb_line("b", [2.0, 1.0])])
    )
    assert is_log(file)
    frame = read_logs(file)
    assert list(frame["run"]) == ["a", "b"]
    assert list(frame["eval/loss"]) == [2.6, 1.0]
    assert frame["config.params"][0] == 1e6
    assert frame["config.model.layers"][0] == 4
    assert not any("_wandb" in name for name in frame)


def test_the_best_has_every_metric_as_it_was_then(tmp_path):
    file = tmp_path / "runs.jsonl"
    file.write_text(wandb_line("a"))
    best = read_logs(file, loss="eval/loss", take="best").iloc[0]
    assert (best["eval/loss"], best["tokens"]) == (2.5, 2000)
    last = read_logs(file).iloc[0]
    assert (last["eval/loss"], last["tokens"]) == (2.6, 3000)


def test_wrapped_values_and_texts_of_the_wandb_api():
    assert flat({"lr": {"value": 1e-3, "desc": None}, "net": {"value": {"d": 2}}, "tags": ["x"]}) == {
        "lr": 1e-3,
        "net.d": 2,
    }


def test_config_and_summary_may_be_texts(tmp_path):
    file = tmp_path / "runs.jsonl"
    text = {"name": "a", "config": json.dumps({"params": {"value": 5}}), "summary": json.dumps({"loss": 2.0})}
    file.write_text(json.dumps(text))
    assert read_logs(file).to_dict("records") == [{"run": "a", "config.params": 5, "loss": 2.0}]


def test_wandb_run_folders(tmp_path):
    files = tmp_path / "wandb" / "run-1" / "files"
    files.mkdir(parents=True)
    (files / "wandb-summary.json").write_text(json.dumps({"loss": 2.0, "_timestamp": 1.0, "bad": "NaN"}))
    (files / "config.yaml").write_text("_wandb:\n  value: {}\nparams:\n  desc: null\n  value: 7\n")
    row = read_logs(tmp_path).to_dict("records")[0]
    assert (row["loss"], row["config.params"]) == (2.0, 7)
    assert "bad" not in row


def test_a_panel_of_wandb_is_no_table(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"Step": [1], "a - loss": [2.0], "a - loss__MIN": [2.0], "a - loss__MAX": [2.0]})
    with pytest.raises(InputError, match="one row a run"):
        require_table(frame, "panel.csv")
    require_table(pd.DataFrame({"Name": ["a"], "loss": [2.0]}), "runs.csv")


def test_trainer_states_take_the_newest_checkpoint(tmp_path):
    trainer_state(tmp_path / "a" / "checkpoint-100", LOSSES[:1], step=100)
    trainer_state(tmp_path / "a" / "checkpoint-300")
    trainer_state(tmp_path / "b", [4.0], max_steps=50)
    (tmp_path / "a" / "config.json").write_text(json.dumps({"hidden_size": 64, "architectures": ["X"]}))
    frame = read_logs(tmp_path).set_index("run")
    assert frame.loc["a", "eval_loss"] == pytest.approx(2.7)
    assert frame.loc["a", "loss"] == 2.6
    assert frame.loc["a", "config.model.hidden_size"] == 64
    assert frame.loc["b", "config.max_steps"] == 50
    assert math.isnan(frame.loc["b", "config.model.hidden_size"])
    best = read_logs(tmp_path, loss="eval_loss", take="best").set_index("run")
    assert best.loc["a", "eval_loss"] == pytest.approx(2.6)
    assert best.loc["a", "step"] == 200


def test_event_files_with_hyperparameters(tmp_path):
    event_files(tmp_path / "a", hparams={"params": 1e6, "net": "gpt", "tied": True})
    event_files(tmp_path / "b", [4.0, 3.5])
    frame = read_logs(tmp_path).set_index("run")
    assert frame.loc["a", "loss"] == pytest.approx(2.6)
    assert frame.loc["a", "tokens"] == 3000
    assert frame.loc["a", "config.params"] == 1e6
    assert frame.loc["a", "config.net"] == "gpt"
    assert frame.loc["b", "step"] == 100
    assert read_logs(tmp_path, loss="loss", take="best").set_index("run").loc["a", "tokens"] == 2000


def test_lightning_logs_with_blank_cells(tmp_path):
    metrics_csv(tmp_path / "lightning_logs" / "version_0")
    metrics_csv(
        tmp_path / "lightning_logs" / "version_1", "params: 5\nnet: !!python/object:torch.nn.Linear {}\n"
    )
    frame = read_logs(tmp_path / "lightning_logs").set_index("run")
    assert list(frame["val_loss"]) == [2.6, 2.6]
    assert list(frame["train_loss"]) == [2.4, 2.4]  # the last that was logged
    assert list(frame["config.params"]) == [1000, 5]
    assert frame.loc["version_0", "config.model.layers"] == 4
    best = read_logs(tmp_path, loss="val_loss", take="best")
    assert list(best["step"]) == [199, 199]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("runs.jsonl", "not json", "line 1"),
        ("runs.jsonl", '{"name": "a", "config": {}}', "summary or history"),
        ("runs.jsonl", '{"history": {"loss": 1}}', "list of rows"),
        ("runs.jsonl", "", "at least one run"),
        ("a/trainer_state.json", "{", "JSON object"),
        ("a/trainer_state.json", '{"global_step": 3}', "log_history"),
        ("a/trainer_state.json", "[1]", "JSON object"),
        ("a/metrics.csv", "", "rows"),
        ("a/wandb-summary.json", "3", "JSON object"),
        ("a/wandb-summary.json", '{"loss": 2', "JSON object"),
        ("a/notes.txt", "hello", "one of trainer_state.json"),
        ("runs.csv", '"Step","a - loss","a - loss__MIN","a - loss__MAX"\n1,2,2,2\n', "panel's export"),
        ("runs.csv", "", "must hold rows"),
        ("metrics.csv", "epoch,step,val_loss\n0,99,3.0\n", "give the folder"),
        ("a/checkpoint-1/trainer_state.json", '{"log_history": [], "global_step": "x"}', "global_step"),
        ("a/events.out.tfevents.1", "not events", "event files"),
        ("a/metrics.csv", "a;b\n1;2\n", "commas"),
    ],
)
def test_what_does_not_fit_is_one_line(run, tmp_path, name, text, says):
    """At least two of each format; on the command line it is exit code 2 and nothing on standard output."""
    if "tfevents" in name:
        pytest.importorskip("tensorboard", reason="the extra runs is not installed")
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    source = tmp_path if "/" in name else file
    if source == tmp_path or name.endswith(".jsonl"):
        with pytest.raises(InputError, match=says):
            read_logs(source)
    if name != "a/notes.txt":  # a folder that is no log is refused as a table
        refused(run, source, says)


def refused(run, source, says):
    code, out, err = run(source, "--columns")
    assert (code, out, err.count("\n")) == (2, "", 1), (out, err)
    assert says in err


def test_damaged_event_files_and_hparams_are_one_line(run, tmp_path):
    metrics_csv(tmp_path / "b" / "version_0", "- 1\n- 2\n")
    refused(run, tmp_path / "b", "YAML mapping")
    event_files(tmp_path / "a", [])
    refused(run, tmp_path / "a", "scalars")


def test_best_needs_a_history(tmp_path):
    file = tmp_path / "runs.jsonl"
    file.write_text(json.dumps({"name": "a", "summary": {"loss": 2.0}}))
    with pytest.raises(InputError, match="must be last"):
        read_logs(file, loss="loss", take="best")
    with pytest.raises(InputError, match="one of last, best"):
        read_logs(file, loss="loss", take="first")


@pytest.mark.parametrize(
    ("log", "loss", "params", "tokens"),
    [
        ("wandb.csv", "eval/loss", "params", "tokens"),
        ("wandb.jsonl", "eval/loss", "config.params", "tokens"),
        ("trainer", "eval_loss", None, "config.num_input_tokens_seen"),
        ("lightning", "val_loss", "config.params", None),
    ],
)
def test_logs_that_their_own_libraries_wrote(log, loss, params, tokens):
    """Losses, sizes and dotted names of all runs, the last and the best."""
    frame = read_any(LOGS / log, loss=loss)
    known = {row[1]: row for row in WRITTEN.values()}
    assert sorted(frame[loss]) == sorted(known)
    if params is not None:
        assert dict(zip(frame[loss], frame[params], strict=True)) == {x: row[0] for x, row in known.items()}
    if tokens is not None:
        assert set(frame[tokens]) == {3e5}
    prefix = {"wandb.csv": "model.layers", "trainer": "config.model.n_layer"}.get(log, "config.model.layers")
    assert set(frame[prefix]) == {4}
    if log == "wandb.csv":
        with pytest.raises(InputError, match="take goes with a log of runs"):
            read_any(LOGS / log, loss=loss, take="best")
    else:
        best = read_any(LOGS / log, loss=loss, take="best")
        assert sorted(best[loss]) == sorted(row[2] for row in WRITTEN.values())


def test_event_files_of_torch_if_it_is_there(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("tensorboard", reason="the extra runs is not installed")
    from torch.utils.tensorboard import SummaryWriter

    for name, (params, _, best) in WRITTEN.items():
        with SummaryWriter(str(tmp_path / name)) as writer:
            for step, loss in ((100, 3.0), (200, best), (300, best + 0.1)):
                writer.add_scalar("loss/eval", loss, step)
        with SummaryWriter(str(tmp_path / name)) as writer:
            writer.add_hparams({"params": params}, {"loss/last": best}, run_name=".")
    frame = read_logs(tmp_path, loss="loss/eval", take="best").set_index("run")
    assert {name: frame.loc[name, "config.params"] for name in WRITTEN} == {
        name: row[0] for name, row in WRITTEN.items()
    }
    assert frame.loc["large", "loss/eval"] == pytest.approx(2.1)


def test_the_columns_of_a_log_are_shown(run):
    code, out, err = run(LOGS / "trainer", "--columns")
    assert (code, err) == (0, "")
    assert out.startswith("3 runs with ")
    assert "config.model.n_layer" in out
    assert "eval_loss" in out
    code, out, _ = run(LOGS / "wandb.jsonl", "--columns", "--json")
    found = {one["column"]: one for one in json.loads(out)["columns"]}
    assert found["config.params"] == {
        "column": "config.params", "runs": 3, "low": 1e6, "high": 16e6, "values": "",
    }  # fmt: skip
    assert found["run"]["values"] == "large, middle, small"
    code, out, err = run(LOGS / "trainer", "--term", "step")
    assert (code, out) == (2, "")
    assert err == "seqlaw: --loss must be given (--columns shows what there is)\n"


def test_a_folder_without_a_log_is_one_line(run, tmp_path):
    (tmp_path / "empty").mkdir()
    code, out, err = run(tmp_path / "empty", "--loss", "loss", "--term", "params")
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_the_law_of_a_log(tmp_path, run):
    """Forty runs as JSON lines: a law in Python and by the command."""
    rng = np.random.default_rng(3)
    lines = []
    for k in range(40):
        params, tokens = 10 ** rng.uniform(7, 9), 10 ** rng.uniform(9, 11)
        loss = 1.7 + 400 * params**-0.3 + 900 * tokens**-0.35
        history = [{"loss": loss + 0.5, "tokens": tokens / 2}, {"loss": loss, "tokens": tokens}]
        lines.append({"name": f"r{k}", "config": {"n": {"params": params}}, "history": history})
    file = tmp_path / "runs.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    law = fit_law(file, loss="loss", terms=["config.n.params", "tokens"], bootstraps=20)
    assert law.numbers["config.n.params"].value == pytest.approx(0.3, abs=1e-3)
    code, out, err = run(
        file, "--loss", "loss", "--let", "size=config_n_params", "--term", "size", "--term", "tokens",
        "--bootstraps", 20, "--take", "best",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "size^-(0.3" in out
