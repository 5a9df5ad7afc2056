#include "workers/sandbox/init/starts.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/sandbox/init/launch.h"

int starts_check(const struct starts *starts, struct fail *fail)
{
    return starts->count < STARTS_MAX
               ? 0
               : fail_set(fail, -EAGAIN, "%d processes are running already", STARTS_MAX);
}

void starts_add(struct starts *starts, pid_t pid, uint32_t id, int report)
{
    starts->each[starts->count++] = (struct start){pid, id, report, clock_ms() + STARTS_LIMIT_MS};
}

struct start *starts_find(struct starts *starts, pid_t pid)
{
    for (size_t i = 0; i < starts->count; i++)
        if (starts->each[i].pid == pid)
            return &starts->each[i];
    return NULL;
}

void starts_drop(struct starts *starts, struct start *start)
{
    cleanup_close(&start->report);
    *start = starts->each[--starts->count];
}

size_t starts_poll(const struct starts *starts, struct pollfd *ret)
{
    size_t count = 0;
    for (size_t i = 0; i < starts->count; i++)
        if (starts->each[i].report >= 0)
            ret[count++] = (struct pollfd){starts->each[i].report, POLLIN, 0};
    return count;
}

int starts_left_ms(const struct starts *starts)
{
    int64_t least = -1, now_ms = clock_ms();
    for (size_t i = 0; i < starts->count; i++) {
        int64_t left = starts->each[i].until_ms - now_ms;
        if (starts->each[i].report >= 0 && (least < 0 || left < least))
            least = left > 0 ? left : 0;
    }
    return (int)least;
}

int starts_look(struct start *start, struct fail *fail)
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
