"""What had another name before 0.3: one table, from which an old name is told its new one."""

OPTIONS = {
    "--rung": "--method",
    "--test": "--eval-length",
    "--shortest": "--min-P",
    "--longest": "--max-P",
    "--rates": "--verbose",
    **dict.fromkeys(("--map", "--horizons"), "examples/phase_diagram.py"),
}
"""Options of the commands."""
KEYS = {"rung": "method"}
"""Fields of a sweep file."""
NAMES = {
    "risks": "risk(settings)",
    "averaged_spectrum": "spectrum",
    "advise": "measure(X).advise(…)",
    "save_teacher": "measure(X).save(path)",
    "save_law": "measure(X).save(path, law=True)",
    "export": "load(folder).export(path)",
    "plan_one_pass": "plan(…, one_pass=True)",
    **dict.fromkeys(("OnePassPlan", "UncertainPlan", "MixturePlan"), "Plan"),
    **{name: f"seqlaw.lab.errors.{name}" for name in ("EngineError", "LabError", "StoreError")},
    "MissingLibrary": "seqlaw.model.checks.MissingLibrary",
    "SingularProblem": "seqlaw.model.sketch.SingularProblem",
    "fit_power_law": "seqlaw.fit.fit_power_law",
    "PowerFit": "seqlaw.fit.PowerFit",
    "load_uncertain": "seqlaw.files.load_uncertain",
    **{name: f"seqlaw.answers.ladder.{name}" for name in ("ladder_curve", "LadderCurve")},
    "Advice": "seqlaw.answers.advice.Advice",
    "ladder_map": "seqlaw.planning.ladder_map.ladder_map",
    "Allocation": "seqlaw.planning.budget.Allocation",
    "FinitePlan": "seqlaw.planning.search.FinitePlan",
    "corollary": "seqlaw.planning.corollary.corollary",
    "program": "seqlaw.planning.program.program",
    **{
        name: f"seqlaw.model.{name}"
        for name in (
            "Moments",
            "Problem",
            "Spectrum",
            "descend",
            "generator",
            "setting_flags",
            "teacher_flags",
        )
    },
    **{
        name: f"seqlaw.methods.{name}"
        for name in ("along", "equivalent_risk", "equivalent_risks", "sampled_terms", "score", "trajectories")
    },
}
"""Names of `seqlaw`."""
