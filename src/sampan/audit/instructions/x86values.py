"""Where values in x86-64 code come from: a global variable, the CPU itself, a function that asks it."""

from __future__ import annotations

from iced_x86 import FlowControl, Instruction, Mnemonic, OpKind, Register, Register_, RegisterExt

from sampan.audit.instructions.binary import Binary
from sampan.audit.instructions.imports import Imports
from sampan.audit.instructions.knowledge import Knowledge
from sampan.audit.instructions.x86 import decode

_PROBE = 192  # bytes of a function that answers a question
_MOVES = frozenset((Mnemonic.MOV, Mnemonic.MOVZX, Mnemonic.MOVSX, Mnemonic.MOVSXD))
_KEEPS = frozenset((Mnemonic.AND, Mnemonic.SHR, Mnemonic.SAR, Mnemonic.SHL, Mnemonic.XOR, Mnemonic.NOT, Mnemonic.OR))
_ANSWERS = frozenset((Mnemonic.CPUID, Mnemonic.XGETBV))
_FOUR = frozenset((Register.RAX, Register.RBX, Register.RCX, Register.RDX))


class X86Values:
    """The reader of one file, as far as values go."""

    def __init__(self, binary: Binary, imports: Imports, knowledge: Knowledge) -> None:
        self.binary = binary
        self.imports = imports
        self.knowledge = knowledge

    def import_of(self, target: int) -> int | None:
        """``jmp *slot(%rip)``, perhaps after ``endbr64``."""
        for number, one in enumerate(decode(self.binary, target, target + 16)):
            if one.flow_control == FlowControl.INDIRECT_BRANCH and one.is_ip_rel_memory_operand:
                slot: int = one.ip_rel_memory_address
                return slot
            if one.mnemonic != Mnemonic.ENDBR64 or number:
                return None
        return None

    def memory(self, code: list[Instruction], at: int) -> str:
        """``flag<address>`` where the instruction reads a global variable."""
        one = code[at]
        if OpKind.MEMORY not in (one.op0_kind, one.op1_kind) or one.mnemonic == Mnemonic.LEA:
            return ""
        if one.is_ip_rel_memory_operand:
            return f"flag{one.ip_rel_memory_address}"
        base = RegisterExt.full_register(one.memory_base) if one.memory_base else Register.NONE
        if base == Register.NONE:
            return f"flag{one.memory_displacement}" if one.memory_index == Register.NONE else ""
        for before in reversed(code[:at]):
            if before.op0_kind == OpKind.REGISTER and RegisterExt.full_register(before.op0_register) == base:
                if before.is_ip_rel_memory_operand and before.mnemonic in (Mnemonic.LEA, Mnemonic.MOV):
                    return f"flag{before.ip_rel_memory_address + one.memory_displacement}"
                return ""
        return ""

    def source(self, code: list[Instruction], at: int, register: Register_, depth: int) -> str:
        """Where the register's value comes from: ``flag<address>``, ``cpu`` or nothing known."""
        wanted = RegisterExt.full_register(register)
        for place in range(at - 1, -1, -1):
            one = code[place]
            if one.mnemonic in _ANSWERS and wanted in _FOUR:
                return "cpu"
            if one.flow_control in (FlowControl.CALL, FlowControl.INDIRECT_CALL):
                return "cpu" if wanted == Register.RAX and self._answers(one) else ""
            if one.op0_kind == OpKind.REGISTER and RegisterExt.full_register(one.op0_register) == wanted:
                found = self._written(code, place, depth)
                if found is not None:
                    return found
        return ""

    def _written(self, code: list[Instruction], place: int, depth: int) -> str | None:
        """What the instruction puts into its register; None where it only changes what was there."""
        one = code[place]
        if one.mnemonic in _MOVES and one.op1_kind == OpKind.REGISTER:
            return self.source(code, place, one.op1_register, depth - 1) if depth else ""
        if one.mnemonic in _MOVES:
            return self.memory(code, place)
        if one.mnemonic in _KEEPS:
            return self.memory(code, place) or None
        return ""

    def _answers(self, call: Instruction) -> bool:
        """Whether the function that is called says what the CPU can do."""
        if call.is_ip_rel_memory_operand:
            slot: int | None = call.ip_rel_memory_address
        else:
            slot = self.import_of(call.near_branch_target)
        if slot is not None:
            return self.knowledge.asks(self.imports.name(slot))
        return self._is_probe(call.near_branch_target)

    def _is_probe(self, start: int) -> bool:
        asks = reads = calls = False
        for one in decode(self.binary, start, start + _PROBE):
            asks = asks or one.mnemonic in _ANSWERS
            reads = reads or (one.is_ip_rel_memory_operand and one.mnemonic in _MOVES)
            calls = calls or one.flow_control == FlowControl.CALL
            if one.flow_control == FlowControl.RETURN:
                return asks or (reads and not calls)
        return asks
