"""A page in headless Chromium: its document after its scripts have run, and what its console said."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html import escape, unescape
from importlib.resources import files
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

DARK = "--blink-settings=preferredColorScheme=0"
SAY = "document.body.dataset.found = JSON.stringify"  #: how a script of `asked` hands over what it found


def look(page: Path, *flags: str) -> tuple[str, list[str]]:
    """Return the document as text, and the lines of the console. `page` is opened from the disk."""
    assert CHROMIUM is not None
    profile = page.parent / f"profile-{page.stem}"
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    command += [f"--user-data-dir={profile}", "--window-size=1280,1200", "--enable-logging=stderr", "--v=0"]
    command += ["--virtual-time-budget=4000", *flags, "--dump-dom", page.resolve().as_uri()]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


def framed(html: str, width: int) -> str:
    """A page that shows the other one in a frame of this width and takes over what it found: windows end at 500 px."""
    take = "document.body.dataset.found = document.querySelector('iframe').contentDocument.body.dataset.found"
    frame = f'<iframe width="{width}" height="1000" style="border: 0" srcdoc="{escape(html)}"></iframe>'
    return f"<!DOCTYPE html><body>{frame}<script>setTimeout(() => {{ {take}; }}, 2000);</script></body>"


def with_script(html: str, script: str) -> str:
    """Return a copy of the page that may run one script more, at its end."""
    free = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", html)
    return free.replace("</body>", f"<script>{script}</script></body>")


def asked(page: Path, script: str, *flags: str, width: int = 1280) -> Any:
    """Return what a script at the end of a copy of the page puts into the document."""
    copy = page.with_name("copy.html")
    html = with_script(page.read_text(), script)
    copy.write_text(html if width == 1280 else framed(html, width))
    document, console = look(copy, *flags)
    assert console == []
    found = re.search(r'data-found="([^"]*)"', document)
    assert found is not None, document[-2000:]
    return json.loads(unescape(found[1]))


def violations(page: Path, *flags: str) -> Any:
    """Return what axe-core finds with all details opened: each rule and its first elements.

    $HKBENCH_AXE: another axe.min.js than that of axe-core-python.
    """
    named = os.environ.get("HKBENCH_AXE")
    axe = (Path(named) if named else files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    axe = axe.replace("</script", "<\\/script")
    script = f"""{axe};
    for (const one of document.querySelectorAll('details')) one.open = true;
    axe.run().then((found) => {{ {SAY}(found.violations.map((one) =>
      [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))])); }});"""
    return asked(page, script, *flags)
