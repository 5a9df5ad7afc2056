#include "common/base/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int fail_set(struct fail *fail, int code, const char *format, ...)
{
    if (!fail)
        return code;
    fail->code = code;
    va_list args;
    va_start(args, format);
    vsnprintf(fail->text, sizeof(fail->text), format, args);
    va_end(args);
    return code;
}

int fail_memory(struct fail *fail) { return fail_set(fail, -ENOMEM, "out of memory"); }

int fail_wrap(struct fail *fail, const char *format, ...)
{
    if (!fail)
        return -1;
    char words[sizeof(fail->text)];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    size_t len = strlen(words), room = sizeof(fail->text) - 1;
    size_t lead = len + 2 < room ? len + 2 : room;
    size_t kept = strnlen(fail->text, room - lead);
    memmove(fail->text + lead, fail->text, kept);
    memcpy(words + (len < room - 2 ? len : room - 2), ": ", 2);
    memcpy(fail->text, words, lead);
    fail->text[lead + kept] = '\0';
    return fail->code;
}
