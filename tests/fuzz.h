/*
 * fuzz.h - what every fuzz target needs. `must` stays in every build, unlike assert, and aborts,
 * which libFuzzer and the replay both take for a finding.
 */
#ifndef SLUICE_TESTS_FUZZ_H
#define SLUICE_TESTS_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

#define must(held)                                                                                                     \
    do                                                                                                                 \
        if (!(held)) {                                                                                                 \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #held);                                         \
            abort();                                                                                                   \
        }                                                                                                              \
    while (0)

#endif
