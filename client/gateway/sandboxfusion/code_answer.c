#include "client/gateway/sandboxfusion/code_answer.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include "client/gateway/json_text.h"
#include "client/gateway/sandboxfusion/runner.h"
#include "common/base/cleanup.h"

struct told {
    struct buffer message, compile, run, files; /* JSON; empty: there is none */
    struct runner_line last_compile, last_run;  /* the script's own: what came before, the code put there */
    struct slice missing;                       /* a program */
    json_t *fetched;                            /* names of files, as they were printed */
    bool is_good;
};

static void finish(struct told *told)
{
    buffer_finish(&told->message);
    buffer_finish(&told->compile);
    buffer_finish(&told->run);
    buffer_finish(&told->files);
    json_decref(told->fetched);
}

static bool decode(struct slice word, struct buffer *ret)
{
    if (slice_is(word, "-") || word.len == 0 || word.len % 4 != 0)
        return slice_is(word, "-");
    uint8_t *room = buffer_reserve(ret, word.len);
    const int len = room ? EVP_DecodeBlock(room, word.data, (int)word.len) : -1;
    if (len < 0)
        return false;
    ret->len += (size_t)len - (word.data[word.len - 1] == '=') - (word.data[word.len - 2] == '=');
    return true;
}

static long number_of(struct slice word)
{
    char text[24] = "";
    if (word.len < sizeof(text))
        memcpy(text, word.data, word.len);
    return strtol(text, NULL, 10);
}

static void append_text(struct buffer *ret, const char *name, struct slice word)
{
    AUTO_BUFFER text = {0};
    decode(word, &text);
    json_text_printf(ret, ",%s:", name);
    json_text_append(ret, buffer_peek(&text));
}

/* Nothing is cut silently. */
static void note_cut(struct told *told, const char *what, struct slice word, size_t limit)
{
    if (word.len / 4 * 3 >= limit)
        buffer_printf(&told->message, "%s is cut at %zu bytes; ", what, limit);
}

static void read_part(struct told *told, const struct runner_line *line, struct buffer *ret)
{
    if (line->count < 5)
        return;
    const bool is_late = slice_is(line->words[1], "time");
    const long status = number_of(line->words[1]);
    json_text_printf(ret, "{\"status\":%s,\"execution_time\":%g,\"return_code\":",
                     is_late ? "TimeLimitExceeded" : "Finished", (double)number_of(line->words[2]) / 1e6);
    if (is_late)
        buffer_append_str(ret, "null");
    else
        buffer_printf(ret, "%ld", status);
    append_text(ret, "stdout", line->words[3]);
    append_text(ret, "stderr", line->words[4]);
    buffer_append_str(ret, "}");
    note_cut(told, "stdout", line->words[3], RUNNER_OUT_BYTES);
    note_cut(told, "stderr", line->words[4], RUNNER_ERR_BYTES);
    told->is_good = ret == &told->run && !is_late && status == 0;
}

static void read_file(struct told *told, const struct runner_line *line)
{
    AUTO_BUFFER path = {0};
    char *word = strndup((const char *)line->words[1].data, line->words[1].len);
    const bool is_new = word && !json_object_get(told->fetched, word) &&
                        json_object_set_new(told->fetched, word, json_true()) == 0;
    free(word);
    if (line->count < 3 || !is_new || !decode(line->words[1], &path))
        return;
    buffer_append_str(&told->files, told->files.len ? "," : "");
    json_text_append(&told->files, buffer_peek(&path));
    buffer_append_str(&told->files, ":");
    json_text_append(&told->files, slice_is(line->words[2], "-") ? slice_of("", 0) : line->words[2]);
}

static void read_prints(struct told *told, struct slice text)
{
    struct runner_line line;
    for (size_t at = 0; runner_next_line(text, &at, &line);) {
        if (line.count < 2)
            continue;
        if (slice_is(line.words[0], "missing")) {
            told->missing = line.words[1];
        } else if (slice_is(line.words[0], "file")) {
            read_file(told, &line);
        } else if (slice_is(line.words[0], "run")) {
            told->last_run = line;
        } else if (slice_is(line.words[0], "compile")) {
            told->last_compile = line;
        }
    }
}

static void write_part(struct buffer *ret, const char *name, const struct buffer *part)
{
    json_text_printf(ret, ",%s:", name);
    if (part->len > 0)
        buffer_append(ret, part->data, part->len);
    else
        buffer_append_str(ret, "null");
}

static void write_answer(const char *status, const struct told *told, struct buffer *ret)
{
    json_text_printf(ret, "{\"status\":%s,\"message\":", status);
    json_text_append(ret, buffer_peek(&told->message));
    write_part(ret, "compile_result", &told->compile);
    write_part(ret, "run_result", &told->run);
    buffer_append_str(ret, ",\"executor_pod_name\":null,\"files\":{");
    buffer_append(ret, told->files.data, told->files.len);
    buffer_append_str(ret, "}}");
}

/* The sandbox was used up, by more memory than it may have or the like: that is the code's doing. */
static void read_breach(struct told *told, const struct sluice_trajectory *t)
{
    buffer_printf(&told->message, "%s", t->detail);
    json_text_printf(
        &told->run, "{\"status\":\"Error\",\"execution_time\":null,\"return_code\":null,\"stdout\":\"\",\"stderr\":%s}",
        t->detail);
}

static void write_of(const struct sluice_trajectory *t, struct buffer *ret)
{
    struct told told = {.fetched = json_object()};
    for (size_t i = 0; i < t->message_count; i++)
        if (strcmp(t->messages[i].role, "tool") == 0)
            read_prints(&told, slice_from_str(t->messages[i].content));
    read_part(&told, &told.last_compile, &told.compile);
    read_part(&told, &told.last_run, &told.run);
    const bool has_run = told.run.len > 0 || told.compile.len > 0;
    if (!has_run && told.missing.len > 0)
        buffer_printf(&told.message, "the image of the sandbox has no %.*s", SLICE_ARG(told.missing));
    else if (!has_run && strcmp(t->outcome, "agent") == 0)
        read_breach(&told, t);
    else if (!has_run)
        buffer_printf(&told.message, "%s", t->detail);
    write_answer(told.run.len == 0 && told.compile.len == 0 ? "SandboxError"
                 : told.is_good                             ? "Success"
                                                            : "Failed",
                 &told, ret);
    finish(&told);
}

bool code_answer_write(const struct msg_trajectory *message, struct buffer *ret, struct refusal *no)
{
    struct trajectory_view view = {0};
    const bool is_read = trajectory_view_read(&view, message, no);
    if (is_read)
        write_of(&view.out, ret);
    trajectory_view_finish(&view);
    return is_read;
}

void code_answer_write_trouble(const char *words, struct buffer *ret)
{
    struct told told = {0};
    buffer_append_str(&told.message, words);
    write_answer("SandboxError", &told, ret);
    finish(&told);
}
