"""Every error that hkbench raises on purpose.

HkbenchError
  UsageError               the command line or a setting is wrong                       exit 64
    ConfigurationError     a file that configures the run is wrong (prompts, run.json)
    RunMismatch            the results folder belongs to a run with other settings
  InputMissing             a file or folder that was named does not exist               exit 66
    ProblemError           a problem file cannot be used
    ReplayMissing          there is no recorded reply for what was asked
  Unavailable              a device or a service is not there                           exit 69
    DeviceUnavailable      no such device, or it stopped answering
    ToolchainUnavailable   a compiler that the backend needs is not installed
    ProfileUnreadable      a profiler's output is cut off or damaged (hkbench/profile/tables.py)
    ClusterUnavailable     no cluster is there, or it lets everybody in (hkbench/cluster/address.py)
    NodesDiffer            its nodes do not judge alike (hkbench/cluster/node.py)
    IsolationUnavailable   candidates cannot be confined here as far as was asked for
    ModelUnavailable       the model endpoint refused, or kept failing
      AccessRefused        it refuses the key, or the quota is used up: it will serve no other call either
      ServiceOutage        it gave no answer for as long as --outage allows
  RunStopped               a run was asked to stop before its plan ended; it can be resumed
    BudgetReached          --max-cost, --max-tokens or --max-time is used up            exit 75
    TooManyFailures        of the service or the machine, for --fail-on-error           exit 69
    ServiceLost            the service answered before, and serves no call any more     exit 69
    Interrupted            Ctrl-C or SIGTERM                                            exit 130
  InternalError            hkbench itself went wrong                                    exit 70
    WorkerLost             a trusted worker process died or broke its protocol

A candidate that fails is not an error: it is a `Verdict`. Each message names the thing that failed and the
next step.
"""

from __future__ import annotations

import traceback
from typing import ClassVar

_TRACE_LIMIT = 8000  #: characters kept from the end of a traceback


class HkbenchError(Exception):
    """Base of all errors raised on purpose; `exit_code` is what the command line returns for it."""

    exit_code: ClassVar[int] = 70


class UsageError(HkbenchError):
    """The command line or a setting is wrong."""

    exit_code = 64


class ConfigurationError(UsageError):
    """A configuration file is wrong."""


class RunMismatch(UsageError):
    """The results folder holds a run that was started with other settings."""


class InputMissing(HkbenchError):
    """A file or folder that was named does not exist."""

    exit_code = 66


class ProblemError(InputMissing):
    """A problem file cannot be used."""


class ReplayMissing(InputMissing):
    """No recorded reply answers the request."""


class Unavailable(HkbenchError):
    """A device or a service is not there."""

    exit_code = 69


class DeviceUnavailable(Unavailable):
    """The device does not exist or stopped answering."""


class DeviceMemoryLacking(DeviceUnavailable):
    """Too little of the device's memory is free."""


class ToolchainUnavailable(Unavailable):
    """A compiler that the backend needs is not installed."""


class IsolationUnavailable(Unavailable):
    """Candidates cannot be confined here as far as --require-isolation asks for."""


class ModelUnavailable(Unavailable):
    """The model endpoint refused the request or kept failing."""

    status: int | None = None  #: the HTTP status that it refused with


class AccessRefused(ModelUnavailable):
    """The service refuses the key, or its quota is used up: every other call would be refused likewise."""


class ServiceOutage(ModelUnavailable):
    """The service gave no answer for as long as an outage is waited out."""

    def __init__(self, message: str, *, total: bool = True) -> None:
        """Take `total`: no call of this client was answered meanwhile, so that others would wait in vain, too."""
        super().__init__(message)
        self.total = total


class RunStopped(HkbenchError):
    """A run was asked to stop before its plan ended. Nothing failed; the same command resumes it."""

    exit_code = 75


class BudgetReached(RunStopped):
    """What the run may spend is spent."""


class TooManyFailures(RunStopped):
    """The service or the machine failed more often than --fail-on-error allows."""

    exit_code = 69


class ServiceLost(RunStopped):
    """The service answered before and serves no call any more: the key, the quota or an outage."""

    exit_code = 69


class Interrupted(RunStopped):
    """Whoever started the run asked it to end, with Ctrl-C or SIGTERM."""

    exit_code = 130


class InternalError(HkbenchError):
    """hkbench itself went wrong."""


class WorkerLost(InternalError):
    """A trusted worker process died or broke its protocol."""


def unexpected(doing: str, error: Exception) -> InternalError:
    """Wrap an exception that nobody foresaw while hkbench was `doing` something, so that only this work ends by it."""
    trace = "".join(traceback.format_exception(error))[-_TRACE_LIMIT:]
    text = f"{doing} failed by a fault of hkbench, please report it: {error!r}\n{trace}"
    return InternalError(text.encode(errors="backslashreplace").decode())  # it may quote what UTF-8 cannot hold
