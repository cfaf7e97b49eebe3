// SPDX-License-Identifier: BSD-3-Clause
#include "device/cpu/jump.h"

#if defined(__x86_64__)
// The second return address at label 2 is the one that the call has pushed for prediction: the ret
// that goes there takes it off again. %ebx counts: 1 when the jump comes back, 0 behind the ret.
asm(R"(
  .text
  .p2align 4
  .globl gimlet_jump_fcontext
  .hidden gimlet_jump_fcontext
  .type gimlet_jump_fcontext, @function
gimlet_jump_fcontext:
  .cfi_startproc
  pushq %rbx
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rbx, 0
  movl $1, %ebx
  call jump_fcontext@PLT
2:
  decl %ebx
  js 3f
  leaq 2b(%rip), %rcx
  pushq %rcx
  .cfi_adjust_cfa_offset 8
  ret
  .cfi_adjust_cfa_offset -8
3:
  popq %rbx
  .cfi_adjust_cfa_offset -8
  .cfi_restore %rbx
  ret
  .cfi_endproc
  .size gimlet_jump_fcontext, . - gimlet_jump_fcontext
  .section .note.GNU-stack, "", @progbits
  .text
)");
#endif
