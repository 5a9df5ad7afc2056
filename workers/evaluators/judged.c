#include "workers/evaluators/judged.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "schemas/task/task_shown.h"
#include "schemas/trajectory/trajectory.h"
#include "workers/files/file_give.h"
#include "workers/evaluators/evaluator_files.h"
#include "workers/files/dirtree.h"
#include "workers/runtime/offload.h"

enum { AT_ONCE_MAX = 65536 }; /* bytes of a record that are read without a thread */

/* ---- the conversation ------------------------------------------------------------------------ */

/* The caller frees it; NULL: out of memory. */
static char *message_text(const struct record_message *message)
{
    json_t *json = json_pack("{s:s, s:s}", "role", message->role, "content", message->content);
    if (json && message->tool &&
        (json_object_set_new(json, "tool", json_string(message->tool)) < 0 ||
         json_object_set_new(json, "exit_status", json_integer(message->exit_status)) < 0)) {
        json_decref(json);
        return NULL;
    }
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return text;
}

static void write_texts(char *const *texts, size_t from, size_t count, bool as_lines, struct buffer *out)
{
    if (!as_lines)
        buffer_append(out, "[", 1);
    for (size_t i = from; i < count; i++) {
        buffer_append_str(out, texts[i]);
        if (as_lines || i + 1 < count)
            buffer_append(out, as_lines ? "\n" : ",", 1);
    }
    if (!as_lines)
        buffer_append(out, "]", 1);
}

/* From the last message to the first that fits. */
static int write_messages(const struct record *record, bool as_lines, struct buffer *out, struct fail *fail)
{
    const size_t count = record->message_count;
    char **texts = calloc(count + 1, sizeof(*texts));
    size_t from = count, bytes = 2;
    bool is_whole = texts != NULL;
    while (is_whole && from > 0) {
        char *text = message_text(&record->messages[from - 1]);
        is_whole = text != NULL;
        bytes += text ? strlen(text) + 1 : 0;
        if (bytes > JUDGED_MESSAGES_MAX) {
            free(text);
            break;
        }
        if (text)
            texts[--from] = text;
    }
    if (is_whole)
        write_texts(texts, from, count, as_lines, out);
    for (size_t i = from; texts && i < count; i++)
        free(texts[i]);
    free(texts);
    return is_whole && !out->failed ? 0 : fail_memory(fail);
}

struct conversation_work {
    struct slice record;
    bool as_lines;
    struct buffer *out;
    struct fail *fail;
};

static int read_record(void *arg, const atomic_bool *stop)
{
    const struct conversation_work *work = arg;
    struct refusal no = {0};
    struct record record;
    (void)stop;
    int code = record_decode(work->record, &record, &no)
                   ? write_messages(&record, work->as_lines, work->out, work->fail)
                   : fail_set(work->fail, -EBADMSG, "the run's record cannot be read: %.200s", no.text);
    record_finish(&record);
    return code;
}

int judged_messages(const struct job *job, bool as_lines, struct buffer *out, struct fail *fail)
{
    struct conversation_work work = {job->start.record, as_lines, out, fail};
    if (work.record.len == 0)
        return 0;
    return work.record.len <= AT_ONCE_MAX ? read_record(&work, NULL) : offload_run(read_record, &work, fail);
}

/* ---- files ------------------------------------------------------------------------------------ */

int judged_write(struct sandbox *sandbox, const struct job *job, struct fail *fail)
{
    AUTO_BUFFER messages = {0};
    AUTO_BUFFER room = {0};
    struct slice task;
    const int dir = sandbox_commands_dir(sandbox);
    int code = judged_messages(job, true, &messages, fail);
    if (code == 0)
        code = file_give(dir, "answer", 0444, job->start.answer, fail);
    if (code == 0 && !task_shown_to(TASK_VIEWER_EVALUATOR, job->start.task, &room, &task))
        code = fail_memory(fail);
    if (code == 0)
        code = file_give(dir, "task.json", 0444, task, fail);
    return code < 0 ? code : file_give(dir, "messages.jsonl", 0444, buffer_peek(&messages), fail);
}

void judged_clear(struct sandbox *sandbox)
{
    static const char *const names[] = {"answer", "task.json", "messages.jsonl"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlinkat(sandbox_commands_dir(sandbox), names[i], 0);
}
