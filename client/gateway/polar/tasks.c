#include "client/gateway/polar/tasks.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/digest/digest.h"

enum { DIGITS = 32 };

/* ---- names ----------------------------------------------------------------------------------------------- */

bool tasks_base(const struct polar_of *of, struct slice task_id, char ret[BOOK_BASE_SIZE])
{
    char text[DIGEST_SIZE];
    struct digest *digest = digest_begin();
    if (!digest)
        return false;
    digest_add_text(digest, caller_mark(of->identity->caller));
    digest_add(digest, task_id);
    if (!digest_end(&digest, text))
        return false;
    snprintf(ret, BOOK_BASE_SIZE, "polar-%.*s", DIGITS, text + strlen("sha256:"));
    return true;
}

void session_id_of(const char *group, unsigned sample, char ret[48])
{
    char name[BOOK_GROUP_SIZE + 16], text[DIGEST_SIZE];
    snprintf(name, sizeof(name), "%s/%u", group, sample);
    if (!digest_of(slice_from_str(name), text))
        snprintf(text, sizeof(text), "sha256:%064u", sample);
    const char *at = text + strlen("sha256:");
    snprintf(ret, 48, "sk-polar-%.8s-%.4s-%.4s-%.4s-%.12s", at, at + 8, at + 12, at + 16, at + 20);
}

const char *task_status_word(const struct polar_task *task)
{
    static const char *const words[] = {"running", "cancelling", "completed", "cancelled"};
    return words[task->status];
}

bool task_is_over(const struct polar_task *task)
{
    return task->status == TASK_COMPLETED || task->status == TASK_CANCELLED;
}

/* ---- tasks ------------------------------------------------------------------------------------------------- */

struct polar_task *tasks_find(struct polar_of *of, const char *base)
{
    return table_find(&of->tasks, slice_from_str(base));
}

static void free_task(struct polar_task *task)
{
    char *const texts[] = {task->id, task->harness, task->model, task->callback_url, task->evaluator};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        free(texts[i]);
    caller_forget(&task->ask);
    list_remove(&task->older);
    free(task->sessions);
    free(task);
}

/* The one before it, where nothing came of this. */
static void restore(struct polar_of *of, const char *base)
{
    struct polar_task *older, *newest = NULL;
    LIST_EACH(older, &of->gone, older)
        if (strcmp(older->base, base) == 0 && (!newest || older->number > newest->number))
            newest = older;
    if (!newest)
        return;
    list_remove(&newest->older);
    newest->is_gone = !table_put(&of->tasks, slice_from_str(newest->base), newest);
    if (newest->is_gone)
        list_push_back(&of->gone, &newest->older);
}

void task_drop(struct polar_task *task)
{
    if (tasks_find(task->of, task->base) == task) {
        table_take(&task->of->tasks, slice_from_str(task->base));
        restore(task->of, task->base);
    }
    struct polar_ended *ended;
    LIST_EACH(ended, &task->of->ended, link)
        if (ended->task == task)
            ended->task = NULL;
    free_task(task);
}

/* An id that is used again: what there was of it is let go. */
static void replace(struct polar_of *of, struct polar_task *older)
{
    table_take(&of->tasks, slice_from_str(older->base));
    older->is_gone = true;
    if (older->unacked > 0)
        list_push_back(&of->gone, &older->older);
    else
        free_task(older);
}

struct polar_task *tasks_add(struct polar_of *of, const char *base, unsigned number, unsigned total)
{
    struct polar_task *older = tasks_find(of, base);
    if (of->tasks.count >= BOOK_TASKS_MAX && !older)
        return NULL;
    struct polar_task *task = calloc(1, sizeof(*task));
    if (!task)
        return NULL;
    *task = (struct polar_task){.of = of, .number = number, .created_ms = clock_wall_ms()};
    task->updated_ms = task->created_ms;
    list_init(&task->older);
    snprintf(task->base, sizeof(task->base), "%s", base);
    snprintf(task->group, sizeof(task->group), "%s-%u", base, number);
    if (older)
        replace(of, older);
    if (task_grow(task, total) && table_put(&of->tasks, slice_from_str(task->base), task))
        return task;
    free_task(task);
    return NULL;
}

bool task_grow(struct polar_task *task, unsigned total)
{
    if (total > TASK_SAMPLES_MAX)
        total = TASK_SAMPLES_MAX;
    if (total <= task->total)
        return true;
    struct polar_session *sessions = realloc(task->sessions, total * sizeof(*sessions));
    if (!sessions)
        return false;
    memset(sessions + task->total, 0, (total - task->total) * sizeof(*sessions));
    task->sessions = sessions;
    task->total = total;
    return true;
}

void task_begin_anew(struct polar_task *task)
{
    memset(task->sessions, 0, task->total * sizeof(*task->sessions));
    task->completed = task->errored = task->usable = 0;
    task->unacked = 0;
    if (task->status == TASK_COMPLETED)
        task->status = TASK_RUNNING;
    else if (task->status == TASK_CANCELLED)
        task->status = TASK_CANCELLING;
}

static void tell_text(char **ret, const json_t *kept, const char *name)
{
    const char *text = json_string_value(json_object_get(kept, name));
    if (text && !*ret)
        *ret = strdup(text);
}

void task_tell(struct polar_task *task, const json_t *kept)
{
    if (!json_is_object(kept) || task->is_known)
        return;
    task->is_known = true;
    tell_text(&task->id, kept, "task_id");
    tell_text(&task->harness, kept, "harness");
    tell_text(&task->model, kept, "model");
    tell_text(&task->callback_url, kept, "callback_url");
    tell_text(&task->evaluator, kept, "evaluator");
    task->early_stop = (unsigned)json_integer_value(json_object_get(kept, "early_stop_min_usable_sessions"));
    task->created_ms = (int64_t)json_integer_value(json_object_get(kept, "created_ms"));
    task_grow(task, (unsigned)json_integer_value(json_object_get(kept, "num_samples")));
}

static void on_cancelled(void *arg, const struct answer *answer)
{
    (void)arg; /* what it was for ends by the stream */
    (void)answer;
}

void task_cancel(struct polar_task *task)
{
    struct caller *caller = task->of->identity->caller;
    struct refusal no;
    const struct msg_rollout_cancel in = {
        .tag = caller_next_tag(caller), .group = slice_from_str(task->group), .has_group = true};
    caller_forget(&task->ask);
    task->ask.answered = on_cancelled;
    task->ask.arg = task;
    caller_ask(caller, &task->ask, MSG_rollout_cancel, &in, in.tag, HTTP_CALL_WAIT_MS, &no);
}

/* ---- all of them ------------------------------------------------------------------------------------------- */

void polar_tasks_finish(struct polar_of *of)
{
    struct polar_ended *ended;
    struct polar_task *task;
    size_t at = 0;
    LIST_EACH(ended, &of->ended, link)
        free(ended);
    list_init(&of->ended);
    for (; (task = table_next(&of->tasks, &at)); at = 0) {
        table_take(&of->tasks, slice_from_str(task->base));
        free_task(task);
    }
    LIST_EACH(task, &of->gone, older)
        free_task(task);
    table_finish(&of->tasks);
}
