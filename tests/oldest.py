"""The oldest versions that pyproject.toml allows, as constraints of pip, on standard output."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def pins(project):
    """`name==lower bound` of what the package and its extra `all` need; the tools of `dev` stay new."""
    extras = project["optional-dependencies"]
    (everything,) = extras["all"]
    named = re.fullmatch(r"seqlaw\[(.+)\]", everything).group(1).split(",")
    needed = {need for group in (project["dependencies"], *map(extras.get, named)) for need in group}
    return sorted(re.fullmatch(r"([\w-]+)>=([\w.]+)", need).expand(r"\1==\2") for need in needed)


if __name__ == "__main__":
    print(*pins(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]), sep="\n")
