/*
 * switch.h for aarch64. What is stored is struct frame of switch.c. At the change of stacks both look alike, so what is
 * said of the frame (.cfi) holds before and after it.
 */
#if defined(__aarch64__)

#define BYTES 176
#define BTI_C hint #34 /* as older assemblers know it */

.macro keep a, b, at
    stp \a, \b, [sp, #\at]
    .cfi_rel_offset \a, \at
    .cfi_rel_offset \b, \at + 8
.endm

.macro bring a, b, at
    ldp \a, \b, [sp, #\at]
    .cfi_restore \a
    .cfi_restore \b
.endm

    .text
    .p2align 4
    .globl switch_to
    .hidden switch_to
    .type switch_to, %function
switch_to:
    .cfi_startproc
    BTI_C
    sub sp, sp, #BYTES
    .cfi_adjust_cfa_offset BYTES
    keep d8, d9, 16
    keep d10, d11, 32
    keep d12, d13, 48
    keep d14, d15, 64
    keep x19, x20, 80
    keep x21, x22, 96
    keep x23, x24, 112
    keep x25, x26, 128
    keep x27, x28, 144
    keep x29, x30, 160
    mrs x9, fpcr
    str x9, [sp]
    mov x9, sp
    str x9, [x0]

    ldr x9, [x1]
    mov sp, x9
    ldr x9, [sp]
    msr fpcr, x9
    bring d8, d9, 16
    bring d10, d11, 32
    bring d12, d13, 48
    bring d14, d15, 64
    bring x19, x20, 80
    bring x21, x22, 96
    bring x23, x24, 112
    bring x25, x26, 128
    bring x27, x28, 144
    bring x29, x30, 160
    add sp, sp, #BYTES
    .cfi_adjust_cfa_offset -BYTES
    ret
    .cfi_endproc
    .size switch_to, .-switch_to

    .p2align 4
    .globl switch_begin
    .hidden switch_begin
    .type switch_begin, %function
switch_begin:
    .cfi_startproc
    .cfi_undefined x30
    blr x19
    brk #1
    .cfi_endproc
    .size switch_begin, .-switch_begin

#if defined(__ARM_FEATURE_BTI_DEFAULT)
    .section .note.gnu.property, "a"
    .p2align 3
    .long 4, 16, 5 /* lengths of name and properties, NT_GNU_PROPERTY_TYPE_0 */
    .asciz "GNU"
    .long 0xc0000000, 4, 1, 0 /* GNU_PROPERTY_AARCH64_FEATURE_1_AND: BTI */
#endif

#endif
    .section .note.GNU-stack, "", %progbits
