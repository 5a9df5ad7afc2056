#include "broker/task_summary.h"

#include <stdio.h>
#include <stdlib.h>

enum { LIMIT_DEFAULT_MS = 600000 };

/* A refusal of the task's own field, as a field of the submit it came in. */
static bool refuse_inside(struct refusal *no)
{
    char field[sizeof(no->field)];
    int len = snprintf(field, sizeof(field), no->field[0] ? "task.%.100s" : "task%s", no->field);
    memcpy(no->field, field, (size_t)len + 1);
    no->reason = REFUSAL_BAD_TASK;
    return false;
}

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

/* Sorted, and each once: tasks that need the same have the same text. */
static struct slice read_needs(const struct task *task, enum stage stage, char *ret, size_t size)
{
    struct task_need needs[TASK_NEEDS_MAX];
    char names[TASK_NEEDS_MAX][NEED_MAX + 1];
    const size_t count = task_needs(task, stage, needs);
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        snprintf(names[i], sizeof(names[i]), "%s:%s", handler_role_wire(needs[i].role), needs[i].name);
    qsort(names, count, sizeof(names[0]), by_text);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            len += (size_t)snprintf(ret + len, size - len, "%s%s", len ? " " : "", names[i]);
    return slice_of(ret, len);
}

bool task_summary_read(struct slice json, struct task_summary *ret, struct refusal *no)
{
    ret->task = (struct core_task){0};
    ret->image[0] = ret->run_needs[0] = ret->eval_needs[0] = '\0'; /* what it is made of is written below */
    struct task *task = task_parse(json, no);
    if (!task)
        return refuse_inside(no);
    if (strlen(task->id) >= sizeof(ret->id)) {
        task_destroy(task);
        return refuse(no, REFUSAL_BAD_TASK, "task.task", "the task's id is longer than %zu bytes", sizeof(ret->id) - 1);
    }
    strcpy(ret->id, task->id);
    snprintf(ret->policy, sizeof(ret->policy), "%s", strcmp(task->policy, "default") ? task->policy : "");
    const char *judge = task_eval_policy(task);
    snprintf(ret->judge, sizeof(ret->judge), "%s", judge ? judge : "");
    task_image_name(task, ret->image, sizeof(ret->image));
    ret->task = (struct core_task){
        .id = slice_from_str(ret->id),
        .image = slice_from_str(ret->image),
        .needs_engine = task_needs_engine(task),
        .policy = slice_from_str(ret->policy),
        .limit_ms = {[STAGE_INIT] = (int64_t)task->limits.init_s * 1000,
                     [STAGE_RUN] = (int64_t)(task->limits.run_s + task_after_run_s(task)) * 1000,
                     [STAGE_EVAL] = (int64_t)(task->limits.eval_s + task_before_eval_s(task) + task_score_s(task)) *
                                    1000},
        .total_ms = (int64_t)task->limits.total_s * 1000,
        .bytes = json.len,
        .needs = {[STAGE_RUN] = read_needs(task, STAGE_RUN, ret->run_needs, sizeof(ret->run_needs)),
                  [STAGE_EVAL] = read_needs(task, STAGE_EVAL, ret->eval_needs, sizeof(ret->eval_needs))},
        .reads_record = task_eval_reads_record(task),
        .judge = slice_from_str(ret->judge)};
    for (int stage = 0; stage < STAGE_COUNT; stage++)
        ret->task.shown_in |= task_is_shown(task, (enum stage)stage) ? 1u << stage : 0;
    task_destroy(task);
    return true;
}

void task_summary_default(struct task_summary *ret)
{
    *ret = (struct task_summary){.id = "unreadable"};
    ret->task.id = slice_from_str(ret->id);
    for (int stage = 0; stage < STAGE_COUNT; stage++)
        ret->task.limit_ms[stage] = LIMIT_DEFAULT_MS;
}

/* Eight bytes at a time, each multiplied into the whole (the finalizer is MurmurHash3's). */
static uint64_t mix(uint64_t hash, struct slice bytes)
{
    for (size_t at = 0; at < bytes.len; at += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes.data + at, bytes.len - at < 8 ? bytes.len - at : 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    hash ^= bytes.len;
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
    return hash ^ hash >> 33;
}

uint64_t task_summary_hash(struct slice stream, uint64_t samples, struct slice task)
{
    return mix(mix(mix(0, stream) ^ samples, task), stream);
}
