"""Compare the outputs of the candidate's calls with what the reference computes, and keep the tolerances."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping

import torch

from hkbench.analysis import compare
from hkbench.analysis.reference import Leaves, Reference
from hkbench.evaluation import failures
from hkbench.records import Failure, FailureKind, Mismatch, Stage, Tolerance

WINDOW = 1 << 24  #: elements of an output that are held against the baseline's: more would take as long as the call


class Checker:
    """Hold outputs against the reference's."""

    def __init__(
        self,
        reference: Reference,
        native: Callable[[list[object]], Leaves],
        form: Leaves,
        rtol: Mapping[str, float] | None,
    ) -> None:
        """Hold outputs against `native`, eager's for some inputs.

        `form` has the outputs on the meta device, `rtol` the relative tolerances by dtype that were changed.
        """
        self._reference, self._native, self._form, self._rtol = reference, native, form, rtol
        self.tolerances: dict[str, Tolerance] = {}  #: by output, with the largest errors so far

    def another(self) -> Checker:
        """Return one for the outputs of somebody else."""
        return type(self)(self._reference, self._native, self._form, self._rtol)

    def check_against(
        self, got: dict[str, torch.Tensor], baseline: dict[str, torch.Tensor], inputs: list[object]
    ) -> None:
        """Compare the outputs of a timed call with the baseline's on the same inputs, which costs little.

        Of a large output a stretch of `WINDOW` elements, at a place drawn anew. Two right answers differ by two
        tolerances at most; what differs by more is compared as `check_again` does.
        """
        for path, whole in got.items():
            begin = secrets.randbelow(max(1, whole.numel() - WINDOW + 1))
            expected, answer = (tensor.reshape(-1)[begin : begin + WINDOW] for tensor in (baseline[path], whole))
            if not self._alike(path, expected, answer):
                self.check_again(got, inputs)
                return

    def _alike(self, path: str, expected: torch.Tensor, answer: torch.Tensor) -> bool:
        known = self.tolerances.get(path)
        if known is None:
            return torch.equal(expected, answer)
        return compare.worst_within(2.0, path, expected, answer, known)

    def check_again(self, got: dict[str, torch.Tensor], inputs: list[object]) -> None:
        """Compare the outputs of a timed call.

        Eager's own answer can only widen a tolerance or excuse what is not finite: it is asked for where the precise
        one does not settle it, or where what is recorded of the largest errors would change.
        """
        precise = self._reference.precise(inputs, self._form)
        widened = precise is not self._form
        if widened and all(self._plainly_right(path, precise[path], answer) for path, answer in got.items()):
            return
        native = self._native(inputs)
        self.check(got, native, precise if widened else native, None)

    def _plainly_right(self, path: str, precise: object, answer: torch.Tensor) -> bool:
        """Return whether an output passes whatever eager's own is, by an error no larger than one that is on record."""
        assert isinstance(precise, torch.Tensor)
        found, known = compare.plainly_right(precise, answer, self._rtol), self.tolerances.get(path)
        if found is None or known is None or known.error is None:
            return False
        return found.worst * compare.plain_tolerance(answer.dtype, self._rtol).rtol <= known.error

    def check(
        self,
        got: dict[str, torch.Tensor],
        native: Leaves,
        precise: Leaves,
        trial: int | None,
        known: dict[str, Tolerance] | None = None,
    ) -> tuple[float, float | None]:
        """Return the largest error over its tolerance, and the largest absolute error. Raises at a mismatch.

        `known` holds the tolerances of these very outputs, as far as they were found; it is filled in.
        """
        worst, error = 0.0, None
        known = {} if known is None else known
        for path, answer in got.items():
            result = self._compared(path, native[path], precise[path], answer, known)
            if result.mismatch is not None:
                kind = FailureKind.NOT_FINITE if result.not_finite else FailureKind.WRONG_VALUES
                raise _wrong(kind, result.mismatch, trial, result.not_finite)
            worst = max(worst, result.worst)
            if result.max_abs_error is not None:
                error = max(error or 0.0, result.max_abs_error)
        return worst, error

    def _compared(
        self, path: str, eager: object, wanted: object, answer: torch.Tensor, known: dict[str, Tolerance]
    ) -> compare.LeafResult:
        """Compare one output, and keep its tolerance."""
        assert isinstance(eager, torch.Tensor) and isinstance(wanted, torch.Tensor)
        result, tolerance = compare.compare_output(path, eager, wanted, answer, known.get(path), changed=self._rtol)
        if tolerance is not None:
            known[path] = tolerance
            self._keep(path, tolerance, result)
        return result

    def _keep(self, path: str, tolerance: Tolerance, result: compare.LeafResult) -> None:
        """Keep an output's first tolerance, and the largest errors of all comparisons that it passed."""
        known = self.tolerances.get(path, tolerance)
        error, eager = known.error, None
        if known.eager_error is not None and tolerance.eager_error is not None:
            eager = max(known.eager_error, tolerance.eager_error)
        if result.mismatch is None:
            error = max(error or 0.0, result.worst * tolerance.rtol)
        self.tolerances[path] = known.model_copy(update={"error": error, "eager_error": eager})


class AllCloseChecker(Checker):
    """Hold outputs against eager's by torch.allclose, as KernelBench does."""

    def _alike(self, path: str, expected: torch.Tensor, answer: torch.Tensor) -> bool:  # noqa: ARG002
        return compare.all_close(expected, answer, self._tolerance(expected))

    def check_again(self, got: dict[str, torch.Tensor], inputs: list[object]) -> None:
        """See `Checker.check_again`."""
        native = self._native(inputs)
        self.check(got, native, native, None)

    def _compared(
        self,
        path: str,
        eager: object,
        wanted: object,  # noqa: ARG002
        answer: torch.Tensor,
        known: dict[str, Tolerance],  # noqa: ARG002
    ) -> compare.LeafResult:
        """See `Checker._compared`; the precise output and known tolerances have no part in it."""
        assert isinstance(eager, torch.Tensor)
        self.tolerances[path] = tolerance = self._tolerance(eager)
        return compare.compare_all_close(path, eager, answer, tolerance)

    def _tolerance(self, output: torch.Tensor) -> Tolerance:
        return compare.kernelbench_tolerance_for(output.dtype, self._rtol)


def _wrong(kind: FailureKind, found: Mismatch, trial: int | None, not_finite: int = 0) -> failures.CandidateFailed:
    share = f"{found.wrong_elements} of {found.elements} elements"
    text = f"{found.output}{list(found.index)}: expected {found.expected!r}, got {found.got!r}; {share} are wrong"
    if not_finite:
        text += f", {not_finite} of them NaN or Inf"
    failure = Failure(stage=Stage.COMPARE, kind=kind, message=text, mismatch=found, trial=trial)
    return failures.CandidateFailed(failure)
