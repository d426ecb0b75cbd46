"""Every mnemonic that the executor knows has a definition that is independent of it.

`python -m pytest tests/unit/emulator/proof/test_proof_mnemonics.py -s` prints which.
"""

from __future__ import annotations

from unit.emulator.proof import definitions, machine


def test_every_mnemonic_has_an_independent_definition() -> None:
    print(definitions.report(machine.mnemonics()))  # noqa: T201
    without = [mnemonic for mnemonic in machine.mnemonics() if not definitions.of(mnemonic)]
    assert not without, f"{len(without)} mnemonics have no definition but the executor's own: {' '.join(without)}"


def test_a_mnemonic_without_a_definition_is_seen() -> None:
    assert definitions.of("v_made_up_u32") == []
    assert "NONE" in definitions.report(["v_made_up_u32"])
