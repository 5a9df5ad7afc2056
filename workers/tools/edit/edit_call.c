#include "workers/tools/edit/edit_call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "workers/runtime/fiber.h"

int edit_answer_error(struct edit_call *call, int code)
{
    struct sandbox *sandbox = call->box->sandbox;
    const bool is_ours = code == -ENOMEM || code == -EMFILE || code == -ENFILE;
    const bool is_end = code == -ECANCELED || (code == -ETIMEDOUT && fiber_is_late());
    if (is_ours || is_end || !sandbox_is_alive(sandbox) || sandbox_breach(sandbox))
        return code;
    char words[sizeof(call->fail->text)];
    snprintf(words, sizeof(words), "%s", call->fail->text);
    return REFUSE(call, "%s.", words);
}

int edit_load(struct edit_call *call, bool to_write)
{
    struct edit_file *file = &call->file;
    int code = edit_file_open(file, call->box->sandbox, call->path, to_write, call->fail);
    if (code < 0)
        return edit_answer_error(call, code);
    if (file->fd < 0)
        return REFUSE(call, "%.400s: there is no such file.", call->path);
    if (file->is_dir)
        return REFUSE(call, "%.400s: it is a directory.", call->path);
    code = edit_file_read(file, call->fail);
    if (code < 0)
        return edit_answer_error(call, code);
    struct slice bytes = buffer_peek(&file->bytes);
    if (bytes.len > 0 && memchr(bytes.data, '\0', bytes.len))
        return REFUSE(call, "%.400s: it is a binary file of %zu bytes.", call->path, bytes.len);
    call->is_crlf = edit_is_crlf(bytes);
    return !call->is_crlf || edit_drop_cr(bytes, &call->plain) ? 1 : fail_memory(call->fail);
}

struct slice edit_text_of(const struct edit_call *call)
{
    struct slice text = buffer_peek(call->is_crlf ? &call->plain : &call->file.bytes);
    return text.len ? text : slice_from_str("");
}
