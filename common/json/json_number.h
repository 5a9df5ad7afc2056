/*
 * json_number.h - a number as JSON writes it (RFC 8259), read in one pass. What it is worth is what strtod makes of
 * it, to the last bit: log-probabilities come with as many digits as a double has, and are most of what an engine's
 * answer is.
 */
#ifndef SLUICE_COMMON_JSON_JSON_NUMBER_H
#define SLUICE_COMMON_JSON_JSON_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

struct json_number {
    bool is_integer; /* written without a point or an exponent, and fits an int64_t */
    union {
        int64_t integer;
        double real;
    };
};

/*
 * The byte behind the number that begins at `at`. NULL: it is none, or has no finite value; or it is longer than 63
 * bytes and has more than 19 digits that count, or a power of ten that is not usual (1 to 10^-27).
 */
const uint8_t *json_number_read(const uint8_t *at, const uint8_t *end, struct json_number *ret);

#endif
