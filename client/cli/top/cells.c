#include "client/cli/top/cells.h"

#include <stdio.h>
#include <string.h>

#include "client/cli/top/model.h"
#include "client/json/told.h"

bool cell_is_number(enum cell_kind kind) { return kind != CELL_TEXT && kind != CELL_DOING; }

void cell_age(int64_t ms, char *ret, size_t size)
{
    const long long s = (long long)(ms / 1000);
    if (ms < 0)
        snprintf(ret, size, "-");
    else if (ms < 10000)
        snprintf(ret, size, "%lld.%llds", s, (long long)(ms % 1000 / 100));
    else if (s < 100)
        snprintf(ret, size, "%llds", s);
    else if (s < 6000)
        snprintf(ret, size, "%lldm%02llds", s / 60, s % 60);
    else if (s < 360000)
        snprintf(ret, size, "%lldh%02lldm", s / 3600, s / 60 % 60);
    else
        snprintf(ret, size, "%lldd%02lldh", s / 86400, s / 3600 % 24);
}

static void format_bytes(int64_t bytes, char *ret, size_t size)
{
    static const char units[] = "KMGT";
    double number = (double)bytes;
    size_t unit = 0;
    for (; number >= 1024 && unit < sizeof(units) - 1; unit++)
        number /= 1024;
    if (unit == 0)
        snprintf(ret, size, "%lld", (long long)bytes);
    else
        snprintf(ret, size, number < 100 ? "%.1f%c" : "%.0f%c", number, units[unit - 1]);
}

/* "turn 3, bash; no engine is free" */
static void format_doing(const json_t *row, char *ret, size_t size)
{
    const long long turn = told_number(row, "turn");
    const char *tool = told_text(row, "tool"), *why = told_text(row, "why");
    size_t len = 0;
    ret[0] = '\0';
    if (turn)
        len += (size_t)snprintf(ret, size, "turn %lld", turn);
    if (*tool && len < size)
        len += (size_t)snprintf(ret + len, size - len, "%s%.64s", len ? ", " : "", tool);
    if (*why && len < size)
        len += (size_t)snprintf(ret + len, size - len, "%s%s", len ? "; " : "", why);
    if (!len)
        snprintf(ret, size, "-");
}

void cell_format(const json_t *row, const char *key, enum cell_kind kind, char ret[CELL_SIZE])
{
    const json_t *value = json_object_get(row, key);
    const int64_t number = (int64_t)json_integer_value(value);
    const char *text = json_string_value(value);
    if (kind == CELL_DOING)
        format_doing(row, ret, CELL_SIZE);
    else if (kind == CELL_SLOTS)
        snprintf(ret, CELL_SIZE, "%lld/%lld", told_number(row, "jobs"), told_number(row, "slots"));
    else if (kind == CELL_TEXT)
        snprintf(ret, CELL_SIZE, "%s", text && *text ? text : "-");
    else if (!json_is_integer(value))
        snprintf(ret, CELL_SIZE, "-");
    else if (kind == CELL_LIMIT && number == 0)
        snprintf(ret, CELL_SIZE, "-");
    else if (kind == CELL_AGE)
        cell_age(number, ret, CELL_SIZE);
    else if (kind == CELL_BYTES)
        format_bytes(number, ret, CELL_SIZE);
    else if (kind == CELL_PERCENT)
        snprintf(ret, CELL_SIZE, "%lld%%", (long long)(number / 10));
    else
        snprintf(ret, CELL_SIZE, "%lld", (long long)number);
}

static int compare_texts(const char *a, const char *b)
{
    if (!*a != !*b)
        return *a ? -1 : 1;
    const int order = strcmp(a, b);
    return (order > 0) - (order < 0);
}

int cell_compare(const json_t *a, const json_t *b, const char *key, enum cell_kind kind)
{
    char one[CELL_SIZE], other[CELL_SIZE];
    if (kind == CELL_DOING) {
        cell_format(a, key, kind, one);
        cell_format(b, key, kind, other);
        return compare_texts(one, other);
    }
    if (kind == CELL_TEXT)
        return compare_texts(told_text(a, key), told_text(b, key));
    const char *of = kind == CELL_SLOTS ? "jobs" : key;
    const int64_t left = told_number(a, of), right = told_number(b, of);
    return (left < right) - (left > right);
}
