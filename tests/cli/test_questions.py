"""A question says its options once: one new field is a new option of the command, the API and the copies."""

import json
from dataclasses import dataclass

import pytest

from seqlaw.cli import main
from seqlaw.cli.app import COMMANDS, question_of
from seqlaw.cli.command import answer, build
from seqlaw.cli.output import Output
from seqlaw.model.checks import InputError
from seqlaw.questions.options import PANELS, SIZE, TRAINING, Slider, option
from seqlaw.questions.risk import Curve, Risk


@dataclass(frozen=True, kw_only=True)
class Louder(Risk):
    """A risk with an option that nobody has."""

    command = "risk"
    loudness: float = option(0.5, "How loud.", TRAINING, words="loudness", slider=Slider(0.1, 11))


SMALL = {"M": 8, "d": 32, "N": 64, "P": 4, "L": 100}


def test_a_new_field_is_an_option_of_the_command(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        build(Louder)(["--help"])
    help = capsys.readouterr().out
    training = " ".join(help.split("─ Training ─")[1].split("╰")[0].replace("│", " ").split())
    assert "--loudness" in training
    assert "How loud. [default: 0.5]" in training


def test_a_new_field_is_in_the_inputs_and_in_the_copies(capsys):
    question = Louder.read({**SMALL, "loudness": "0.7"})
    answer(question, Output(json=True))
    assert json.loads(capsys.readouterr().out)["inputs"]["loudness"] == 0.7
    assert question.copies()["command"].endswith("--loudness 0.7")
    assert "loudness" not in Louder.read(SMALL).line()  # the default needs no word


def test_a_new_field_is_in_the_api_and_in_the_explorer(monkeypatch):
    pytest.importorskip("fastapi")
    from seqlaw.web import schema

    view = schema.View(Louder, {"loudness": 11})
    body = schema.body_of("louder", view)
    shown = body.model_json_schema()["properties"]["loudness"]
    assert (shown["description"], shown["anyOf"][0]["maximum"]) == ("How loud.", 11)
    assert schema.question_of(view, body(**SMALL, loudness="3")).loudness == 3.0
    with pytest.raises(ValueError, match="loudness must be at most 11"):
        body(loudness=12)
    monkeypatch.setitem(schema.VIEWS, "louder", view)
    control = schema.controls()["louder"]["loudness"]
    assert (control["words"], control["value"], control["high"]) == ("loudness", "0.5", 11)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_told_and_in_a_panel(name):
    options = question_of(name).options()
    assert options
    for field, one in options.items():
        assert one.panel in PANELS, field
        assert one.help.endswith((".", "?")), field


def test_a_command_that_is_copied_asks_the_same_question(monkeypatch):
    asked = Curve.read({**SMALL, "along": "N", "start": "64", "stop": "256", "points": "3", "theta": "1.3"})
    words = asked.line().split()
    assert words[:2] == ["seqlaw", "curve"]
    seen = []
    monkeypatch.setattr("seqlaw.cli.command.answer", lambda question, output: seen.append(question))
    with pytest.raises(SystemExit) as stop:
        main(words[1:])
    assert stop.value.code == 0
    assert seen == [asked]
    found = {}
    exec(asked.copies()["python"], found)
    assert [risk.reducible for risk in found["answer"]] == [risk.reducible for risk in asked.ask()]


def test_what_is_no_option_is_refused():
    with pytest.raises(InputError, match="colour is no option of risk, got 'red'"):
        Risk.read({"colour": "red"})
    assert SIZE.read("M", "1e9") == 10**9
