"""Training runs from where people log them: one row a run.

Read are W&B's export (a table of runs, or JSON lines of its API, a line a run) and its run folders, folders
of Hugging Face `trainer_state.json`, TensorBoard event files, and Lightning's `metrics.csv`. A run is a
history of metrics and a nested configuration, whose numbers and texts become columns with dotted names:
`config.model.layers`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seqlaw.files import read_table
from seqlaw.model.checks import InputError, library
from seqlaw.model.stored import read_frame, read_text, reading

TAKES = ("last", "best")
"""Which value a run has: of every metric the last, or all as they were when the loss was least."""
_PANEL = re.compile(r".+ - .+__(MIN|MAX)")  # columns of the export of a W&B panel
_LARGEST = 2**30  # bytes of a file that is read whole
_CHECKPOINT = re.compile(r"checkpoint-\d+")
Metrics = Mapping[str, float]


@dataclass(kw_only=True)
class Run:
    """One training run: its metrics in the order in which they were logged, and its configuration."""

    name: str
    config: dict[str, Any] = field(default_factory=dict)
    history: Sequence[Metrics] = field(default_factory=list)
    final: Metrics = field(default_factory=dict)
    """A summary of metrics, where there is one beside the history or in its place."""

    def row(self, loss: str | None, take: str) -> dict[str, Any]:
        """The run as a row: its name, its configuration, its metrics."""
        rows = self.history
        if take == "best":
            seen = [(row[loss], k) for k, row in enumerate(rows) if loss is not None and loss in row]
            if not seen:
                rule = f"must be last where no history of {loss} was logged, as in run {self.name}"
                raise InputError("take", rule, take)
            rows = rows[: min(seen)[1] + 1]
        metrics: dict[str, float] = {}
        for row in rows:
            metrics |= row
        if take == "last":
            metrics |= self.final
        return {"run": self.name} | flat({"config": self.config}) | metrics


def is_log(path: Path) -> bool:
    """Whether a path is a log of training runs that `read_logs` knows."""
    return path.suffix in (".jsonl", ".ndjson") or (path.is_dir() and _kind(path) is not None)


def read_logs(path: str | Path, *, loss: str | None = None, take: str = "last") -> Any:
    """The runs of a log as a DataFrame, one row a run.

    With `take="best"` every metric is as it was when `loss` was least; runs without that loss are an error.
    """
    path = Path(path)
    if take not in TAKES:
        raise InputError("take", f"must be one of {', '.join(TAKES)}", take)
    if path.suffix in (".jsonl", ".ndjson"):
        runs = list(_json_lines(path))
    else:
        kind = _kind(path)
        if kind is None:
            rule = f"must be a folder with one of {', '.join(_KINDS)}"
            raise InputError("file", rule, str(path))
        runs = list(_KINDS[kind](path))
    if not runs:
        raise InputError("file", "must have at least one run", str(path))
    return library("pandas").DataFrame([run.row(loss, take) for run in runs])


def read_any(source: Any, *, loss: str | None = None, take: str = "last", field: str = "file") -> Any:
    """One row a run, of a log or of a table: a DataFrame, or a .csv or .parquet file."""
    is_path = isinstance(source, (str, Path))
    if is_path and is_log(Path(source)):
        return read_logs(source, loss=loss, take=take)
    if is_path and take != "last":
        raise InputError("take", "goes with a log of runs, not with a table", take)
    frame = read_table(source, field=field)
    require_table(frame, source if is_path else "a DataFrame", field)
    return frame


def require_table(frame: Any, path: object, field: str = "file") -> None:
    """Refuse a table that has no row a run (a W&B panel, the log of one run), or a column twice."""
    names = {str(name) for name in frame}
    if len(names) < len(list(frame)):
        raise InputError(field, "must name every column once", ", ".join(map(str, frame)))
    if any(map(_PANEL.fullmatch, names)):
        rule = "must have one row a run: this is a panel's export (in W&B, export the table of runs)"
        raise InputError(field, rule, str(path))
    if Path(str(path)).name == "metrics.csv" and {"epoch", "step"} <= names:
        raise InputError(field, "must have one row a run: give the folder of Lightning's logs", str(path))


def flat(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Numbers, texts and truth values of nested mappings by dotted names.

    W&B wraps a value as {"value": …, "desc": …}; lists are left out.
    """
    found: dict[str, Any] = {}
    for key, value in nested.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            if "value" in value and set(value) <= {"value", "desc"}:
                found |= flat({name: value["value"]})
            else:
                found |= flat(value, f"{name}.")
        elif isinstance(value, (bool, int, float, str)):
            found[name] = value
    return found


def _numbers(row: Mapping[str, Any]) -> dict[str, float]:
    """The finite numbers of a row of metrics; W&B writes "NaN" and "Infinity" as text."""
    found = {}
    for name, value in flat(row).items():
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            found[name] = float(value)
    return found


# --- one reader a kind of log ------------------------------------------------------------------------------


def _json_lines(path: Path) -> Iterator[Run]:
    """A line a run: `config`, `summary` or `history`, as json.dumps of what W&B's API gives."""
    with reading("file", path, "JSON, one run a line"):
        lines = [line for line in read_text(path, _LARGEST).splitlines() if line.strip()]
    for number, line in enumerate(lines, 1):
        try:
            one = json.loads(line)
        except json.JSONDecodeError:
            raise InputError(
                "file", f"must be JSON, one run a line; line {number} is not", str(path)
            ) from None
        known = ("summary", "summary_metrics", "history")
        if not isinstance(one, dict) or not any(key in one for key in known):
            rule = f"must have a run with summary or history in every line; line {number} has neither"
            raise InputError("file", rule, str(path))
        config, history = _mapping(one.get("config")), one.get("history") or []
        if not isinstance(history, list) or not all(isinstance(row, Mapping) for row in history):
            raise InputError("file", f"must have a list of rows as history; line {number} has not", str(path))
        yield Run(
            name=str(one.get("name") or one.get("id") or number),
            config={key: value for key, value in config.items() if not str(key).startswith("_")},
            history=[_numbers(row) for row in history],
            final=_numbers(_mapping(one.get("summary", one.get("summary_metrics")))),
        )


def _mapping(value: Any) -> Mapping[str, Any]:
    """A mapping, or the one that a text holds: W&B's API may give either."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            return {}
    return value if isinstance(value, Mapping) else {}


def _trainer_states(path: Path) -> Iterator[Run]:
    """Hugging Face: of each run the state with the most steps, with `config.json` beside it."""
    newest: dict[Path, tuple[int, Path, dict[str, Any]]] = {}
    for file in sorted(path.rglob("trainer_state.json")):
        state = _json(file)
        steps = state.get("global_step") or 0
        if not isinstance(state.get("log_history"), list) or not isinstance(steps, int):
            raise InputError("file", "must have a log_history and a global_step", str(file))
        checkpoint = _CHECKPOINT.fullmatch(file.parent.name)
        run = file.parent.parent if checkpoint else file.parent
        if run not in newest or steps >= newest[run][0]:
            newest[run] = steps, file, state
    for run, (_, file, state) in newest.items():
        config = dict(state)
        for folder in (run, file.parent):
            if (folder / "config.json").exists():
                config["model"] = _json(folder / "config.json")
        rows = [_numbers(row) for row in config.pop("log_history") if isinstance(row, Mapping)]
        yield Run(name=_name(run, path), config=config, history=rows)


def _lightning(path: Path) -> Iterator[Run]:
    """Lightning's CSV logger: `metrics.csv`, with `hparams.yaml` beside it."""
    for file in sorted(path.rglob("metrics.csv")):
        hparams = file.with_name("hparams.yaml")
        yield Run(
            name=_name(file.parent, path),
            config=_yaml(hparams) if hparams.exists() else {},
            history=[_numbers(row) for row in read_frame(file).to_dict("records")],
        )


def _wandb(path: Path) -> Iterator[Run]:
    """W&B's run folders: `files/wandb-summary.json`, with `config.yaml` beside it."""
    for file in sorted(path.rglob("wandb-summary.json")):
        config = file.with_name("config.yaml")
        known = _yaml(config) if config.exists() else {}
        folder = file.parent.parent if file.parent.name == "files" else file.parent
        yield Run(
            name=_name(folder, path),
            config={key: value for key, value in known.items() if not str(key).startswith("_")},
            final=_numbers(_json(file)),
        )


def _tensorboard(path: Path) -> Iterator[Run]:
    """TensorBoard's event files, read by its own package: scalars, and the hyperparameters if logged."""
    events = library("tensorboard.backend.event_processing.event_accumulator", "runs")
    tensors = library("tensorboard.util.tensor_util", "runs")
    for folder in sorted({file.parent for file in path.rglob("*tfevents*")}):
        with reading("file", folder, "a folder of TensorBoard's event files"):
            found = events.EventAccumulator(str(folder), size_guidance={events.SCALARS: 0, events.TENSORS: 0})
            found.Reload()
            tags = found.Tags()
            logged = [
                (event.step, tag, float(event.value))
                for tag in tags["scalars"]
                for event in found.Scalars(tag)
            ]
            for tag in tags["tensors"]:
                for event in found.Tensors(tag):
                    value = tensors.make_ndarray(event.tensor_proto)
                    if value.shape == () and value.dtype.kind in "iuf":
                        logged.append((event.step, tag, float(value)))
            hparams = _hparams(found)
        rows: dict[int, dict[str, float]] = {}
        for step, tag, value in logged:
            if math.isfinite(value):
                rows.setdefault(step, {"step": float(step)})[tag] = value
        if not rows and not hparams:
            raise InputError("file", "must have scalars in its event files", str(folder))
        yield Run(name=_name(folder, path), config=hparams, history=[rows[step] for step in sorted(rows)])


def _hparams(found: Any) -> dict[str, Any]:
    """What TensorBoard's HParams plugin was told at the start of a run."""
    plugin = library("tensorboard.plugins.hparams.plugin_data_pb2", "runs")
    config: dict[str, Any] = {}
    try:
        contents = found.PluginTagToContent("hparams").values()
    except KeyError:  # nothing was told
        return config
    for content in contents:
        started = plugin.HParamsPluginData.FromString(content).session_start_info
        for name, value in started.hparams.items():
            config[name] = getattr(value, value.WhichOneof("kind") or "string_value")
    return config


_KINDS: dict[str, Callable[[Path], Iterator[Run]]] = {
    "trainer_state.json": _trainer_states,
    "wandb-summary.json": _wandb,
    "*tfevents*": _tensorboard,
    "metrics.csv": _lightning,
}
"""The file that tells a kind of folder, and its reader."""


def _kind(path: Path) -> str | None:
    with reading("file", path, "a readable file or folder"):
        return next((name for name in _KINDS if next(path.rglob(name), None) is not None), None)


def _json(file: Path) -> dict[str, Any]:
    with reading("file", file, "a JSON object"):
        found = json.loads(read_text(file, _LARGEST))
    if not isinstance(found, dict):
        raise InputError("file", "must be a JSON object", str(file))
    return found


def _yaml(file: Path) -> dict[str, Any]:
    """A YAML mapping; tags of Python objects, which Lightning may write, are left out."""
    yaml = library("yaml")
    Plain: Any = type("Plain", (yaml.SafeLoader,), {})  # a class of its own: constructors are kept by class
    Plain.add_multi_constructor("", lambda loader, tag, node: None)
    with reading("file", file, "a YAML mapping"):
        found = yaml.load(read_text(file), Loader=Plain)
    if not isinstance(found, dict):
        raise InputError("file", "must be a YAML mapping", str(file))
    return found


def _name(folder: Path, root: Path) -> str:
    """The run's folder as seen from the folder that was given."""
    name = folder.relative_to(root).as_posix() if folder != root else root.name
    return name or str(folder)
