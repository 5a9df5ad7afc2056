/*
 * edit.c - the tool `edit`: looks at files and changes them, with the commands and arguments of
 * the str_replace_based_edit_tool that models know. No process runs in the sandbox for it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/runtime/fiber.h"
#include "workers/sandbox/requests.h"
#include "workers/tools/arguments.h"
#include "workers/tools/edit/edit_call.h"
#include "workers/tools/edit/edit_view.h"
#include "workers/tools/toolbox.h"
#include "workers/tools/tools.h"

enum { CONTEXT_LINES = 4, NAMED_LINES = 10 };

/* 1: written, and what was before is remembered. */
static int save(struct edit_call *call, struct slice text)
{
    AUTO_BUFFER with_cr = {0};
    if (call->is_crlf && !edit_add_cr(text, &with_cr))
        return fail_memory(call->fail);
    struct slice bytes = call->is_crlf ? buffer_peek(&with_cr) : text;
    const bool was_there = call->file.fd >= 0;
    int code = edit_file_replace(&call->file, call->box->sandbox, bytes, call->fail);
    if (code < 0)
        return edit_answer_error(call, code);
    struct slice before = slice_of(call->file.bytes.data ? call->file.bytes.data : (uint8_t *)"", call->file.bytes.len);
    undo_push(call->undo, call->file.path, was_there ? before : (struct slice){0}, undo_mark(bytes));
    return 1;
}

/* ---- changes ---------------------------------------------------------------------------- */

/* The changed text around [start, start + len). */
static int show_change(struct edit_call *call, struct slice text, size_t start, size_t len)
{
    struct output output;
    AUTO_BUFFER head = {0};
    size_t first = edit_line_at(text, start), last = edit_line_at(text, start + len);
    size_t lines = edit_count_lines(text);
    size_t from = first > CONTEXT_LINES ? first - CONTEXT_LINES : 1;
    size_t to = last + CONTEXT_LINES < lines ? last + CONTEXT_LINES : lines;
    output_init(&output, call->box->limits->output_bytes);
    if (lines == 0)
        buffer_printf(&head, "%s was edited and is empty now.\n", call->path);
    else
        buffer_printf(&head, "%s was edited. Lines %zu to %zu are now:\n", call->path, from, to);
    output_append(&output, head.data, head.len);
    edit_show(&output, text, from, to);
    return edit_say_output(call, &output);
}

/* Replaces [start, start + old_len) with `part`. */
static int splice(struct edit_call *call, size_t start, size_t old_len, struct slice part)
{
    AUTO_BUFFER text = {0};
    struct slice old = edit_text_of(call);
    buffer_append(&text, old.data, start);
    buffer_append(&text, part.data, part.len);
    buffer_append(&text, old.data + start + old_len, old.len - start - old_len);
    if (text.failed)
        return fail_memory(call->fail);
    if (text.len > EDIT_FILE_MAX)
        return REFUSE(call, "%.400s: it would be larger than the %d bytes that can be edited.", call->path,
                      EDIT_FILE_MAX);
    int code = save(call, buffer_peek(&text));
    return code == 1 ? show_change(call, buffer_peek(&text), start, part.len) : code;
}

static int edit_create(struct edit_call *call)
{
    const char *text = tool_string(call->arguments, "file_text");
    struct edit_file *file = &call->file;
    if (!text)
        return REFUSE(call, "edit: create needs file_text.");
    int code = edit_file_open(file, call->box->sandbox, call->path, true, call->fail);
    if (code < 0)
        return edit_answer_error(call, code);
    if (file->is_dir)
        return REFUSE(call, "%.400s: it is a directory.", call->path);
    const bool was_there = file->fd >= 0;
    code = was_there ? edit_file_read(file, call->fail) : 0;
    if (code < 0)
        return edit_answer_error(call, code);
    code = save(call, slice_from_str(text));
    if (code != 1)
        return code;
    return tool_say(call->ret, call->fail, "%s was %s: %zu lines.", call->path, was_there ? "overwritten" : "created",
                    edit_count_lines(slice_from_str(text)));
}

/* "lines 4, 9 and 12" */
static void name_lines(struct buffer *out, const struct edit_matches *matches)
{
    size_t count = matches->count < NAMED_LINES ? matches->count : NAMED_LINES;
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "%s%zu", i == 0 ? "" : i + 1 == matches->count ? " and " : ", ", matches->lines[i]);
    if (count < matches->count)
        buffer_append_str(out, " ...");
}

static int refuse_many(struct edit_call *call, const struct edit_matches *matches)
{
    AUTO_BUFFER lines = {0};
    name_lines(&lines, matches);
    AUTO_FREE char *words = buffer_take_str(&lines);
    return REFUSE(call,
                  "%.400s: old_str is there %s%zu times, on lines %s. Nothing was changed. Take "
                  "more of the text around the one you mean into old_str.",
                  call->path, matches->count == EDIT_MATCHES_MAX ? "at least " : "", matches->count,
                  words ? words : "");
}

static int refuse_none(struct edit_call *call, struct slice part)
{
    size_t line;
    struct slice text = edit_text_of(call);
    if (!edit_find_nearest(text, part, &line))
        return REFUSE(call, "%.400s: old_str is not there. Nothing was changed.", call->path);
    struct slice near = edit_line(text, line);
    if (near.len > 200)
        near.len = 200;
    return REFUSE(call,
                  "%.400s: old_str is not there. Nothing was changed. The nearest is line %zu:\n"
                  "%.*s",
                  call->path, line, SLICE_ARG(near));
}

/* An argument in the file's own line ends: without CRs where those are put back later. */
static bool plain_argument(struct edit_call *call, const char *text, struct buffer *out)
{
    struct slice part = slice_from_str(text);
    buffer_append(out, "", 0);
    return call->is_crlf ? edit_drop_cr(part, out) : buffer_append(out, part.data, part.len);
}

static int edit_str_replace(struct edit_call *call)
{
    const char *old_str = tool_string(call->arguments, "old_str");
    const char *new_str = tool_string(call->arguments, "new_str");
    struct edit_matches matches;
    AUTO_BUFFER old = {0}, new = {0};
    if (!old_str || !*old_str)
        return REFUSE(call, "edit: str_replace needs old_str, and it cannot be empty.");
    if (strcmp(old_str, new_str ? new_str : "") == 0)
        return REFUSE(call, "edit: old_str and new_str are the same.");
    int code = edit_load(call, true);
    if (code != 1)
        return code;
    if (!plain_argument(call, old_str, &old) || !plain_argument(call, new_str ? new_str : "", &new))
        return fail_memory(call->fail);
    edit_find(edit_text_of(call), buffer_peek(&old), &matches);
    if (matches.count == 1)
        return splice(call, matches.first, old.len, buffer_peek(&new));
    return matches.count ? refuse_many(call, &matches) : refuse_none(call, buffer_peek(&old));
}

/* Whole lines: a newline where the text or the file before it has none. */
static int edit_insert(struct edit_call *call)
{
    const char *given = tool_string(call->arguments, "insert_text");
    const json_int_t after = tool_integer(call->arguments, "insert_line", -1);
    AUTO_BUFFER part = {0}, plain = {0};
    given = given ? given : tool_string(call->arguments, "new_str");
    if (!given || after < 0)
        return REFUSE(call, "edit: insert needs insert_line and insert_text.");
    int code = edit_load(call, true);
    if (code != 1)
        return code;
    struct slice text = edit_text_of(call);
    size_t lines = edit_count_lines(text);
    if ((size_t)after > lines)
        return REFUSE(call, "%.400s has %zu lines: insert_line is 0 to %zu, not %lld.", call->path, lines, lines,
                      (long long)after);
    size_t start = edit_line_start(text, (size_t)after + 1);
    const bool is_open = start > 0 && text.data[start - 1] != '\n';
    if (!plain_argument(call, given, &plain))
        return fail_memory(call->fail);
    buffer_append(&part, "\n", is_open);
    buffer_append(&part, plain.data, plain.len);
    if (!is_open && (plain.len == 0 || plain.data[plain.len - 1] != '\n'))
        buffer_append(&part, "\n", 1);
    return part.failed ? fail_memory(call->fail) : splice(call, start, 0, buffer_peek(&part));
}

/* ---- undo ------------------------------------------------------------------------------- */

static int bring_back(struct edit_call *call, const struct undo_step *step)
{
    struct edit_file *file = &call->file;
    int code = step->before
                   ? edit_file_replace(file, call->box->sandbox, slice_of(step->before, step->before_len), call->fail)
                   : sandbox_remove(call->box->sandbox, file->path, call->fail);
    if (code < 0)
        return edit_answer_error(call, code);
    const bool was_there = step->before;
    undo_drop(call->undo, step);
    return tool_say(call->ret, call->fail,
                    was_there ? "%s is as it was before its last edit." : "%s is gone again, as before it was created.",
                    call->path);
}

static int edit_undo(struct edit_call *call)
{
    struct edit_file *file = &call->file;
    int code = edit_file_open(file, call->box->sandbox, call->path, true, call->fail);
    if (code == 0 && file->fd >= 0 && !file->is_dir)
        code = edit_file_read(file, call->fail);
    if (code < 0)
        return edit_answer_error(call, code);
    const struct undo_step *step = undo_peek(call->undo, file->path);
    if (!step)
        return REFUSE(call, "%.400s: there is no edit to undo.", call->path);
    if (file->fd < 0 || file->is_dir || undo_mark(buffer_peek(&file->bytes)) != step->after)
        return REFUSE(call,
                      "%.400s: something else has changed it since its last edit, so that was not "
                      "undone.",
                      call->path);
    return bring_back(call, step);
}

/* ---- the tool --------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(struct edit_call *call);
} commands[] = {
    {"view", edit_view},     {"create", edit_create},  {"str_replace", edit_str_replace},
    {"insert", edit_insert}, {"undo_edit", edit_undo},
};

static int edit_open(struct toolbox *box, void **ret_state, struct fail *fail)
{
    (void)box;
    *ret_state = calloc(1, sizeof(struct undo));
    return *ret_state ? 0 : fail_memory(fail);
}

static void edit_close(void *state)
{
    undo_finish(state);
    free(state);
}

static int edit_run(struct toolbox *box, void *state, const json_t *arguments, struct tool_result *ret,
                    struct fail *fail)
{
    struct edit_call call = {.box = box,
                             .undo = state,
                             .arguments = arguments,
                             .path = tool_string(arguments, "path"),
                             .file = {.fd = -1},
                             .ret = ret,
                             .fail = fail};
    const char *name = tool_string(arguments, "command");
    size_t i = 0;
    while (strcmp(commands[i].name, name) != 0)
        i++;
    int code = commands[i].run(&call);
    edit_file_close(&call.file);
    buffer_finish(&call.plain);
    return code;
}

const struct tool tool_edit = {
    .name = "edit",
    .doc = "Looks at files and changes them. view shows a file with numbered lines, or what is in a "
           "directory; create writes a whole file; str_replace replaces one piece of text; insert "
           "adds lines; undo_edit takes back the last edit of a file.",
    .needs_sandbox = true,
    .arguments = {{"command", TOOL_STRING, true, 0, 0, "view|create|str_replace|insert|undo_edit", "What to do."},
                  {"path", TOOL_STRING, true, 1, 4000, NULL,
                   "The file or directory: absolute, or relative to the working directory."},
                  {"view_range", TOOL_INTEGERS, false, 2, 2, NULL,
                   "view: the first and the last line to show; -1 is the last of the file."},
                  {"file_text", TOOL_STRING, false, 0, 1048576, NULL, "create: the whole file."},
                  {"old_str", TOOL_STRING, false, 0, 1048576, NULL,
                   "str_replace: the text to replace, exactly as it is; it must be there just once."},
                  {"new_str", TOOL_STRING, false, 0, 1048576, NULL,
                   "str_replace: the text in its place; none deletes it."},
                  {"insert_line", TOOL_INTEGER, false, 0, 4194304, NULL,
                   "insert: the line after which to insert; 0 is before the first."},
                  {"insert_text", TOOL_STRING, false, 0, 1048576, NULL, "insert: the lines."}},
    .open = edit_open,
    .call = edit_run,
    .close = edit_close,
};
