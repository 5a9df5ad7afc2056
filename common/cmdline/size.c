#include "common/cmdline/size.h"

#include <stdio.h>
#include <string.h>

static const char letters[] = "KMGTPE"; /* 10 bits each */

bool size_parse(const char *text, uint64_t *ret_bytes)
{
    size_t digits = strspn(text, "0123456789");
    const char *unit = text + digits, *letter = *unit ? strchr(letters, *unit) : NULL;
    uint64_t number = 0;
    if (digits == 0 || digits > 18)
        return false;
    for (size_t i = 0; i < digits; i++)
        number = number * 10 + (uint64_t)(text[i] - '0');
    unsigned shift = letter ? 10 * (unsigned)(letter - letters + 1) : 0;
    bool is_whole = letter ? unit[1] == '\0' || strcmp(unit + 1, "iB") == 0
                           : strcmp(unit, "B") == 0 || (!*unit && number == 0);
    if (!is_whole || number > UINT64_MAX >> shift)
        return false;
    *ret_bytes = number << shift;
    return true;
}

void size_format(uint64_t bytes, char *ret, size_t size)
{
    size_t unit = 0;
    while (bytes && bytes % 1024 == 0 && letters[unit]) {
        bytes /= 1024;
        unit++;
    }
    if (unit)
        snprintf(ret, size, "%llu%ciB", (unsigned long long)bytes, letters[unit - 1]);
    else
        snprintf(ret, size, "%llu%s", (unsigned long long)bytes, bytes ? "B" : "");
}
