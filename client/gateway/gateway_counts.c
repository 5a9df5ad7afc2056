#include "client/gateway/gateway_counts.h"

void gateway_counts_note(struct gateway_counts *counts, const char *pattern, int status)
{
    size_t i = 0;
    while (i < counts->kinds && (counts->requests[i].pattern != pattern || counts->requests[i].status != status))
        i++;
    if (i == REQUEST_KINDS_MAX)
        return;
    if (i == counts->kinds)
        counts->requests[counts->kinds++] = (struct request_count){.pattern = pattern, .status = status};
    counts->requests[i].count++;
}
