#include "workers/stages/collect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/runtime/activity.h"
#include "workers/runtime/fiber.h"
#include "common/loop/loop_now.h"
#include "workers/stages/sandbox/stage_environment.h"
#include "workers/tools/bash/shell.h"

enum { OUTPUT_MAX = 4096, TAIL_MAX = 1200 };

struct collecting {
    const struct job *job;
    const struct stage_sandbox *stage;
    struct record *record;
    struct shell *shell;
};

static bool tell(struct record *record, size_t i, const char *how, const char *output, int status)
{
    AUTO_BUFFER text = {0};
    buffer_printf(&text, "eval.collect[%zu] %s%s%s", i, how, *output ? ": " : "", output);
    return !text.failed && record_say(record, "system", buffer_peek(&text), NULL, status);
}

/* By a bash of its own, as a child of the shell, which keeps what it leaves running. */
static char *bash_line(const char *command, const char *home)
{
    AUTO_BUFFER line = {0};
    if (home) {
        buffer_append_str(&line, "HOME=");
        buffer_append_quoted(&line, home);
    }
    buffer_append_str(&line, home ? " bash -c " : "bash -c ");
    buffer_append_quoted(&line, command);
    return buffer_take_str(&line);
}

/* 0, also where it failed; negative errno: no other can be run. */
static int run_as(struct collecting *collecting, size_t i, const struct task_collect *collect, const char *home,
                  struct fail *fail)
{
    struct sandbox_output output = {0};
    char how[160];
    AUTO_FREE char *line = bash_line(collect->command, home);
    if (!line)
        return fail_memory(fail);
    int code = shell_run(collecting->shell, line, (int64_t)collect->timeout_s * 1000, OUTPUT_MAX, &output, fail);
    if (code == 0 && (output.status != 0 || output.timed_out)) {
        stage_describe_end(collecting->stage, &output, how, sizeof(how));
        if (!tell(collecting->record, i, how, stage_output_tail(&output, TAIL_MAX), output.status))
            code = fail_memory(fail);
    }
    free(output.text);
    return code;
}

static int run_one(struct collecting *collecting, size_t i, const struct task_collect *collect, struct fail *fail)
{
    struct fail why = {0};
    AUTO_FREE char *home = NULL;
    int code = collect->user ? stage_sandbox_home(collecting->stage, collecting->job, collect->user, &home, &why) : 0;
    if (code == -EINVAL)
        return tell(collecting->record, i, "was not run", why.text, -1) ? 0 : fail_memory(fail);
    return code < 0 ? fail_set(fail, code, "%s", why.text) : run_as(collecting, i, collect, home, fail);
}

static void run_all(struct collecting *collecting)
{
    const struct task_collect_list *list = &collecting->job->task->collect;
    struct fail fail = {0};
    size_t i = 0;
    int code = shell_open(collecting->stage->sandbox, &collecting->shell, &fail);
    for (; i < list->count && code == 0; i++)
        code = run_one(collecting, i, &list->each[i], &fail);
    shell_close(&collecting->shell);
    if (code < 0 && !fiber_is_cancelled() && !sandbox_breach(collecting->stage->sandbox))
        tell(collecting->record, i - (i > 0), "could not be run", fail.text, -1);
}

static bool has_sandbox(struct job *job, const struct stage_sandbox *stage, struct agent_run *run)
{
    struct fail fail = {0};
    const int code = stage->sandbox ? 0 : run->open_sandbox(run, &fail);
    if (code < 0)
        stage_end_failed(job, stage, BLAME_NOBODY, code, &fail);
    return code == 0;
}

bool collect_run(struct job *job, struct stage_sandbox *stage, struct agent_run *run)
{
    if (stage->sandbox && sandbox_breach(stage->sandbox))
        return true;
    struct collecting collecting = {.job = job, .stage = stage, .record = run->record};
    fiber_lift_deadline(loop_now_ms() + (int64_t)task_collect_s(&job->task->collect) * 1000);
    activity_tool("eval.collect");
    activity_enter(PHASE_TOOL);
    const bool is_open = has_sandbox(job, stage, run);
    if (is_open)
        run_all(&collecting);
    activity_leave(PHASE_TOOL);
    fiber_pop_deadline();
    return is_open;
}
