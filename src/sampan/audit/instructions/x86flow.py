"""Control flow of x86-64 code."""

from __future__ import annotations

from iced_x86 import Code, FlowControl, Instruction, Mnemonic, OpKind, Register, Register_, RegisterExt

from sampan.audit.instructions import flow
from sampan.audit.instructions.binary import Binary
from sampan.audit.instructions.flow import Block
from sampan.audit.instructions.imports import Imports
from sampan.audit.instructions.knowledge import Knowledge
from sampan.audit.instructions.x86 import decode

_MAX_BLOCK = 1 << 14  # bytes
_PROBE = 192  # bytes of a function that answers a question
_ONCE = 10  # instructions after a branch in which a flag that is set once is set
_MOVES = frozenset((Mnemonic.MOV, Mnemonic.MOVZX, Mnemonic.MOVSX, Mnemonic.MOVSXD))
_KEEPS = frozenset((Mnemonic.AND, Mnemonic.SHR, Mnemonic.SAR, Mnemonic.SHL, Mnemonic.XOR, Mnemonic.NOT, Mnemonic.OR))
_ANSWERS = frozenset((Mnemonic.CPUID, Mnemonic.XGETBV))
_FOUR = frozenset((Register.RAX, Register.RBX, Register.RCX, Register.RDX))


class X86Flow:
    """The reader of one file."""

    def __init__(self, binary: Binary, imports: Imports, knowledge: Knowledge) -> None:
        self.binary = binary
        self.imports = imports
        self.knowledge = knowledge
        self._before: dict[int, int] = {}  # the block that falls into this one, by its call or branch

    def block(self, start: int) -> Block | None:
        """Up to the next branch."""
        if self.binary.span_at(start) is None:
            return None
        for one in decode(self.binary, start, start + _MAX_BLOCK):
            if one.code == Code.INVALID:
                return None
            if one.flow_control != FlowControl.NEXT:
                found = self._ends(one, start)
                self._before.setdefault(found.end, start)
                return found
        return None

    def _ends(self, one: Instruction, start: int) -> Block:
        control, end = one.flow_control, one.next_ip
        if control == FlowControl.CONDITIONAL_BRANCH:
            return Block(start, end, one.ip, flow.BRANCH, one.near_branch_target)
        if control == FlowControl.UNCONDITIONAL_BRANCH:
            return Block(start, end, one.ip, flow.JUMP, one.near_branch_target)
        if control == FlowControl.CALL:
            return Block(start, end, one.ip, flow.CALL, one.near_branch_target)
        if control in (FlowControl.INDIRECT_CALL, FlowControl.INDIRECT_BRANCH) and one.is_ip_rel_memory_operand:
            target = self.imports.target(one.ip_rel_memory_address)
            call = control == FlowControl.INDIRECT_CALL
            if target:
                return Block(start, end, one.ip, flow.CALL if call else flow.JUMP, target)
            stays = call and not self.knowledge.ends(self.imports.name(one.ip_rel_memory_address))
            return Block(start, end, one.ip, flow.ON if stays else flow.END)
        goes_on = (FlowControl.INDIRECT_CALL, FlowControl.INTERRUPT)  # syscall is a plain instruction to the decoder
        return Block(start, end, one.ip, flow.ON if control in goes_on else flow.END)

    def import_of(self, target: int) -> int | None:
        """``jmp *slot(%rip)``, perhaps after ``endbr64``."""
        for number, one in enumerate(decode(self.binary, target, target + 16)):
            if one.flow_control == FlowControl.INDIRECT_BRANCH and one.is_ip_rel_memory_operand:
                slot: int = one.ip_rel_memory_address
                return slot
            if one.mnemonic != Mnemonic.ENDBR64 or number:
                return None
        return None

    def addresses(self, block: Block) -> tuple[int, ...]:
        """What LEA, MOV of a number and MOV from a table of addresses give."""
        found = []
        for one in decode(self.binary, block.start, block.end):
            if one.mnemonic == Mnemonic.LEA and one.is_ip_rel_memory_operand:
                found.append(one.ip_rel_memory_address)
            elif one.mnemonic == Mnemonic.MOV and one.is_ip_rel_memory_operand:
                found.append(self.imports.target(one.ip_rel_memory_address))
            elif one.mnemonic == Mnemonic.MOV and one.op0_kind == OpKind.REGISTER and one.op1_kind != OpKind.REGISTER:
                found.append(_number(one))
        return tuple(address for address in found if address and self.binary.span_at(address))

    def tests_cpu(self, block: Block, function: int) -> bool:
        """By what was compared: a flag in memory, the answer of a function, of CPUID or of XGETBV."""
        before = self._before.get(block.start)
        start = before if before is not None and function <= before < block.start else block.start
        code = [one for one in decode(self.binary, start, block.last) if one.code != Code.INVALID]
        at = next((at for at in range(len(code) - 1, -1, -1) if code[at].rflags_modified), -1)
        if at < 0:
            return False
        source = self._compared(code, at)
        return source == "cpu" or (source.startswith("flag") and not self._set_once(block, int(source[4:])))

    def _compared(self, code: list[Instruction], at: int) -> str:
        one = code[at]
        if one.flow_control in (FlowControl.CALL, FlowControl.INDIRECT_CALL):
            return ""
        memory = self._memory(code, at)
        if memory:
            return memory
        return self._source(code, at, one.op0_register, 6) if one.op0_kind == OpKind.REGISTER else ""

    def _memory(self, code: list[Instruction], at: int) -> str:
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

    def _source(self, code: list[Instruction], at: int, register: Register_, depth: int) -> str:
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
            return self._source(code, place, one.op1_register, depth - 1) if depth else ""
        if one.mnemonic in _MOVES:
            return self._memory(code, place)
        if one.mnemonic in _KEEPS:
            return self._memory(code, place) or None
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

    def _set_once(self, block: Block, flag: int) -> bool:
        """A flag that the code sets itself right after the branch keeps a constructor from running twice."""
        for start in (block.end, block.target or block.end):
            for number, one in enumerate(decode(self.binary, start, start + 128)):
                if number >= _ONCE or one.code == Code.INVALID or one.flow_control == FlowControl.RETURN:
                    break
                if one.flow_control == FlowControl.CALL:
                    slot = self.import_of(one.near_branch_target)
                    if slot is not None and self.imports.name(slot).startswith("__cxa_guard_acquire"):
                        return True
                stores = one.mnemonic == Mnemonic.MOV and one.op0_kind == OpKind.MEMORY
                if stores and one.is_ip_rel_memory_operand and one.ip_rel_memory_address == flag:
                    return True
        return False


def _number(one: Instruction) -> int:
    kinds = (OpKind.IMMEDIATE32, OpKind.IMMEDIATE32TO64, OpKind.IMMEDIATE64)
    return int(one.immediate(1)) if one.op1_kind in kinds else 0
