"""Every form of sequences as people have them, for `measure` and `forecast`: the same answer, or one line."""

import json
from pathlib import Path

import numpy as np
import pytest

from seqlaw import PRESETS, InputError, forecast, measure
from seqlaw.cli import main
from seqlaw.methods import trajectories
from seqlaw.sequences import reading
from seqlaw.sequences.moments import batches, tally
from seqlaw.sequences.reading import Joined, recordings, sequences
from seqlaw.sequences.tables import Columns

pd = pytest.importorskip("pandas")
STATES = trajectories(PRESETS["regime2"].modes(6), 120, 9, seed=3)
NAMES = [f"x{j}" for j in range(6)]
COLUMNS = {"sequence": "trial", "time": "second", "features": NAMES}
WORDS = ["--sequence", "trial", "--time", "second", "--features", ",".join(NAMES)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def table(X):
    """In any order of rows, with two columns of text."""
    N, P, D = X.shape
    frame = pd.DataFrame(X.reshape(-1, D), columns=[f"x{j}" for j in range(D)])
    frame["trial"], frame["second"] = np.repeat(np.arange(N), P), np.tile(np.arange(P), N)
    frame["subject"], frame["hand"] = [f"subject {k // 12:02d}" for k in frame["trial"]], "left"
    return frame.sample(frac=1, random_state=0)


def lines(path, values):
    Path(path).write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def parts(kind, X):
    """Four files of a folder, of which one does not count."""
    Path("data").mkdir()
    for k, part in enumerate(np.split(X, 4)):
        if kind == "npy":
            np.save(f"data/{k}.npy", part)
        else:
            frame = table(part).to_csv if kind == "csv" else table(part).to_parquet
            frame(f"data/{k}.{kind}", index=False)
    Path("data/README.txt").write_text("made by hand")
    Path("data/.hidden.npz").write_text("")
    return "data"


class Foreign:
    """A frame of another library, as polars has it."""

    def __init__(self, frame):
        self.frame, self.columns = frame, list(frame)

    def to_pandas(self):
        return self.frame


FORMS = {
    "frame of another library": lambda X: (Foreign(table(X)), COLUMNS),
    "csv": lambda X: (table(X).to_csv("x.csv", index=False) or "x.csv", COLUMNS),
    "parquet": lambda X: (table(X).to_parquet("x.parquet") or "x.parquet", COLUMNS),
    "frame": lambda X: (table(X), COLUMNS),
    "left out": lambda X: (table(X), COLUMNS | {"features": (), "leave_out": ["hand", "subject"]}),
    "arrays a line": lambda X: (lines("x.jsonl", X.tolist()), {}),
    "objects a line": lambda X: (
        lines("x.ndjson", [{"id": f"trial {k}", "states": x.tolist()} for k, x in enumerate(X)]),
        {},
    ),
    "rows a line": lambda X: (lines("x.jsonl", table(X).to_dict("records")), COLUMNS),
    "folder of arrays": lambda X: (parts("npy", X), {}),
    "list of arrays": lambda X: (sorted(Path(parts("npy", X)).glob("*.npy")), {}),
    "folder of tables": lambda X: (parts("csv", X), COLUMNS),
    "folder of parquet": lambda X: (parts("parquet", X), COLUMNS),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_answer(form):
    """But that a stream of lines is grouped by turns, which moves the intervals of a measurement."""
    X, how = FORMS[form](STATES)
    mine, wanted = measure(X, **how), measure(STATES)
    for name in ("alpha", "theta", "r", "rho", "c_xi", "c_0"):
        assert getattr(mine, name).value == pytest.approx(getattr(wanted, name).value, rel=1e-9)
        if form != "arrays a line":
            assert getattr(mine, name).low == pytest.approx(getattr(wanted, name).low, rel=1e-9)
    mine, wanted = forecast(X, lengths=[2, 5], **how), forecast(STATES, lengths=[2, 5])
    assert [row.loss for row in mine.rows] == pytest.approx([row.loss for row in wanted.rows], rel=1e-9)


def test_files_of_recordings_are_sequences_of_their_own_length():
    """S × D each, as arrays and as tables without a sequence column."""
    whole = [STATES[k : k + 3].reshape(-1, 6)[: 20 + k % 2] for k in range(0, 120, 3)]
    Path("a").mkdir()
    Path("t").mkdir()
    for k, x in enumerate(whole):
        np.save(f"a/{k:02d}.npy", x)
        pd.DataFrame(x).to_csv(f"t/{k:02d}.csv", index=False)
    wanted = measure(whole)
    assert (wanted.N, wanted.P) == (40, (20, 21))
    for folder in ("a", "t"):
        assert measure(folder).alpha.value == pytest.approx(wanted.alpha.value, rel=1e-12)
        assert measure(folder).alpha.low == pytest.approx(wanted.alpha.low, rel=1e-9)
        cut = sequences(folder, window=5)
        assert (cut.N, cut.groups.max() + 1) == (160, 40)  # a recording is a group
        assert np.array_equal(cut.read(np.array([5]), 5)[0], whole[1][5:10])


def test_several_arrays_are_read_as_one(monkeypatch):
    """In blocks across the files, and without a copy of the whole."""
    monkeypatch.setattr(reading, "BATCH", 10 * 60)
    found = sequences(parts("npy", STATES))
    assert isinstance(found.recordings, Joined)
    assert found.recordings.shape == STATES.shape
    for rows in (np.arange(25, 65), np.array([3, 119, 30])):
        assert np.array_equal(found.read(rows, 10), STATES[rows])
    read = [x for _, x in found.chunks(np.arange(120), 10)]
    assert [len(x) for x in read] == [10] * 12
    assert np.array_equal(np.concatenate(read), STATES)


def test_a_file_can_be_a_group():
    found = sequences(parts("csv", STATES), Columns(**COLUMNS), groups="file")
    assert (found.groups == np.repeat(np.arange(4), 30)).all()
    assert not found.flags
    (said,) = sequences("data", Columns(**COLUMNS)).flags
    assert (said.code, said["files"], said["sequences"]) == ("files", 4, 120)
    Path("other").mkdir()
    for k, part in enumerate(np.split(STATES, 4)):
        np.save(f"other/{k}.npy", part)
    assert (sequences("other", groups="file").groups == np.repeat(np.arange(4), 30)).all()
    assert sequences("other", window=5).groups.max() + 1 == 120  # windows have their recording


def test_labels_beside_a_sequence_in_a_line():
    lines("x.jsonl", [{"who": f"s{k // 8}", "x": x.tolist()} for k, x in enumerate(STATES)])
    found = sequences("x.jsonl", groups="who")
    assert np.array_equal(found.groups[::8], found.groups[7::8])
    assert np.unique(found.groups).size == 15


def test_null_is_a_missing_number():
    X = STATES[:60].tolist()
    X[40][2][1] = None
    lines("x.jsonl", X)
    with pytest.raises(InputError, match="NaN, infinity or more in sequence 40"):
        measure("x.jsonl")
    assert sequences("x.jsonl", drop_missing=True).N == 59


def test_a_stream_is_read_once_and_never_kept(monkeypatch):
    """Two million sequences would not fit; the most that waits is a batch of each group."""
    alive = most = 0

    class Counted(np.ndarray):
        def __del__(self):
            nonlocal alive
            alive -= 1

    def stream(count):
        nonlocal alive, most
        for k in range(count):
            alive += 1
            most = max(most, alive)
            yield np.array(STATES[k % 120]).view(Counted)

    monkeypatch.setattr("seqlaw.sequences.moments.BATCH", 16 * 60 * 4)
    found = tally(batches(recordings(stream(2000), Columns(), stream=True)))
    assert found.N == 2000
    assert most < 32 * 8


def test_numbers_that_start_anew_are_noted():
    """Trials numbered from 0 in each of two subjects; rows shuffled or sorted by time say nothing."""
    frame = table(STATES).sort_values(["trial", "second"])
    again = frame.assign(trial=frame.trial % 60).drop(columns="second")
    columns = Columns(sequence="trial", features=NAMES)
    (said,) = sequences(again, columns).flags
    assert (said.code, said["sequences"], said["of"]) == ("repeated-numbers", 60, 60)
    found = measure(again, sequence="trial", features=NAMES)
    assert found.N == 60
    assert "repeated-numbers" in [one.code for one in found.flags]
    assert "60 of 60 sequences lie in several separate stretches of rows" in " ".join(str(found).split())
    plain = Columns(sequence="trial", time="second", features=NAMES)
    for other in (frame, frame.sample(frac=1, random_state=1), frame.sort_values(["second", "trial"])):
        assert not sequences(other, plain).flags


def refused(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main([*map(str, arguments)])
    out, err = capsys.readouterr()
    assert (stop.value.code, out, err.count("\n")) == (2, "", 1), (out, err)
    return err


def broken(**changed):
    """Writes files by name, from arrays, tables or text, and returns the names."""
    for name, value in changed.items():
        path = Path(name.replace("__", "/").replace("_", "."))
        path.parent.mkdir(exist_ok=True)
        if isinstance(value, str):
            path.write_text(value)
        elif path.suffix == ".npy":
            np.save(path, value)
        else:
            value.to_csv(path, index=False)


BROKEN = {
    # tables
    "text in two columns": (
        lambda: broken(x_csv=table(STATES)),
        ["x.csv", "--sequence", "trial", "--time", "second"],
        "FILE must hold numbers only: name other columns as sequence, time or groups, or set them aside with "
        "leave_out or features; text is in columns, got subject, hand",
    ),
    "no sequence column": (
        lambda: broken(x_csv=table(STATES)),
        ["x.csv"],
        "--sequence must name the column that tells sequences apart",
    ),
    "a column that is none": (
        lambda: broken(x_csv=table(STATES)),
        ["x.csv", "--sequence", "trial", "--features", "x0,y"],
        "--features must be a column, one of x0, x1",
    ),
    "features and columns left out": (
        lambda: broken(x_csv=table(STATES)),
        ["x.csv", *WORDS, "--leave-out", "hand"],
        "--features cannot be given together with leave_out",
    ),
    "the time as a feature": (
        lambda: broken(x_csv=table(STATES)),
        ["x.csv", "--sequence", "trial", "--time", "second", "--features", "x0,second"],
        "--features must not name the time column, got second",
    ),
    "features of an array": (
        lambda: broken(x_npy=STATES),
        ["x.npy", "--features", "x0"],
        "--features goes with tables",
    ),
    # several files
    "a folder without data": (
        lambda: broken(data__x_txt="1 2 3"),
        ["data"],
        "FILE must be a folder with files that end in one of .npy",
    ),
    "a folder of two kinds": (
        lambda: broken(data__x_npy=STATES, data__y_csv=table(STATES)),
        ["data"],
        "FILE must be a folder of one kind of files (.csv, .npy)",
    ),
    "arrays and tables": (
        lambda: broken(x_npy=STATES, y_csv=table(STATES)),
        ["x.npy", "y.csv"],
        "FILE must be files of one kind: tables, or arrays, got x.npy, y.csv",
    ),
    "one of several is damaged": (
        lambda: broken(x_npy=STATES, y_npy="no array"),
        ["x.npy", "y.npy"],
        "FILE must be a readable .npy file of numbers, got y.npy",
    ),
    "four dimensions in one of several": (
        lambda: broken(x_npy=STATES, y_npy=STATES[None]),
        ["x.npy", "y.npy"],
        "FILE must be an array N x P x D (y.npy), got shape (1, 120, 10, 6)",
    ),
    "other features": (
        lambda: broken(x_npy=STATES, y_npy=STATES[:, :, :3]),
        ["x.npy", "y.npy"],
        "FILE must have the 6 features of x.npy (y.npy), got 3",
    ),
    "other columns": (
        lambda: broken(x_csv=table(STATES), y_csv=table(STATES)[["x1", "x0", "trial"]]),
        ["x.csv", "y.csv", "--sequence", "trial"],
        "FILE must have the columns of x.csv, in the same order (y.csv), got x1, x0, trial",
    ),
    # JSON lines
    "no JSON in a line": (
        lambda: broken(x_jsonl="[[1, 2], [3, 4]]\n[[1, 2], [3\n"),
        ["x.jsonl"],
        "FILE must be a readable .jsonl file of numbers (line 2 is no JSON), got x.jsonl",
    ),
    "text in a line": (
        lambda: broken(x_jsonl='[[1, 2], [3, 4]]\n[[1, "2"], [3, 4]]\n'),
        ["x.jsonl"],
        "FILE must be a readable .jsonl file of numbers (line 2 holds something else than numbers)",
    ),
    "ragged states in a line": (
        lambda: broken(x_jsonl="[[1, 2], [3]]\n"),
        ["x.jsonl"],
        "(line 1 is no array of states with the same features)",
    ),
    "other fields in a line": (
        lambda: broken(x_jsonl='{"x": [[1], [2]]}\n{"y": [[1], [2]]}\n'),
        ["x.jsonl"],
        "(line 2 has not the fields of the first one)",
    ),
    "a number a line": (
        lambda: broken(x_jsonl="1\n2\n"),
        ["x.jsonl"],
        "(it must have an array or an object in every line)",
    ),
    "an empty file": (lambda: broken(x_jsonl=""), ["x.jsonl"], "FILE must be a readable .jsonl file"),
    "brackets without end": (
        lambda: broken(x_jsonl="[" * 200_000),
        ["x.jsonl"],
        "(line 1 is no JSON)",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("command", ["measure", "forecast"])
def test_what_is_broken_is_one_line(capsys, command, name):
    make, arguments, words = BROKEN[name]
    make()
    assert words in refused(capsys, command, *arguments)


def test_what_is_wrong_with_the_test_is_said_of_the_test(capsys):
    broken(x_csv=table(STATES), y_npy=STATES, z_csv=table(STATES).drop(columns="second"))
    other = "seqlaw: --test must have the form of the other sequences: "
    assert refused(capsys, "forecast", "x.csv", *WORDS, "--test", "y.npy").startswith(
        f"{other}sequence goes with tables"
    )
    assert refused(capsys, "forecast", "x.csv", *WORDS, "--test", "z.csv").startswith(
        f"{other}time must be a column, one of"
    )
    assert refused(capsys, "forecast", "y.npy", "--test", "z.csv").startswith(
        f"{other}sequence must name the column"
    )


def test_the_commands_take_several_files_and_echo_them(capsys):
    parts("csv", STATES)
    files = [f"data/{k}.csv" for k in range(4)]
    bodies = []
    for given in (["data"], files):
        with pytest.raises(SystemExit) as stop:
            main(["measure", *given, *WORDS, "--held-out", "--json"])
        assert stop.value.code == 0
        bodies.append(json.loads(capsys.readouterr().out))
    assert [body["inputs"]["file"] for body in bodies] == ["data", files]
    assert bodies[0]["inputs"]["features"] == NAMES
    assert bodies[0]["alpha"] == bodies[1]["alpha"]
    assert bodies[0]["N"] == 120


@pytest.mark.parametrize(
    ("broken", "how", "words"),
    [
        ("subject", {"groups": "subject"}, "groups must leave no sequence without a label, got 1"),
        ("second", {}, "time must leave no row of second empty, got 10"),
        ("", {"features": ["x0", "x0", "x1"]}, "features must name every column once"),
    ],
)
def test_what_is_missing_or_named_twice_is_one_line(broken, how, words):
    """Labels of text and blanks ended in a traceback; the others were taken in silence."""
    frame = table(STATES[:13])
    if broken:
        frame[broken] = frame[broken].where(frame["trial"] > 0, None)
    with pytest.raises(InputError) as stop:
        forecast(frame, **(COLUMNS | how))
    assert words in str(stop.value)
