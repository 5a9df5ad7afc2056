#include "common/cmdline/duration.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint64_t ms;
} units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
enum { UNIT_COUNT = sizeof(units) / sizeof(*units) };

static bool parse_part(const char **at, uint64_t *total_ms)
{
    uint64_t number = 0, part_ms;
    size_t digits = strspn(*at, "0123456789"), letters = strspn(*at + digits, "dhms");
    if (digits == 0 || digits > 12)
        return false;
    for (size_t i = 0; i < digits; i++)
        number = number * 10 + (uint64_t)((*at)[i] - '0');
    for (size_t i = 0; i < UNIT_COUNT; i++)
        if (strlen(units[i].name) == letters && strncmp(units[i].name, *at + digits, letters) == 0) {
            *at += digits + letters;
            return !__builtin_mul_overflow(number, units[i].ms, &part_ms) &&
                   !__builtin_add_overflow(*total_ms, part_ms, total_ms) && *total_ms < DURATION_FOREVER;
        }
    return false;
}

bool duration_parse(const char *text, uint64_t *ret_ms)
{
    uint64_t total_ms = 0;
    const char *at = text;
    if (strcmp(text, "forever") == 0) {
        *ret_ms = DURATION_FOREVER;
        return true;
    }
    if (strcmp(text, "0") == 0) {
        *ret_ms = 0;
        return true;
    }
    do {
        if (!parse_part(&at, &total_ms))
            return false;
    } while (*at);
    *ret_ms = total_ms;
    return true;
}

void duration_format(uint64_t ms, char *ret, size_t size)
{
    size_t at = 0;
    if (ms == DURATION_FOREVER || ms == 0) {
        snprintf(ret, size, "%s", ms ? "forever" : "0s");
        return;
    }
    ret[0] = '\0';
    for (size_t i = 0; i < UNIT_COUNT && at < size; i++) {
        if (ms >= units[i].ms)
            at += (size_t)snprintf(ret + at, size - at, "%llu%s", (unsigned long long)(ms / units[i].ms),
                                   units[i].name);
        ms %= units[i].ms;
    }
}
