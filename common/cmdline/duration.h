/* duration.h - times as people write them: "500ms", "90s", "10m", "1h30m", "2d". */
#ifndef SLUICE_COMMON_CMDLINE_DURATION_H
#define SLUICE_COMMON_CMDLINE_DURATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECONDS(n) (UINT64_C(1000) * (n))
#define MINUTES(n) SECONDS(UINT64_C(60) * (n))
#define HOURS(n) MINUTES(UINT64_C(60) * (n))
#define DAYS(n) HOURS(UINT64_C(24) * (n))
#define DURATION_FOREVER ((uint64_t)INT64_MAX)

/* Milliseconds. A number needs its unit, 0 alone does not; "forever" is DURATION_FOREVER. False if it is none. */
bool duration_parse(const char *text, uint64_t *ret_ms);
/* As duration_parse reads it, in the fewest units: "1h30m". */
void duration_format(uint64_t ms, char *ret, size_t size);

#endif
