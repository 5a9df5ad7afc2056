/* size.h - sizes as people write them: "512MiB", "64M", "8GiB", "1000B". A unit is 1024 of the one below it. */
#ifndef SLUICE_COMMON_CMDLINE_SIZE_H
#define SLUICE_COMMON_CMDLINE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)
#define TIB(n) ((uint64_t)(n) << 40)
#define PIB(n) ((uint64_t)(n) << 50)

/* Bytes. A number needs its unit, 0 alone does not. False if it is none. */
bool size_parse(const char *text, uint64_t *ret_bytes);
/* As size_parse reads it, in the largest unit that it is whole in. */
void size_format(uint64_t bytes, char *ret, size_t size);

#endif
