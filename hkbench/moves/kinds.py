"""The nine kinds of moves: what each means in each language, for a model and by rule.

The names are those of Monte Carlo graph search over kernels; a further move is a `MoveKind` in `KINDS`.
"""

from __future__ import annotations

from functools import partial

from hkbench.moves import arithmetic, launch_values, loads, loops
from hkbench.moves.base import MoveKind, Rule, Site, without_overlaps


def _any_of(*rules: Rule) -> Rule:
    def found(source: str, backend: str) -> list[Site]:
        return [site for rule in rules for site in rule(source, backend)]

    return found


def _guidance(cpp: str, triton: str, cuda: str, hip: str, hipkittens: str | None = None) -> dict[str, str]:
    told = {"cpp": cpp, "triton": triton, "cuda": cuda, "hip": hip, "hipkittens": hipkittens or hip}
    return {backend: text for backend, text in told.items() if text}


KINDS = (
    MoveKind(
        "enable_async_pipeline",
        "fetch the next data while the present ones are worked on",
        _guidance(
            cpp="Fetch ahead: prefetch the next block of each input, and keep several independent sums under way.",
            triton="Pipeline the loop over blocks: set num_stages, and leave loads free of dependences on the sums.",
            cuda="Fetch the next tile with cp.async into a second shared-memory buffer while the present one is used.",
            hip="Fetch the next tile into registers or a second LDS buffer before the barrier, and store it after.",
            hipkittens="Load the next tile into a second shared tile before the products of the present one begin.",
        ),
        _any_of(partial(launch_values.of_move, "enable_async_pipeline"), loops.unrolled),
    ),
    MoveKind(
        "vectorize_global_loads",
        "read and write several values with each instruction",
        _guidance(
            cpp="Let the innermost loop run over contiguous values, with vectors: omp simd, aligned and restrict.",
            triton="Make blocks contiguous in the innermost dimension, and say so: tl.max_contiguous, tl.multiple_of.",
            cuda="Read and write float4 (or eight halves as one uint4) where addresses are aligned to 16 bytes.",
            hip="Read and write 16 bytes a lane (float4), so that the compiler emits global_load_dwordx4.",
        ),
        _any_of(loops.vectors, arithmetic.instruction_sets),
    ),
    MoveKind(
        "switch_to_mma_or_wgmma",
        "let matrix units do the products",
        _guidance(
            cpp="",
            triton="Write products of blocks as tl.dot, with operands and input precision that tensor cores take.",
            cuda="Use tensor cores for products: wmma fragments, or mma.sync on tiles in shared memory.",
            hip="Use matrix cores for products: the __builtin_amdgcn_mfma_* instruction of the operands' type.",
            hipkittens="Use mma_AB, mma_ABt or mma_AtB on register tiles for every product.",
        ),
        arithmetic.dot_precision,
    ),
    MoveKind(
        "pad_tail_and_mask",
        "take conditions out of the main loop",
        _guidance(
            cpp="Let the main loop run over whole blocks without conditions, and a second one over what is left.",
            triton="Mask only the last block: let the loop over whole blocks load without a mask.",
            cuda="Let whole tiles run without bounds checks, and a last, guarded one handle what is left.",
            hip="Let whole tiles run without bounds checks, and a last, guarded one handle what is left.",
        ),
    ),
    MoveKind(
        "change_block_sizes",
        "work on larger or smaller blocks, with more or fewer threads",
        _guidance(
            cpp="Change the sizes of the blocks that loops work on, so that what is used again stays in a cache.",
            triton="Change the block sizes and num_warps.",
            cuda="Change the sizes of tiles and of thread blocks, and how many results each thread computes.",
            hip="Change the sizes of tiles and of workgroups (multiples of 64), and the results of each thread.",
            hipkittens="Change the sizes of shared and register tiles, and the number of warps.",
        ),
        partial(launch_values.of_move, "change_block_sizes"),
    ),
    MoveKind(
        "cache_policy_cg",
        "keep in a cache what is used again, and nothing else",
        _guidance(
            cpp="Store results that are not read again past the caches: _mm256_stream_ps and its like.",
            triton='Give loads a cache_modifier (".ca", ".cg") or an eviction_policy, by what is used again.',
            cuda="Read constant data through __ldg, __ldcg or __ldcs; set an L2 window for what is used again.",
            hip="Use __builtin_nontemporal_load and _store for data that are used once.",
        ),
        loads.caches,
    ),
    MoveKind(
        "avoid_atomics_reduce",
        "add up locally before adding globally",
        _guidance(
            cpp="Give each thread sums of its own, and add them once at the end.",
            triton="Reduce within a block (tl.sum) and write partial results, which a second kernel adds up.",
            cuda="Reduce with warp shuffles and shared memory, and do at most one atomic a block.",
            hip="Reduce with DPP or shuffles within the wavefront and with LDS, and do at most one atomic a workgroup.",
        ),
    ),
    MoveKind(
        "grouped_gemm_colmajor",
        "change the order of the work, so that neighbours share data",
        _guidance(
            cpp="Change the order of loops and how their turns go to threads, so that neighbours share what is cached.",
            triton="Number blocks in groups (GROUP_M), so that blocks that run together share rows and columns.",
            cuda="Number thread blocks in groups of rows, so that those that run together share tiles in L2.",
            hip="Number workgroups so that those on the same XCD (each eighth) share tiles in its L2 cache.",
        ),
        _any_of(partial(launch_values.of_move, "grouped_gemm_colmajor"), loops.order, loops.threads),
    ),
    MoveKind(
        "softmax_math_fusion",
        "fuse and approximate what goes on between loads and stores",
        _guidance(
            cpp="Fuse passes over the same row, and let exponentials be vectorised.",
            triton="Fuse passes (online softmax), and use exp2 with a scale that is folded into the operands.",
            cuda="Fuse passes (online softmax), and use __expf or exp2f with a scale that is folded in.",
            hip="Fuse passes (online softmax), and use __expf or exp2f with a scale that is folded in.",
        ),
        arithmetic.exponentials,
    ),
)
MOVES: dict[str, MoveKind] = {kind.name: kind for kind in KINDS}


def sites_of(source: str, backend: str) -> list[Site]:
    """Find all places where a rule can edit a candidate's source; none in one that is not Python."""
    try:
        found = [site for kind in KINDS if kind.rule is not None for site in kind.rule(source, backend)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return without_overlaps(found)
