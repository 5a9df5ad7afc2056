#include "client/gateway/sandboxfusion/runner.h"

#include <stdio.h>

/* A part's name, seconds, command and input. It, and all that it started, is killed when its time is over. */
static const char functions[] =
    "code() { if [ -s \"$1\" ]; then head -c \"$2\" \"$1\" | base64 -w0; else printf -; fi; }\n"
    "part() {\n"
    "  local begin=${EPOCHREALTIME/./} status used said\n"
    "  timeout -s KILL \"$2\" bash -c \"$3\" <\"$4\" >" RUNNER_FOLDER "/out 2>" RUNNER_FOLDER "/err\n"
    "  status=$?\n"
    "  used=$((${EPOCHREALTIME/./} - begin)) said=$status\n"
    "  if [ $status = 137 ] && [ $used -ge \"$5\" ]; then said=time; fi\n"
    "  echo \"$1 $said $used $(code " RUNNER_FOLDER "/out $OUT) $(code " RUNNER_FOLDER "/err $ERR)\"\n"
    "  [ $status = 0 ]\n"
    "} 2>/dev/null\n";

static void write_part(struct buffer *ret, const char *name, double seconds, const char *command, const char *input)
{
    buffer_printf(ret, "part %s %.3f ", name, seconds);
    buffer_append_quoted(ret, command);
    buffer_printf(ret, " %s %.0f", input, seconds * 1e6);
}

static void write_fetched(struct buffer *ret, const json_t *paths)
{
    buffer_printf(ret, "left=%d\n", RUNNER_FILES_BYTES);
    for (size_t i = 0; i < json_array_size(paths); i++) {
        const char *path = json_string_value(json_array_get(paths, i));
        buffer_append_str(ret, "f=");
        buffer_append_quoted(ret, path ? path : "");
        buffer_append_str(ret, "; if [ -f \"$f\" ]; then size=$(stat -Lc %s -- \"$f\"); left=$((left - size)); "
                               "if [ $left -ge 0 ]; then echo \"file $(printf %s \"$f\" | base64 -w0) "
                               "$(code \"$f\" $size)\"; fi; fi\n");
    }
}

void runner_write(const struct runner_plan *plan, struct buffer *ret)
{
    const struct language *language = plan->language;
    buffer_printf(ret, "OUT=%d ERR=%d\n", RUNNER_OUT_BYTES, RUNNER_ERR_BYTES);
    buffer_append_str(ret, functions);
    buffer_printf(ret, "command -v %s >/dev/null || { echo missing %s; exit 0; }\n", language->program,
                  language->program);
    if (language->compile) {
        write_part(ret, "compile", plan->compile_s, language->compile, "/dev/null");
        buffer_append_str(ret, " || exit 0\n");
    }
    write_part(ret, "run", plan->run_s, language->run, plan->has_stdin ? RUNNER_FOLDER "/stdin" : "/dev/null");
    buffer_append_str(ret, "\n");
    write_fetched(ret, plan->fetched);
    buffer_append_str(ret, "exit 0\n");
}

bool runner_next_line(struct slice text, size_t *at, struct runner_line *ret)
{
    ret->count = 0;
    if (*at >= text.len)
        return false;
    const uint8_t *end = memchr(text.data + *at, '\n', text.len - *at);
    const size_t line_end = end ? (size_t)(end - text.data) : text.len;
    while (*at < line_end && ret->count < 5) {
        const uint8_t *blank = memchr(text.data + *at, ' ', line_end - *at);
        const size_t word_end = blank ? (size_t)(blank - text.data) : line_end;
        ret->words[ret->count++] = slice_of(text.data + *at, word_end - *at);
        *at = word_end + 1;
    }
    *at = line_end + 1;
    return true;
}
