#!/usr/bin/env python3
"""Install HipKittens' headers where there is no checkout of it: those of the Python package hk-dsl, with its licence.

    scripts/install_hipkittens.py [FOLDER]        default FOLDER: .hipkittens in the repository's root

The wheel (12 MB, MIT licence) comes from pip's configured package index at a fixed version and hash. Its headers and
licence are unpacked and nothing of it is installed or imported. `make setup` runs this script. A checkout that
HIPKITTENS_ROOT or THUNDERKITTENS_ROOT names takes the place of these headers.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hipkittens_build.headers import INSTALLED, STAMP, content

PACKAGE, VERSION = "hk-dsl", "0.8.0"
#: Of the wheel for Python 3.12. That for 3.10 has the same headers; which Python runs here makes no difference.
SHA256 = "c0530440a450b0bbebbd0a827e32b7d2778de0fb8e0b261bc168d20d5ec6ef4c"
WHEEL_OF = ("--python-version", "3.12", "--platform", "manylinux_2_35_x86_64", "--only-binary", ":all:", "--no-deps")
HEADERS, LICENCES = "hk/include/", f"hk_dsl-{VERSION}.dist-info/licenses/"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=INSTALLED, help="default: %(default)s")
    folder: Path = parser.parse_args().folder
    if is_complete(folder):
        say(f"already there: {folder} ({PACKAGE} {VERSION})")
        return 0
    if folder.exists() and not (folder / STAMP).is_file() and any(folder.iterdir()):
        return failed(f"{folder} exists and was not made by this script; name another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}-", dir=folder.parent) as work:
        made = Path(work) / "made"
        problem = fetch(Path(work)) or unpack(Path(work), made)
        if problem:
            return failed(f"{problem}\nWithout it: clone HipKittens and set HIPKITTENS_ROOT to the checkout")
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
    say(f"done: {folder}/include ({PACKAGE} {VERSION})")
    return 0


def is_complete(folder: Path) -> bool:
    """Return whether the folder holds this version's headers as they were unpacked."""
    stamp, include = folder / STAMP, folder / "include"
    return stamp.is_file() and include.is_dir() and stamp.read_text(encoding="utf-8") == stamp_of(include)


def stamp_of(include: Path) -> str:
    return f"{PACKAGE} {VERSION}\nsha256:{content(include)}\n"


def fetch(work: Path) -> str | None:
    """Download the wheel into `work`; pip compares the hash. Return what went wrong."""
    wanted = work / "wanted.txt"
    wanted.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--require-hashes"]
    command += [*WHEEL_OF, "--dest", str(work), "--requirement", str(wanted)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
    return f"pip could not download {PACKAGE} {VERSION} ({sys.executable}): {' '.join(said[-3:]) or 'no message'}"


def unpack(work: Path, made: Path) -> str | None:
    """Unpack headers and licences of the wheel in `work` into `made`. Returns what went wrong."""
    wheels = sorted(work.glob("*.whl"))
    if len(wheels) != 1:
        return f"pip left {len(wheels)} wheels of {PACKAGE}; one was expected"
    with ZipFile(wheels[0]) as wheel:
        for name in wheel.namelist():
            for start, place in ((HEADERS, "include"), (LICENCES, "licenses")):
                if name.startswith(start) and not name.endswith("/"):
                    path = made / place / name.removeprefix(start)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(wheel.read(name))
    if not (made / "include" / "kittens.cuh").is_file():
        return f"{wheels[0].name} holds no {HEADERS}kittens.cuh"
    (made / STAMP).write_text(stamp_of(made / "include"), encoding="utf-8")
    return None


def say(text: str) -> None:
    print(f"install_hipkittens: {text}")


def failed(text: str) -> int:
    print(f"install_hipkittens: {text}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
