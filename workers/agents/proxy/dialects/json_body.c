#include "workers/agents/proxy/dialects/json_body.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/base/utf8.h"
#include "workers/agents/proxy/said.h"

enum { ESCAPE = 6 }; /* bytes of \u0000 */

/* The unit of UTF-16 that an escape stands for; -1: there is none. */
static int unit_at(const char *at)
{
    char *end, digits[5] = {0};
    if (at[0] != '\\' || at[1] != 'u')
        return -1;
    memcpy(digits, at + 2, strnlen(at + 2, 4));
    const long unit = strtol(digits, &end, 16);
    return end == digits + 4 && digits[0] != '-' && digits[0] != '+' && digits[0] != ' ' ? (int)unit : -1;
}

static bool is_half(int unit, int from) { return unit >= from && unit < from + 0x400; }

/* Each half without its other becomes \ufffd, in place. */
static void repair_halves(char *text)
{
    for (char *at = text; (at = strchr(at, '\\')); at += at[1] ? 2 : 1) {
        const int unit = unit_at(at);
        if (is_half(unit, 0xd800) && is_half(unit_at(at + ESCAPE), 0xdc00))
            at += ESCAPE;
        else if (is_half(unit, 0xd800) || is_half(unit, 0xdc00))
            memcpy(at + 2, "fffd", 4);
    }
}

/* Numbers beyond 64 bits are read as others are that have a point. */
static json_t *load(const char *text, struct fail *fail)
{
    json_error_t error;
    json_t *json = json_loads(text, JSON_ALLOW_NUL, &error);
    if (!json && json_error_code(&error) == json_error_numeric_overflow)
        json = json_loads(text, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
    text_sanitize(error.text);
    if (!json)
        fail_set(fail, -EINVAL, "the body is no JSON: line %d: %.200s", error.line, error.text);
    return json;
}

json_t *json_body_parse(struct slice text, struct fail *fail)
{
    struct buffer repaired = {0};
    if (!text_is_shallow(text, SAID_DEPTH_MAX)) {
        fail_set(fail, -EINVAL, "the body is nested deeper than %d levels", SAID_DEPTH_MAX);
        return NULL;
    }
    utf8_append_repaired(&repaired, text);
    AUTO_FREE char *copy = buffer_take_str(&repaired);
    if (!copy) {
        fail_memory(fail);
        return NULL;
    }
    repair_halves(copy);
    return load(copy, fail);
}
