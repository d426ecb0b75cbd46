"""The rules: identifier, severity, one line of why."""

from __future__ import annotations

from dataclasses import dataclass

from hkbench.records import Finding, Severity, Track

_TEXT = 100  #: characters of the candidate that a finding quotes
ADVICE, WARNING, HARD = Severity.ADVICE, Severity.WARNING, Severity.HARD


@dataclass(frozen=True)
class StaticRule:
    """What a finding says."""

    severity: Severity
    why: str
    in_any: Severity | None = None  #: the severity in track `any`, where it is another one


RULES: dict[str, StaticRule] = {
    "unreadable": StaticRule(WARNING, "too large, too deep or too tangled to be read: nothing is known about it"),
    # The harness and the interpreter.
    "py-harness": StaticRule(HARD, "reaches for the harness: a kernel needs nothing of it"),
    "py-patch-clock": StaticRule(HARD, "replaces a clock, an event or a synchronisation"),
    "py-patch": StaticRule(WARNING, "assigns an attribute of a module that is not its own"),
    "py-gc-copies": StaticRule(HARD, "searches the interpreter's objects for tensors"),
    "py-gc-objects": StaticRule(WARNING, "walks over the interpreter's objects"),
    "py-frames": StaticRule(WARNING, "looks at the frames of its callers"),
    "py-sys-modules": StaticRule(WARNING, "reaches into the table of loaded modules"),
    "py-exec-decoded": StaticRule(HARD, "runs text that was encoded: there is no reason to hide a kernel"),
    "py-exec": StaticRule(WARNING, "runs text as Python: what it does cannot be read here"),
    "py-decode": StaticRule(ADVICE, "decodes or decompresses data"),
    "py-dynamic-name": StaticRule(ADVICE, "takes an attribute of a module by a name that is computed while running"),
    "py-source-opaque": StaticRule(ADVICE, "the C++ source is computed in a way that cannot be followed here"),
    # Work elsewhere, or later.
    "py-stream": StaticRule(ADVICE, "a stream of its own: its work has to be joined with the current stream"),
    "py-stream-unjoined": StaticRule(WARNING, "a stream of its own that is never joined: events miss its work"),
    "py-thread": StaticRule(ADVICE, "host threads: their work has to end before forward returns"),
    "py-thread-unjoined": StaticRule(
        WARNING, "a host thread that nobody waits for: work may go on after forward has returned"
    ),
    "py-process": StaticRule(WARNING, "another process: work may be done outside of what is measured"),
    "py-compiler": StaticRule(ADVICE, "calls a compiler itself"),
    "py-tensor-subclass": StaticRule(
        WARNING, "a tensor subclass can compute when it is read, after the clock has stopped"
    ),
    "py-graph": StaticRule(ADVICE, "a captured graph replays with the addresses that it was captured with"),
    "py-compile": StaticRule(WARNING, "torch.compile or torch.jit writes the kernel, not the candidate", ADVICE),
    "py-library-op": StaticRule(WARNING, "PyTorch or a library does the operation", ADVICE),
    "py-library-branch": StaticRule(
        ADVICE, "PyTorch or a library does the operation in a branch: the trace tells if it ran"
    ),
    "py-library-module": StaticRule(WARNING, "a module of torch.nn does the operation", ADVICE),
    "py-torch-math": StaticRule(ADVICE, "part of the arithmetic is left to PyTorch"),
    "py-no-kernel": StaticRule(WARNING, "no kernel of its own anywhere in the file", ADVICE),
    "py-kernel-unused": StaticRule(WARNING, "a kernel is defined and never reached from forward", ADVICE),
    "py-except-fallback": StaticRule(WARNING, "a failing kernel or build is caught and hidden"),
    # Results that are not computed.
    "py-memo-result": StaticRule(WARNING, "results are kept and handed out again"),
    "py-memo-helper": StaticRule(ADVICE, "a memoised helper: its arguments must not stand for the contents of tensors"),
    "py-memo-pointer": StaticRule(
        WARNING, "an input is recognised by address, identity or contents: answers could be replayed"
    ),
    # The machine around it.
    "py-proc": StaticRule(WARNING, "looks at /proc, where other processes and its own memory are"),
    "py-proc-mem": StaticRule(HARD, "opens the memory of a process as a file"),
    "py-ctypes": StaticRule(ADVICE, "calls native code through ctypes"),
    "py-ctypes-hook": StaticRule(WARNING, "opens the CUDA, HIP or C runtime through ctypes: the way to hook a clock"),
    "py-file": StaticRule(WARNING, "reads or writes files"),
    "py-file-write": StaticRule(ADVICE, "writes files"),
    "py-environment": StaticRule(ADVICE, "depends on the environment or the command line"),
    "py-preload": StaticRule(WARNING, "asks the dynamic linker to load something before everything else"),
    "py-network": StaticRule(WARNING, "uses the network"),
    "py-exit": StaticRule(WARNING, "ends the interpreter, or acts when it ends"),
    "py-signal": StaticRule(WARNING, "sends or handles signals"),
    "py-install": StaticRule(WARNING, "installs packages"),
    "py-time-random": StaticRule(ADVICE, "depends on time or chance"),
    "py-global-setting": StaticRule(ADVICE, "changes a setting of PyTorch for the whole process"),
    "py-low-precision": StaticRule(ADVICE, "a lower precision than the inputs may have"),
    "fast-math": StaticRule(ADVICE, "fast-math flags: NaN, infinity and denormal numbers lose their meaning"),
    "flags-plugin": StaticRule(WARNING, "a compiler plugin runs code while building"),
    "flags-outside": StaticRule(WARNING, "the build looks into folders outside of its own"),
    # C++, CUDA and HIP.
    "cpp-stream": StaticRule(ADVICE, "a stream of its own: its work has to be joined with the current stream"),
    "cpp-stream-unjoined": StaticRule(WARNING, "a stream of its own that is never joined: events miss its work"),
    "cpp-thread": StaticRule(ADVICE, "host threads, joined"),
    "cpp-thread-unjoined": StaticRule(
        WARNING, "host threads that nobody joins: work may go on after forward has returned"
    ),
    "cpp-process": StaticRule(WARNING, "starts a process"),
    "cpp-ptrace": StaticRule(HARD, "ptrace, or writing into the memory of a process"),
    "cpp-proc-mem": StaticRule(HARD, "opens the memory of a process as a file"),
    "cpp-proc": StaticRule(WARNING, "looks at /proc, where other processes and its own memory are"),
    "cpp-patch-clock": StaticRule(HARD, "defines a function in place of the runtime's clock, event or synchronisation"),
    "cpp-hook": StaticRule(WARNING, "finds symbols or changes the protection of memory: the way to hook a clock"),
    "cpp-python": StaticRule(WARNING, "calls back into the Python interpreter"),
    "cpp-harness": StaticRule(HARD, "names a module of the harness"),
    "cpp-file": StaticRule(WARNING, "reads or writes files"),
    "cpp-environment": StaticRule(ADVICE, "depends on the environment"),
    "cpp-network": StaticRule(WARNING, "uses the network"),
    "cpp-exit": StaticRule(ADVICE, "ends the process"),
    "cpp-signal": StaticRule(WARNING, "sends or handles signals, or acts when the process ends"),
    "cpp-graph": StaticRule(ADVICE, "a captured graph replays with the addresses that it was captured with"),
    "cpp-library": StaticRule(WARNING, "a vendor's library or PyTorch does the operation", ADVICE),
    "cpp-low-precision": StaticRule(ADVICE, "tells PyTorch or a library to compute with fewer bits than inputs have"),
    "cpp-static-tensor": StaticRule(ADVICE, "a tensor outlives the call: results could be kept"),
    "cpp-l2-window": StaticRule(ADVICE, "pins data in the second-level cache, which does not outlast a call"),
    "cpp-kernel-unlaunched": StaticRule(WARNING, "a kernel is defined and never launched", ADVICE),
    "cpp-asm": StaticRule(ADVICE, "inline assembly cannot be read here"),
    "cpp-asm-system": StaticRule(WARNING, "assembly that calls the kernel or takes a file in"),
    "cpp-include-outside": StaticRule(
        WARNING, "includes a file by an absolute or climbing path, or one that is computed"
    ),
    "cpp-time-random": StaticRule(ADVICE, "depends on time or chance"),
    "text-to-judge": StaticRule(WARNING, "text that speaks to a reader who grades the code"),
}


def finding(rule: str, line: int | None, text: str, track: Track) -> Finding:
    """Return a finding with the severity that the rule has in this track."""
    known = RULES[rule]
    severity = known.in_any if track is Track.ANY and known.in_any is not None else known.severity
    printable = "".join(c if c.isprintable() else " " for c in text[: 4 * _TEXT])
    return Finding(rule=rule, severity=severity, line=line, text=" ".join(printable.split())[:_TEXT], why=known.why)


def table() -> str:
    """Return the rules as a Markdown table."""
    rows = [
        f"| `{name}` | {rule.severity}{f' ({rule.in_any} in track any)' if rule.in_any else ''} | {rule.why} |"
        for name, rule in RULES.items()
    ]
    return "\n".join(["| rule | severity | why |", "| --- | --- | --- |", *rows]) + "\n"
