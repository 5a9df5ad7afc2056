#include "workers/tools/tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int say(struct tool_result *result, struct fail *fail, const char *format, va_list args)
{
    char *text = NULL;
    int len = vasprintf(&text, format, args);
    if (len < 0)
        return fail_memory(fail);
    free(result->text);
    result->text = text;
    result->len = (size_t)len;
    return 0;
}

int tool_say(struct tool_result *result, struct fail *fail, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int code = say(result, fail, format, args);
    va_end(args);
    return code;
}

int tool_say_bytes(struct tool_result *result, struct slice bytes, struct fail *fail)
{
    char *text = malloc(bytes.len + 1);
    if (!text)
        return fail_memory(fail);
    if (bytes.len > 0)
        memcpy(text, bytes.data, bytes.len);
    text[bytes.len] = '\0';
    free(result->text);
    result->text = text;
    result->len = bytes.len;
    return 0;
}

int tool_refuse(struct tool_result *result, struct fail *fail, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int code = say(result, fail, format, args);
    va_end(args);
    result->is_error = true;
    result->status = 1;
    return code;
}

void tool_result_finish(struct tool_result *result)
{
    free(result->text);
    free(result->answer);
    *result = (struct tool_result){0};
}
