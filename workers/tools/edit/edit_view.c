/* Files and directories as the tool `edit` shows them. */
#include "workers/tools/edit/edit_view.h"

#include "common/base/cleanup.h"
#include "common/base/utf8.h"
#include "workers/tools/edit/edit_call.h"
#include "workers/tools/edit/edit_list.h"

int edit_say_output(struct edit_call *call, struct output *output)
{
    size_t len;
    call->ret->total = output->total;
    AUTO_FREE char *text = output_take(output, &len);
    return text ? tool_say_bytes(call->ret, slice_of(text, len), call->fail) : fail_memory(call->fail);
}

static int view_directory(struct edit_call *call)
{
    AUTO_BUFFER list = {0};
    struct output output;
    if (json_object_get(call->arguments, "view_range"))
        return REFUSE(call, "%.400s: it is a directory, and view_range is for files.", call->path);
    int code = edit_file_list(&call->file, call->box->sandbox, &list, call->fail);
    if (code < 0)
        return edit_answer_error(call, code);
    output_init(&output, call->box->limits->output_bytes);
    output_append(&output, list.data, list.len);
    return edit_say_output(call, &output);
}

/* The lines asked for, or all of them; false: answered already. */
static bool read_range(struct edit_call *call, size_t lines, size_t *from, size_t *to, int *ret)
{
    const json_t *range = json_object_get(call->arguments, "view_range");
    *from = 1;
    *to = lines;
    if (!json_is_array(range))
        return true;
    json_int_t first = json_integer_value(json_array_get(range, 0));
    json_int_t last = json_integer_value(json_array_get(range, 1));
    if (first < 1 || (size_t)first > (lines ? lines : 1))
        *ret = REFUSE(call, "%.400s has %zu lines: view_range cannot begin at %lld.", call->path, lines,
                      (long long)first);
    else if (last != -1 && last < first)
        *ret = REFUSE(call, "view_range ends at %lld, before it begins; -1 is the last line.", (long long)last);
    else {
        *from = (size_t)first;
        if (last != -1 && (size_t)last < lines)
            *to = (size_t)last;
        return true;
    }
    return false;
}

static int view_text(struct edit_call *call)
{
    struct slice text = edit_text_of(call);
    struct output output;
    size_t from, to, lines = edit_count_lines(text);
    int code = 0;
    if (!read_range(call, lines, &from, &to, &code))
        return code;
    output_init(&output, call->box->limits->output_bytes);
    edit_show(&output, text, from, to);
    const char *const notes[] = {
        lines == 0 ? "[the file is empty]\n" : "",
        lines > 0 && text.data[text.len - 1] != '\n' ? "[no newline at the end of the file]\n" : "",
        call->is_crlf ? "[the lines end with CR LF, which edits keep]\n" : "",
        utf8_is_valid(text) ? "" : "[some bytes are not UTF-8]\n",
    };
    for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++)
        output_append(&output, notes[i], strlen(notes[i]));
    return edit_say_output(call, &output);
}

int edit_view(struct edit_call *call)
{
    struct edit_file *file = &call->file;
    int code = edit_file_open(file, call->box->sandbox, call->path, false, call->fail);
    if (code < 0)
        return edit_answer_error(call, code);
    if (file->is_dir)
        return view_directory(call);
    edit_file_close(file);
    code = edit_load(call, false);
    return code == 1 ? view_text(call) : code;
}
