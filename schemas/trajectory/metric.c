#include "schemas/trajectory/metric.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/utf8.h"

bool metric_refuse(struct refusal *no, const char *list, size_t i, const char *key, enum refusal_reason reason,
                   const char *why)
{
    char field[64];
    snprintf(field, sizeof(field), "%s[%zu].%s", list, i, key);
    return refuse(no, reason, field, "verdict: %s %s", field, why);
}

static bool has_control(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return true;
    return false;
}

bool metric_name_check(const char *list, size_t i, const char *name, size_t max, struct refusal *no)
{
    size_t len = strnlen(name, max + 1);
    if (len == 0)
        return metric_refuse(no, list, i, "name", REFUSAL_TOO_SMALL, "is empty");
    if (len > max)
        return metric_refuse(no, list, i, "name", REFUSAL_TOO_LARGE, "is too long");
    if (!utf8_is_valid(slice_of(name, len)))
        return metric_refuse(no, list, i, "name", REFUSAL_NOT_UTF8, "is not UTF-8 text");
    return !has_control(name) || metric_refuse(no, list, i, "name", REFUSAL_BAD_NAME, "holds a control character");
}

bool metric_number_check(const char *list, size_t i, const char *key, double value, struct refusal *no)
{
    return isfinite(value) || metric_refuse(no, list, i, key, REFUSAL_NOT_FINITE, "is not a finite number");
}

bool metric_check(const struct record_metric *all, size_t i, struct refusal *no)
{
    static const char list[] = "metrics";
    if (!metric_name_check(list, i, all[i].name, sizeof(all[i].name) - 1, no) ||
        !metric_number_check(list, i, "value", all[i].value, no))
        return false;
    for (size_t k = 0; k < i; k++)
        if (strcmp(all[k].name, all[i].name) == 0)
            return metric_refuse(no, list, i, "name", REFUSAL_DUPLICATE_FIELD, "is given twice");
    return true;
}
