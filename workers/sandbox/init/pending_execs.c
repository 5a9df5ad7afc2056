#include "workers/sandbox/init/pending_execs.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/sandbox/init/launch.h"

int execs_check(const struct pending_execs *execs, struct fail *fail)
{
    return execs->count < EXECS_MAX ? 0 : fail_set(fail, -EAGAIN, "%d processes are running already", EXECS_MAX);
}

void execs_add(struct pending_execs *execs, pid_t pid, uint32_t id, int report)
{
    execs->each[execs->count++] = (struct pending_exec){pid, id, report, clock_ms() + EXECS_LIMIT_MS};
}

struct pending_exec *execs_find(struct pending_execs *execs, pid_t pid)
{
    for (size_t i = 0; i < execs->count; i++)
        if (execs->each[i].pid == pid)
            return &execs->each[i];
    return NULL;
}

void execs_drop(struct pending_execs *execs, struct pending_exec *start)
{
    cleanup_close(&start->report);
    *start = execs->each[--execs->count];
}

size_t execs_poll(const struct pending_execs *execs, struct pollfd *ret)
{
    size_t count = 0;
    for (size_t i = 0; i < execs->count; i++)
        if (execs->each[i].report >= 0)
            ret[count++] = (struct pollfd){execs->each[i].report, POLLIN, 0};
    return count;
}

int execs_left_ms(const struct pending_execs *execs)
{
    int64_t least = -1, now_ms = clock_ms();
    for (size_t i = 0; i < execs->count; i++) {
        int64_t left = execs->each[i].until_ms - now_ms;
        if (execs->each[i].report >= 0 && (least < 0 || left < least))
            least = left > 0 ? left : 0;
    }
    return (int)least;
}

int execs_look(struct pending_exec *start, struct fail *fail)
{
    int code = start->report < 0 ? 1 : launch_look(start->report, fail);
    if (code == 0 && clock_ms() >= start->until_ms)
        code = fail_set(fail, -ENOEXEC, "the process was stopped before it began, and killed");
    if (code < 0)
        kill(start->pid, SIGKILL); /* it may be stopped; a child of ours, the number is its own */
    if (code > 0) {
        cleanup_close(&start->report);
        start->report = -1;
    }
    return code;
}
