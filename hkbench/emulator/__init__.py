"""An emulated AMD device: the machine code of gfx942 and gfx950, executed and checked on the CPU.

`program.Program` reads a code object, `executor.launch` executes a kernel of it; docs/emulator.md says how.
"""
