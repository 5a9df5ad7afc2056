/* The bytes of apptainer_main.c's program. */
#include "workers/sandbox/apptainer.h"

__asm__(".section .rodata\n"
        ".balign 16\n"
        "apptainer_program_begin: .incbin \"" SLUICE_APPTAINER_INIT "\"\n"
        "apptainer_program_end: .byte 0\n"
        ".previous\n");

extern const uint8_t apptainer_program_begin[], apptainer_program_end[];

struct slice apptainer_program(void)
{
    return slice_of(apptainer_program_begin, (size_t)(apptainer_program_end - apptainer_program_begin));
}
