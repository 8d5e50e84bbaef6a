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
    "ladder_map": "examples/phase_diagram.py",
    **dict.fromkeys(("OnePassPlan", "UncertainPlan", "MixturePlan"), "Plan"),
    **{
        name: f"seqlaw.{place}.{name}"
        for place, names in {
            "answers.advice": "Advice",
            "answers.ladder": "ladder_curve LadderCurve",
            "files": "load_uncertain",
            "fit": "fit_power_law PowerFit",
            "lab.errors": "EngineError LabError StoreError",
            "methods": "along equivalent_risk equivalent_risks sampled_terms score trajectories",
            "model": "Moments Problem Spectrum descend generator setting_flags teacher_flags",
            "model.checks": "MissingLibrary",
            "model.sketch": "SingularProblem",
            "planning.budget": "Allocation",
            "planning.corollary": "corollary",
            "planning.program": "program",
            "planning.search": "FinitePlan",
        }.items()
        for name in names.split()
    },
}
"""Names of `seqlaw`."""
