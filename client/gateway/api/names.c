#include "client/gateway/api/names.h"

#include <stdio.h>
#include <sys/random.h>

bool names_make(const char *prefix, struct kept_texts *kept, struct slice *ret)
{
    uint32_t bits[3];
    char name[96];
    if (getrandom(bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
        return false;
    snprintf(name, sizeof(name), "%s-%08x%08x%08x", prefix, bits[0], bits[1], bits[2]);
    return kept_texts_add(kept, slice_from_str(name), ret);
}
