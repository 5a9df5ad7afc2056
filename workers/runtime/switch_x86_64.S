/*
 * switch.h for x86-64, System V. What is pushed is struct frame of switch.c. At the change of stacks both look alike, so
 * what is said of the frame (.cfi) holds before and after it.
 */
#if defined(__x86_64__) && defined(__LP64__)

#if defined(__CET__) && (__CET__ & 1)
#define LANDING endbr64
#else
#define LANDING
#endif

.macro keep register
    pushq %\register
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %\register, 0
.endm

.macro bring register
    popq %\register
    .cfi_adjust_cfa_offset -8
    .cfi_restore %\register
.endm

    .text
    .p2align 4
    .globl switch_to
    .hidden switch_to
    .type switch_to, @function
switch_to:
    .cfi_startproc
    LANDING
    keep rbp
    keep rbx
    keep r12
    keep r13
    keep r14
    keep r15
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    stmxcsr (%rsp)
    fnstcw 4(%rsp)
    movq %rsp, (%rdi)

    movq (%rsi), %rsp
    ldmxcsr (%rsp)
    fldcw 4(%rsp)
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    bring r15
    bring r14
    bring r13
    bring r12
    bring rbx
    bring rbp
    ret
    .cfi_endproc
    .size switch_to, .-switch_to

    .p2align 4
    .globl switch_begin
    .hidden switch_begin
    .type switch_begin, @function
switch_begin:
    .cfi_startproc
    .cfi_undefined %rip
    LANDING
    callq *%rbx /* the stack is a multiple of 16 here, as a call wants it */
    ud2
    .cfi_endproc
    .size switch_begin, .-switch_begin

/* There are landing pads; that a shadow stack would be switched, too, is not said: so a program with this has none. */
#if defined(__CET__) && (__CET__ & 1)
    .section .note.gnu.property, "a"
    .p2align 3
    .long 4, 16, 5 /* lengths of name and properties, NT_GNU_PROPERTY_TYPE_0 */
    .asciz "GNU"
    .long 0xc0000002, 4, 1, 0 /* GNU_PROPERTY_X86_FEATURE_1_AND: IBT */
#endif

#endif
    .section .note.GNU-stack, "", %progbits
