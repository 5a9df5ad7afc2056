/*
 * program.h - programs whose bytes are part of this one.
 */
#ifndef SLUICE_WORKERS_SANDBOX_EMBEDDED_PROGRAM_H
#define SLUICE_WORKERS_SANDBOX_EMBEDDED_PROGRAM_H

#include "common/base/fail.h"
#include "common/base/slice.h"

/* Defines `name`(), which returns the bytes of the file `path`. */
#define PROGRAM_BYTES(name, path)                                                                                      \
    __asm__(".section .rodata\n"                                                                                       \
            ".balign 16\n" #name "_begin: .incbin \"" path "\"\n" #name "_end: .byte 0\n"                              \
            ".previous\n");                                                                                            \
    extern const uint8_t name##_begin[], name##_end[];                                                                 \
    struct slice name(void);                                                                                           \
    struct slice name(void) { return slice_of(name##_begin, (size_t)(name##_end - name##_begin)); }

/* The spawner's (spawner_main.c), and that of the first process of a container of the tier apptainer
 * (apptainer_main.c). */
struct slice spawner_program(void);
struct slice apptainer_program(void);

/*
 * A descriptor to execute `program` by (execveat, AT_EMPTY_PATH), close-on-exec, the caller's: in memory, or a file
 * without a name in `directory` where this machine executes nothing from there. Negative errno.
 */
int program_open(struct slice program, const char *name, const char *directory, struct fail *fail);

#endif
