"""Copy prompts/ and problems/ into the wheel; everything else about the package is in pyproject.toml."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
DATA = ("problems", "prompts")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


class BuildWithData(build_py):
    """Add hkbench/_data, where hkbench/shipped.py looks; an editable install reads the folders of the checkout."""

    def run(self) -> None:
        """Build the packages, then copy the folders beside them."""
        super().run()
        if not self.editable_mode:
            for name in DATA:
                target = Path(self.build_lib) / "hkbench" / "_data" / name
                shutil.rmtree(target, ignore_errors=True)  # of an earlier build
                shutil.copytree(ROOT / name, target, ignore=LEFT_OUT)


setup(cmdclass={"build_py": BuildWithData})
