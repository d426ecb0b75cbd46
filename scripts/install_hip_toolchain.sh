#!/usr/bin/env bash
# Sets up a HIP compiler for gfx942 and gfx950 on a machine without ROCm and without an AMD GPU.
#
#   scripts/install_hip_toolchain.sh [PREFIX]        default PREFIX: .hip in the repository's root
#
# The compiler is clang (21 or newer) with lld, installed from the machine's own package suites. HIP's headers and
# the device libraries come from the distribution's newest suites: they are only unpacked below PREFIX, never
# installed, and are fetched with a private apt configuration, so the machine's own package sources stay as they are.
# On Debian these are unstable and experimental, whichever has the newer version: HipKittens wants HIP 7.0 or newer.
# PREFIX then looks like a ROCm folder: bin/hipcc, include/, lib/. Delete it to start again.
# What it proves, and what it does not: docs/toolchain.md.
set -euo pipefail

REPO="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
PREFIX="${1:-$REPO/.hip}"
STAMP_NAME=.complete
LAYOUT=3 # raise it when an older prefix must be made anew

# Headers that a HIP extension for PyTorch includes; the first line is needed, the others are taken where they exist.
NEEDED=(libamdhip64-dev libhsa-runtime-dev libamd-comgr-dev librocprim-dev librocthrust-dev)
WANTED=(libhipcub-dev libhipblas-dev libhipblas-common-dev libhipblaslt-dev librocblas-dev libhipsparse-dev
    librocsparse-dev libhipsolver-dev librocsolver-dev libhiprand-dev librocrand-dev)

say() { printf 'install_hip_toolchain: %s\n' "$*"; }
fail() {
    printf 'install_hip_toolchain: %s\n' "$*" >&2
    exit 1
}

find_clang() { # prints the version of a clang++ that has its linker and bundler
    local version
    for version in 23 22 21; do
        if command -v "clang++-$version" >/dev/null && [ -x "/usr/lib/llvm-$version/bin/lld" ] &&
            [ -x "/usr/lib/llvm-$version/bin/clang-offload-bundler" ]; then
            echo "$version"
            return
        fi
    done
    return 1
}

install_clang() {
    find_clang >/dev/null && return
    [ "$(id -u)" -eq 0 ] || fail "installing clang needs root: run it as root, or install clang-22, clang-tools-22, lld-22 and llvm-22 first"
    local version
    apt-get update -qq || say "apt-get update reported an error; going on with the package lists there are"
    for version in 22 21; do
        [ -n "$(apt-cache madison "clang-$version")" ] || continue
        say "installing clang-$version, clang-tools-$version, lld-$version, llvm-$version"
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o DPkg::Lock::Timeout=300 --no-install-recommends --no-upgrade \
            "clang-$version" "clang-tools-$version" "lld-$version" "llvm-$version" g++ >"$WORK/install.log" 2>&1 ||
            fail "apt-get install failed: $(tail -n 5 "$WORK/install.log")"
        return
    done
    fail "this machine's package sources have neither clang-22 nor clang-21 (gfx950 needs one of them);" \
        "add the suite that carries it (Debian 12: its security suite), or install ROCm"
}

write_private_apt() { # suites, components, origin: options for an apt that knows only these suites of the machine's mirror
    local mirror suite origin="$3" keyring="/usr/share/keyrings/${3,,}-archive-keyring.gpg" signed=""
    mirror="$(apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' |
        awk -F'|' -v o="$origin" '$1 == o && $2 == o { print $3; exit }')"
    [ -n "$mirror" ] || fail "no $origin mirror among this machine's apt sources (run apt-get update first)"
    [ -f "$keyring" ] && signed="[signed-by=$keyring] "
    mkdir -p "$WORK/apt/lists/partial" "$WORK/apt/cache/archives/partial" "$WORK/debs"
    : >"$WORK/apt/status"
    for suite in $1; do echo "deb $signed$mirror $suite $2"; done >"$WORK/apt/sources.list"
    # apt ranks experimental below every other suite; here the newest version of a package is wanted.
    printf 'Package: *\nPin: release n=*\nPin-Priority: 500\n' >"$WORK/apt/preferences"
    APT=(-qq -o "Dir::Etc::sourcelist=$WORK/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State=$WORK/apt"
        -o "Dir::Etc::preferences=$WORK/apt/preferences" -o Dir::Etc::preferencesparts=/dev/null
        -o "Dir::State::lists=$WORK/apt/lists" -o "Dir::State::status=$WORK/apt/status"
        -o "Dir::Cache=$WORK/apt/cache" -o APT::Sandbox::User= -o Acquire::Languages=none
        # A mirror's snapshot of a rolling suite is often past its validity date; its signature is still checked.
        -o Acquire::Check-Valid-Until=false)
}

unpack_packages() { # the HIP headers, the runtime to link with, and the device libraries
    local origin suites components package device_libs runtime chosen=()
    # shellcheck source=/dev/null
    . /etc/os-release
    case "${ID:-}" in
    debian) origin=Debian suites="unstable experimental" components=main ;;
    ubuntu) origin=Ubuntu suites="${VERSION_CODENAME:?}" components="main universe" ;;
    esac
    write_private_apt "$suites" "$components" "$origin"
    say "reading the package lists of $origin $suites"
    if ! apt-get "${APT[@]}" update; then
        [ "$origin" = Debian ] || fail "cannot read the package list of $origin $suites from this machine's mirror"
        say "this mirror does not have both of $suites: taking unstable alone"
        suites=unstable
        write_private_apt "$suites" "$components" "$origin"
        apt-get "${APT[@]}" update || fail "cannot read the package list of $origin $suites from this machine's mirror"
    fi
    available() { [ -n "$(apt-cache "${APT[@]}" madison "$1" 2>/dev/null)" ]; }
    first_available() { # prints the first of these packages that there is
        local one
        for one in "$@"; do
            if available "$one"; then echo "$one" && return; fi
        done
        return 1
    }
    device_libs="$(first_available rocm-device-libs-22 rocm-device-libs-21)" ||
        fail "$origin $suites has no rocm-device-libs-22 or -21"
    runtime="$(first_available libamdhip64-7 libamdhip64-6)" || fail "$origin $suites has no libamdhip64-7 or -6"
    chosen=("$runtime")
    for package in "${NEEDED[@]}"; do
        available "$package" || fail "$origin $suites has no package $package"
        chosen+=("$package")
    done
    for package in "${WANTED[@]}"; do
        if available "$package"; then chosen+=("$package"); else say "$package is not in $origin $suites: left out"; fi
    done
    say "unpacking ${#chosen[@]} packages and $device_libs below $PREFIX"
    (cd "$WORK/debs" && apt-get "${APT[@]}" download "$device_libs" "${chosen[@]}") || fail "a download failed"
    for package in "$WORK"/debs/*.deb; do dpkg -x "$package" "$WORK/root"; done
    PACKAGES="$(cd "$WORK/debs" && ls ./*.deb | sed 's|^\./||; s/%3a/:/')"
}

arrange() { # gives what was unpacked the shape of a ROCm folder
    local version="$1" bitcode multiarch wave=""
    mkdir -p "$WORK/rocm/bin"
    mv "$WORK"/root/usr/* "$WORK/rocm/"
    bitcode="$(cd "$WORK/rocm" && find . -name ocml.bc -printf '%h\n' -quit)"
    [ -n "$bitcode" ] || fail "the device libraries hold no ocml.bc"
    ln -s "$bitcode" "$WORK/rocm/bitcode"
    multiarch="$(cd "$WORK/rocm" && find lib -name libamdhip64.so -printf '%h\n' -quit)"
    [ -n "$multiarch" ] || fail "libamdhip64-dev holds no libamdhip64.so"
    # HIP 6 asks for the width of a wave by a macro that clang 22 does not set.
    case "$PACKAGES" in *libamdhip64-6_*) wave=" -D__AMDGCN_WAVEFRONT_SIZE=64" ;; esac
    cat >"$WORK/rocm/bin/hipcc" <<WRAPPER
#!/bin/sh
# clang++ told where this folder's HIP headers, runtime and device libraries are; -O3 is what ROCm's hipcc starts from.
root="\$(dirname "\$(dirname "\$(readlink -f "\$0")")")"
# To ROCm's hipcc a .cu file is HIP, too; PyTorch leaves that name to a source that has nothing to be hipified.
language=
for word; do
    case "\$word" in
    -x*) language= && break ;;
    *.cu | *.cuh) language="-x hip" ;;
    esac
done
exec /usr/lib/llvm-$version/bin/clang++ --rocm-path="\$root" --hip-path="\$root" --rocm-device-lib-path="\$root/bitcode" \\
    -Wno-unused-command-line-argument$wave -isystem "\$root/include" -L"\$root/$multiarch" \\
    -O3 \$language "\$@"
WRAPPER
    chmod +x "$WORK/rocm/bin/hipcc"
}

check() { # a compiler that cannot compile is not finished
    local arch
    cat >"$WORK/check.hip" <<'KERNEL'
#include <hip/hip_runtime.h>
#include <hip/hip_bf16.h>
__global__ void scale(float* x, float a) { x[blockIdx.x * blockDim.x + threadIdx.x] *= expf(a); }
void run(float* x, hipStream_t stream) { scale<<<1, 64, 0, stream>>>(x, 2.0f); }
KERNEL
    for arch in gfx942 gfx950; do
        "$WORK/rocm/bin/hipcc" -x hip --offload-arch="$arch" -fPIC -shared -O2 "$WORK/check.hip" -o "$WORK/check.so" \
            >"$WORK/check.log" 2>&1 || fail "the new compiler does not compile for $arch: $(head -n 5 "$WORK/check.log")"
    done
}

main() {
    local hipcc
    for hipcc in "$(command -v hipcc)" /opt/rocm/bin/hipcc /opt/rocm/core/bin/hipcc /opt/rocm/core-*/bin/hipcc; do
        if [ -x "$hipcc" ]; then
            say "ROCm is installed ($hipcc): nothing to do"
            return
        fi
    done
    if [ "$(head -n 1 "$PREFIX/$STAMP_NAME" 2>/dev/null)" = "layout $LAYOUT" ] && "$PREFIX/bin/hipcc" --version >/dev/null; then
        say "already there: $PREFIX"
        return
    fi
    [ "$(uname -m)" = x86_64 ] || fail "only x86_64 machines are supported"
    [ -f /etc/debian_version ] && command -v apt-get >/dev/null && command -v dpkg >/dev/null ||
        fail "this is not a Debian or Ubuntu machine: install ROCm, or clang 21+ with HIP's headers, and set ROCM_HOME"
    if [ -e "$PREFIX" ] && [ ! -e "$PREFIX/bin/hipcc" ] && ls -A "$PREFIX" | grep -qv '^\.new\.'; then
        fail "$PREFIX exists and is not a HIP prefix of this script; name another folder"
    fi
    mkdir -p "$PREFIX"
    PREFIX="$(cd "$PREFIX" && pwd)"
    WORK="$(mktemp -d "$PREFIX/.new.XXXXXX")"
    trap 'rm -rf "$WORK"' EXIT
    install_clang
    local version
    version="$(find_clang)" || fail "clang was installed, but its clang++, lld or clang-offload-bundler is not there"
    unpack_packages
    arrange "$version"
    check
    rm -rf "${PREFIX:?}/$STAMP_NAME" "$PREFIX"/{bin,bitcode,include,lib,share}
    mv "$WORK"/rocm/* "$PREFIX/"
    { echo "layout $LAYOUT" && echo "clang $version" && echo "$PACKAGES"; } >"$WORK/$STAMP_NAME"
    mv "$WORK/$STAMP_NAME" "$PREFIX/"
    say "done: $PREFIX/bin/hipcc (clang $version)"
}

main "$@"
