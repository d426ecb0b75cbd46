#!/usr/bin/env bash
# Makes .venv with hkbench and what it needs; with the argument `dev` also what the tests need. Safe to run again.
#
# PyTorch: the interpreter's own is used when it is 2.4 or newer. Otherwise one is installed by the hardware:
#   AMD GPU     TORCH_INDEX has to name the package index of PyTorch's ROCm builds for the ROCm at hand (PyTorch's
#               "Get Started" page shows its address); ROCm's own containers have torch already
#   NVIDIA GPU  the newest torch of the configured index, which brings CUDA
#   no GPU      torch 2.13.0; give TORCH_INDEX=<index of the CPU builds> to spare a Linux machine the CUDA libraries
# PYTHON names another interpreter, TORCH another requirement (TORCH='torch==2.11.0').
#
# HipKittens' headers (12 MB) are put into .hipkittens, see scripts/install_hipkittens.py; without network the rest is made.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

find_python() {
    local python
    for python in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$python"
            return
        fi
    done
    fail "no Python 3.11 or newer was found; install one, or name it: PYTHON=/path/to/python3 make setup"
}

has_torch() { # a torch that is new enough
    "$1" -c '
import sys, importlib.metadata as m
try:
    version = m.version("torch")
except m.PackageNotFoundError:
    sys.exit(1)
sys.exit(tuple(int(p) for p in version.split("+")[0].split(".")[:2]) < (2, 4))' 2>/dev/null
}

torch_requirement() {
    if [ -n "${TORCH:-}" ]; then
        echo "$TORCH"
    elif [ -e /dev/kfd ] || [ -d /opt/rocm ]; then
        [ -n "${TORCH_INDEX:-}" ] || fail "this machine has ROCm, and a plain torch would bring CUDA: give the index of \
PyTorch's ROCm builds, TORCH_INDEX=<address> make setup, or use an interpreter that has torch: PYTHON=<path>"
        echo torch
    elif command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; then
        echo torch
    else
        echo torch==2.13.0
    fi
}

rocm_version() { # "7.2.1-43" -> "7.2.1"; nothing where there is no ROCm. The places of hkbench/rocm.py, in its order
    local root file
    for root in ${ROCM_HOME:+"$ROCM_HOME"} ${ROCM_PATH:+"$ROCM_PATH"} /opt/rocm; do
        { # the last two are where ROCm is from 7.14 on
            echo "$root/.info/version"
            echo "$root/core/.info/version"
            printf '%s\n' "$root"/core-*/.info/version | sort -rV
        } | while read -r file; do
            if [ -r "$file" ]; then
                sed -n 's/^\([0-9][0-9]*\.[0-9][0-9]*\(\.[0-9][0-9]*\)\{0,1\}\).*/\1/p;q' "$file"
            fi
        done
    done | sed -n 1p # reads all: a closed pipe would end the script
}

hipkittens() { # HipKittens' headers; needed by backend hipkittens alone
    .venv/bin/python scripts/install_hipkittens.py >/dev/null ||
        printf 'setup: backend hipkittens cannot be used yet; the rest can\n' >&2
}

wanted="${1:-}"
stamp=.venv/.hkbench-setup
rocm="$(rocm_version)"
state="$(cksum pyproject.toml scripts/setup.sh) ${TORCH:-} ${TORCH_INDEX:-} ROCm $rocm"
if [ -f "$stamp" ] && { [ "$(cat "$stamp")" = "$state dev" ] || [ "$(cat "$stamp")" = "$state $wanted" ]; }; then
    hipkittens
    exit 0
fi

python="$(find_python)"
command -v g++ >/dev/null || printf 'setup: no g++ was found; C++ candidates (and make demo) need it\n' >&2
if [ ! -x .venv/bin/python ]; then
    # A torch that is there already (a ROCm container's, a cluster's) is the one that fits the machine.
    if has_torch "$python"; then
        "$python" -m venv --system-site-packages .venv
        # In many ROCm images that Python is itself a virtual environment, whose packages the new one does not see.
        has_torch .venv/bin/python || "$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
            >"$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/image.pth"
    else
        "$python" -m venv .venv || fail "python3 -m venv failed; on Debian and Ubuntu: apt-get install python3-venv"
    fi
fi
pip=(.venv/bin/python -m pip --disable-pip-version-check install -q)
if ! has_torch .venv/bin/python; then
    requirement="$(torch_requirement)"
    echo "setup: installing $requirement"
    "${pip[@]}" ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "$requirement"
fi
echo "setup: installing hkbench${wanted:+ with what the tests need}"
"${pip[@]}" -e ".${wanted:+[$wanted]}"

# AMD SMI tells hkbench doctor and the monitor what an AMD GPU is and does. Each release belongs to a line of ROCm.
if [ -n "$rocm" ]; then
    "${pip[@]}" "amdsmi==$(echo "$rocm" | cut -d. -f1,2).*" ||
        printf 'setup: no amdsmi for ROCm %s could be installed; hkbench doctor asks torch alone\n' "$rocm" >&2
fi
hipkittens
echo "$state $wanted" >"$stamp"
