"""Run the installed PyTorch's own hipify in a process of its own, without importing PyTorch.

    python hipify_worker.py TORCH_FOLDER FOLDER FILE...      an extension's sources, beside the originals
    python hipify_worker.py TORCH_FOLDER FOLDER --headers    a copy of PyTorch's c10/cuda and ATen/cuda headers

Imports nothing of hkbench. On its last line it writes a JSON object: source path -> path of what it became.
"""

from __future__ import annotations

import importlib
import json
import sys
import types
from pathlib import Path
from typing import Any


def _load_hipify(torch_folder: Path) -> Any:
    """Load torch.utils.hipify.hipify_python beside an empty package (torch itself takes seconds)."""
    package = types.ModuleType("hipify")
    package.__path__ = [str(torch_folder / "utils" / "hipify")]
    sys.modules["hipify"] = package
    return importlib.import_module("hipify.hipify_python")


def main(arguments: list[str]) -> None:
    torch_folder, folder, *files = arguments
    hipify = _load_hipify(Path(torch_folder))
    if files == ["--headers"]:
        result = hipify.hipify(project_directory=folder, output_directory=folder, show_progress=False)
    else:
        # The arguments that torch.utils.cpp_extension gives it for an extension without include folders of its own.
        result = hipify.hipify(
            project_directory=folder,
            output_directory=folder,
            extra_files=files,
            ignores=[f"{torch_folder}/*"],
            show_progress=False,
            is_pytorch_extension=True,
            hipify_extra_files_only=True,
        )
    sys.stdout.write("\n" + json.dumps({path: entry.hipified_path for path, entry in result.items()}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
