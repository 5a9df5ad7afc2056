#include "workers/handlers/roles/requests.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/base/utf8.h"
#include "schemas/trajectory/trajectory.h"
#include "common/loop/loop_now.h"
#include "workers/sandbox/command.h"
#include "workers/sandbox/requests.h"
#include "workers/stages/sandbox/stage_sandbox.h"

enum { READ_STANDARD = 1 << 20, MODE_STANDARD = 0644 };

uint64_t handler_left_ms(void)
{
    const int64_t deadline_ms = fiber_deadline(), left_ms = deadline_ms - loop_now_ms();
    return deadline_ms == 0 ? UINT64_MAX : left_ms > 0 ? (uint64_t)left_ms : 0;
}

/* Replies with a JSON object, whose reference it takes, and with bytes, if not NULL. */
static int reply_json(struct handler_job *job, json_t *json, const struct slice *data, struct fail *fail)
{
    AUTO_FREE char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (!text)
        return fail_memory(fail);
    struct msg_handler_reply reply = {.json = slice_from_str(text), .has_json = true};
    if (data) {
        reply.data = *data;
        reply.has_data = true;
    }
    handler_job_reply(job, &reply);
    return 0;
}

static int open_sandbox(struct handler_host *host, struct sandbox **ret, struct fail *fail)
{
    host->has_acted = true;
    return host->open(host->arg, ret, fail);
}

/* ---- commands -------------------------------------------------------------------------------- */

static int64_t timeout_of(const struct handler_host *host, const struct msg_handler_exec *exec)
{
    const int64_t standard_ms = stage_command_ms(host->task->limits.command_s);
    const int64_t most_ms = stage_command_ms(exec->timeout_ms / 1000 + 1);
    if (!exec->has_timeout_ms)
        return standard_ms;
    return (int64_t)exec->timeout_ms < most_ms ? (int64_t)exec->timeout_ms : most_ms;
}

static int reply_output(struct handler_job *job, const struct sandbox_output *output, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    utf8_append_repaired(&text, slice_of(output->text, output->len));
    json_t *words = json_stringn(text.data ? (const char *)text.data : "", text.len);
    return reply_json(job,
                      json_pack("{s:o, s:i, s:b, s:f}", "output", words, "status", output->status, "timed_out",
                                output->timed_out, "seconds", output->seconds),
                      NULL, fail);
}

static int serve_exec(struct handler_host *host, struct handler_job *job, struct fail *fail)
{
    const struct msg_handler_exec *exec = &job->message.as.handler_exec;
    const size_t most = exec->has_output_bytes ? exec->output_bytes : host->task->limits.output_bytes;
    struct sandbox_output output = {0};
    struct sandbox *sandbox;
    if (host->is_inside) { /* what ends with a command is everything that was started there */
        handler_job_refuse(job, "the handler runs in the sandbox itself, and can run commands there");
        return 0;
    }
    AUTO_FREE char *command = strndup((const char *)exec->command.data, exec->command.len);
    int code = command ? open_sandbox(host, &sandbox, fail) : fail_memory(fail);
    if (code == 0)
        code = sandbox_command(sandbox, command, timeout_of(host, exec), most, &output, fail);
    if (code == 0 && sandbox_breach(sandbox))
        code = fail_set(fail, -EIO, "%s limit", sandbox_breach(sandbox));
    if (code == 0)
        code = reply_output(job, &output, fail);
    free(output.text);
    return code;
}

/* ---- files ------------------------------------------------------------------------------------- */

/* A path that cannot be used is answered in words; what else fails, or the sandbox's end, ends the job. */
static int refuse_file(struct handler_job *job, struct sandbox *sandbox, int code, struct fail *fail)
{
    if (code == 0 || !sandbox_is_alive(sandbox) || sandbox_breach(sandbox) || !blame_is_file_fault(code))
        return code;
    handler_job_refuse(job, "%s", fail->text);
    return 0;
}

/* The bytes from `offset` on into `ret`, at most `length`. */
static int read_bytes(int file, uint64_t offset, size_t length, struct buffer *ret)
{
    uint8_t *room = buffer_reserve(ret, length ? length : 1);
    if (!room)
        return -ENOMEM;
    while (ret->len < length) {
        ssize_t got = pread(file, ret->data + ret->len, length - ret->len, (off_t)(offset + ret->len));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        ret->len += (size_t)got;
    }
    return 0;
}

static int read_file(struct handler_job *job, struct sandbox *sandbox, const char *path, struct fail *fail)
{
    const struct msg_handler_read *read = &job->message.as.handler_read;
    AUTO_BUFFER bytes = {0};
    struct stat it;
    AUTO_CLOSE int file = sandbox_open_file(sandbox, path, O_RDONLY | O_NONBLOCK | SANDBOX_AS_USER, 0, fail);
    if (file < 0)
        return refuse_file(job, sandbox, file, fail);
    int code = sandbox_stat_file(sandbox, file, &it, fail);
    if (code == 0 && !S_ISREG(it.st_mode)) {
        handler_job_refuse(job, "%.400s is not a regular file", path);
        return 0;
    }
    const uint64_t size = (uint64_t)it.st_size, from = read->has_offset ? read->offset : 0;
    const uint64_t left = size > from ? size - from : 0, most = read->has_length ? read->length : READ_STANDARD;
    if (code == 0 && (code = read_bytes(file, from, (size_t)(left < most ? left : most), &bytes)) < 0)
        fail_set(fail, code, "%.300s: %s", path, strerror(-code));
    if (code < 0)
        return refuse_file(job, sandbox, code, fail);
    const struct slice data = buffer_peek(&bytes);
    return reply_json(job, json_pack("{s:I, s:b}", "size", (json_int_t)size, "is_cut", bytes.len < left), &data, fail);
}

static int serve_read(struct handler_host *host, struct handler_job *job, struct fail *fail)
{
    const struct slice path = job->message.as.handler_read.path;
    AUTO_FREE char *name = strndup((const char *)path.data, path.len);
    struct sandbox *sandbox;
    int code = name ? open_sandbox(host, &sandbox, fail) : fail_memory(fail);
    return code < 0 ? code : read_file(job, sandbox, name, fail);
}

static int serve_write(struct handler_host *host, struct handler_job *job, struct fail *fail)
{
    const struct msg_handler_write *write = &job->message.as.handler_write;
    AUTO_FREE char *name = strndup((const char *)write->path.data, write->path.len);
    struct sandbox *sandbox;
    int code = name ? open_sandbox(host, &sandbox, fail) : fail_memory(fail);
    if (code < 0)
        return code;
    code = sandbox_write_file(sandbox, name, write->data.data, write->data.len,
                              write->has_mode ? (mode_t)write->mode : MODE_STANDARD, fail);
    if (code < 0)
        return refuse_file(job, sandbox, code, fail);
    return reply_json(job, json_object(), NULL, fail);
}

/* ---- notes and the time ---------------------------------------------------------------------------- */

static bool put_metric(void *arg, const char *name, double value, struct refusal *no)
{
    struct verdict *into = arg;
    for (size_t i = 0; i < into->metric_count; i++)
        if (strcmp(into->metrics[i].name, name) == 0) {
            into->metrics[i].value = value;
            return true;
        }
    return verdict_add_metric(into, name, value, no);
}

static bool put_noted(void *arg, const char *name, double value, struct refusal *no)
{
    return record_note_metric(arg, name, value, no);
}

static bool take_each(struct slice json, bool (*put)(void *arg, const char *name, double value, struct refusal *no),
                      void *arg, struct refusal *no)
{
    json_t *object = text_is_shallow(json, TEXT_LEVELS_MAX)
                         ? json_loadb((const char *)json.data, json.len, JSON_REJECT_DUPLICATES, NULL)
                         : NULL;
    bool done = json_is_object(object);
    const char *name;
    json_t *value;
    if (!done)
        refuse(no, REFUSAL_WRONG_TYPE, "metrics", "metrics are not a JSON object");
    json_object_foreach(object, name, value)
    {
        if (done && !json_is_number(value))
            done = refuse(no, REFUSAL_WRONG_TYPE, "metrics", "metrics: %.64s is not a number", name);
        if (done)
            done = put(arg, name, json_number_value(value), no);
    }
    json_decref(object);
    return done;
}

bool handler_take_metrics(struct slice json, struct verdict *into, struct refusal *no)
{
    return take_each(json, put_metric, into, no);
}

static bool take_noted(struct handler_host *host, struct slice json, struct refusal *no)
{
    return host->record ? take_each(json, put_noted, host->record, no) : handler_take_metrics(json, &host->notes, no);
}

static int serve_note(struct handler_host *host, struct handler_job *job, struct fail *fail)
{
    const struct msg_handler_note *note = &job->message.as.handler_note;
    struct refusal no = {0};
    if (note->has_metrics && !take_noted(host, note->metrics, &no))
        handler_job_refuse(job, "%s", no.text);
    else if (note->has_text && host->record && !record_say(host->record, "note", note->text, NULL, 0))
        return fail_set(fail, -ENOMEM, "out of memory, or the record is full");
    else
        return reply_json(job, json_object(), NULL, fail);
    return 0;
}

static int serve_clock(struct handler_job *job, struct fail *fail)
{
    const uint64_t left_ms = handler_left_ms();
    return reply_json(job, json_pack("{s:I}", "left_ms", (json_int_t)(left_ms < INT64_MAX ? left_ms : INT64_MAX)), NULL,
                      fail);
}

static int serve_request(struct handler_host *host, struct handler_job *job, struct fail *fail)
{
    switch (job->message.id) {
    case MSG_handler_exec: return serve_exec(host, job, fail);
    case MSG_handler_read: return serve_read(host, job, fail);
    case MSG_handler_write: return serve_write(host, job, fail);
    case MSG_handler_note: return serve_note(host, job, fail);
    case MSG_handler_clock: return serve_clock(job, fail);
    default: break;
    }
    return host->more ? host->more(host->arg, job, fail)
                      : fail_set(fail, -ENOMSG, "%s", message_get(job->message.id)->wire);
}

int handler_serve(struct handler_host *host, struct handler_job *job, struct fail *fail)
{
    int code = 0;
    while (code == 0 && !job->is_answered) {
        code = handler_job_next(job, fail);
        if (code == 0 && !job->is_answered)
            code = serve_request(host, job, fail);
    }
    return code;
}
