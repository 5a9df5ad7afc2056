#include "broker/simulate/report/numbers.h"

#include <math.h>
#include <stdio.h>

void print_count(double count, char ret[32])
{
    char digits[32];
    if (isinf(count) || count >= 1e18) {
        snprintf(ret, 32, "any");
        return;
    }
    if (count < 100 && count != floor(count)) {
        snprintf(ret, 32, "%.3g", count);
        return;
    }
    int len = snprintf(digits, sizeof(digits), "%.0f", count), at = 0;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            ret[at++] = ',';
        ret[at++] = digits[i];
    }
    ret[at] = '\0';
}

void print_seconds(double seconds, char ret[32])
{
    const long whole = lround(seconds);
    if (seconds < 9.95)
        snprintf(ret, 32, "%.2gs", seconds);
    else if (whole < 60)
        snprintf(ret, 32, "%lds", whole);
    else if (whole < 3600)
        snprintf(ret, 32, "%ldm%02lds", whole / 60, whole % 60);
    else
        snprintf(ret, 32, "%ldh%02ldm", whole / 3600, whole / 60 % 60);
}
