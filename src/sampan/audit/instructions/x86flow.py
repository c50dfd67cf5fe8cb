"""Control flow of x86-64 code, and which of its branches depend on what the CPU can do."""

from __future__ import annotations

from dataclasses import replace

from iced_x86 import Code, FlowControl, Instruction, Mnemonic, OpKind

from sampan.audit.instructions import flow
from sampan.audit.instructions.binary import Binary
from sampan.audit.instructions.flow import Block
from sampan.audit.instructions.imports import Imports
from sampan.audit.instructions.knowledge import Knowledge
from sampan.audit.instructions.x86 import decode
from sampan.audit.instructions.x86values import X86Values

_MAX_BLOCK = 1 << 14  # bytes
_ONCE = 10  # instructions after a branch in which a flag that is set once is set
_STEP, _MAX_MARKS = 32, 1 << 17  # a mark every so many instructions
_MAX_VAIN = 1 << 23  # instructions that led to no branch: then only a hostile file has more of them


class X86Flow(X86Values):
    """The reader of one file.

    Long runs of code leave marks, so that a hostile file with a thousand ways into one of them is not decoded a
    thousand times.
    """

    def __init__(self, binary: Binary, imports: Imports, knowledge: Knowledge) -> None:
        super().__init__(binary, imports, knowledge)
        self._before: dict[int, int] = {}  # the block that falls into this one, by its call or branch
        self._vain = 0
        self._marks: dict[int, Block] = {}  # by the address of an instruction: a block that it lies in

    def block(self, start: int) -> Block | None:
        """Up to the next branch."""
        found = self._found(start) if self.binary.span_at(start) is not None else None
        if found is not None:
            self._before.setdefault(found.end, start)
        return found

    def _found(self, start: int) -> Block | None:
        passed: list[int] = []
        if self._vain > _MAX_VAIN:
            return None
        for number, one in enumerate(decode(self.binary, start, start + _MAX_BLOCK)):
            if one.code == Code.INVALID:
                break
            known = self._marks.get(one.ip) if number else None
            if known is not None or one.flow_control != FlowControl.NEXT:
                found = replace(known, start=start) if known is not None else self._ends(one, start)
                self._mark(passed, found)
                return found
            if number % _STEP == _STEP - 1:
                passed.append(one.ip)
        self._vain += len(passed) * _STEP
        return None

    def _mark(self, passed: list[int], found: Block) -> None:
        if len(self._marks) > _MAX_MARKS:
            self._marks.clear()
        self._marks.update(dict.fromkeys(passed, found))

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
        memory = self.memory(code, at)
        if memory:
            return memory
        return self.source(code, at, one.op0_register, 6) if one.op0_kind == OpKind.REGISTER else ""

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
