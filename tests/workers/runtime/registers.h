/*
 * registers.h - whether a switch leaves alone the registers that a call must. For the machines whose registers are
 * switched by switch_<machine>.S.
 */
#ifndef SLUICE_TESTS_WORKERS_RUNTIME_REGISTERS_H
#define SLUICE_TESTS_WORKERS_RUNTIME_REGISTERS_H

#include <stdint.h>

#include "workers/runtime/switch.h"

#ifndef SWITCH_BY_UCONTEXT

/* Fills them with `seed` + 1, 2, ..., switches there and back, and returns bits in which one differs then. */
uint64_t registers_differ(struct switch_point *from, const struct switch_point *to, uint64_t seed);
#endif

#if defined(__x86_64__)
/* clang-format off */
__asm__(".pushsection .text\n"
        ".type registers_differ, @function\n"
        "registers_differ:\n"
        "push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n push %rdx\n"
        "lea 1(%rdx), %rbp\n lea 2(%rdx), %rbx\n lea 3(%rdx), %r12\n"
        "lea 4(%rdx), %r13\n lea 5(%rdx), %r14\n lea 6(%rdx), %r15\n"
        "call switch_to\n"
        "pop %rdx\n xor %eax, %eax\n"
        "sub %rdx, %rbp\n xor $1, %rbp\n or %rbp, %rax\n"
        "sub %rdx, %rbx\n xor $2, %rbx\n or %rbx, %rax\n"
        "sub %rdx, %r12\n xor $3, %r12\n or %r12, %rax\n"
        "sub %rdx, %r13\n xor $4, %r13\n or %r13, %rax\n"
        "sub %rdx, %r14\n xor $5, %r14\n or %r14, %rax\n"
        "sub %rdx, %r15\n xor $6, %r15\n or %r15, %rax\n"
        "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n"
        ".size registers_differ, .-registers_differ\n"
        ".popsection\n");
/* clang-format on */
#elif defined(__aarch64__)
/* clang-format off */
#define FILL(x, d, at) "add " x ", x2, #" #at "\n fmov " d ", " x "\n"
#define LOOK(x, d, at) \
    "fmov x3, " d "\n sub x3, x3, x2\n sub x3, x3, #" #at "\n orr x0, x0, x3\n" \
    "sub x3, " x ", x2\n sub x3, x3, #" #at "\n orr x0, x0, x3\n"
#define LOOK_X(x, at) "sub x3, " x ", x2\n sub x3, x3, #" #at "\n orr x0, x0, x3\n"
__asm__(".pushsection .text\n"
        ".type registers_differ, %function\n"
        "registers_differ:\n"
        "sub sp, sp, #176\n"
        "stp x29, x30, [sp]\n stp x19, x20, [sp, #16]\n stp x21, x22, [sp, #32]\n stp x23, x24, [sp, #48]\n"
        "stp x25, x26, [sp, #64]\n stp x27, x28, [sp, #80]\n stp d8, d9, [sp, #96]\n stp d10, d11, [sp, #112]\n"
        "stp d12, d13, [sp, #128]\n stp d14, d15, [sp, #144]\n str x2, [sp, #160]\n"
        FILL("x19", "d8", 1) FILL("x20", "d9", 2) FILL("x21", "d10", 3) FILL("x22", "d11", 4)
        FILL("x23", "d12", 5) FILL("x24", "d13", 6) FILL("x25", "d14", 7) FILL("x26", "d15", 8)
        "add x27, x2, #9\n add x28, x2, #10\n add x29, x2, #11\n"
        "bl switch_to\n"
        "ldr x2, [sp, #160]\n mov x0, #0\n"
        LOOK("x19", "d8", 1) LOOK("x20", "d9", 2) LOOK("x21", "d10", 3) LOOK("x22", "d11", 4)
        LOOK("x23", "d12", 5) LOOK("x24", "d13", 6) LOOK("x25", "d14", 7) LOOK("x26", "d15", 8)
        LOOK_X("x27", 9) LOOK_X("x28", 10) LOOK_X("x29", 11)
        "ldp x29, x30, [sp]\n ldp x19, x20, [sp, #16]\n ldp x21, x22, [sp, #32]\n ldp x23, x24, [sp, #48]\n"
        "ldp x25, x26, [sp, #64]\n ldp x27, x28, [sp, #80]\n ldp d8, d9, [sp, #96]\n ldp d10, d11, [sp, #112]\n"
        "ldp d12, d13, [sp, #128]\n ldp d14, d15, [sp, #144]\n add sp, sp, #176\n ret\n"
        ".size registers_differ, .-registers_differ\n"
        ".popsection\n");
/* clang-format on */
#endif

#endif
