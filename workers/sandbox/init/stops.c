#include "workers/sandbox/init/stops.h"

#include <signal.h>
#include <time.h>

#include "common/base/clock.h"

enum { PAUSE_US = 500, HOLD_WAIT_MS = 5000 };

static bool has(const struct stops *stops, pid_t pid)
{
    for (size_t i = 0; i < stops->count; i++)
        if (stops->pids[i] == pid)
            return true;
    return false;
}

/* Whether it is news. */
static bool stop(struct stops *stops, pid_t pid)
{
    const bool is_new = !has(stops, pid) && stops->count < PROC_SEEN_MAX;
    if (is_new)
        stops->pids[stops->count++] = pid;
    kill(pid, SIGSTOP);
    return is_new;
}

/* Whether all there are stood still before, and none has appeared. */
static bool hold_once(const struct init *init, struct stops *stops)
{
    static pid_t pids[PROC_SEEN_MAX];
    const int proc = init->container.proc;
    const size_t count = proc_inside(proc, init->pid, pids, PROC_SEEN_MAX);
    bool all_still = true;
    for (size_t i = 0; i < count; i++) {
        const char state = proc_state(proc, pids[i]);
        if (state != 0 && state != 'T' && state != 't' && stop(stops, pids[i]))
            all_still = false;
        all_still = all_still && proc_is_still(proc, pids[i]);
    }
    return all_still;
}

bool stops_hold(const struct init *init, struct stops *ret)
{
    const int64_t until_ms = clock_ms() + HOLD_WAIT_MS;
    ret->count = 0;
    do {
        if (hold_once(init, ret))
            return true;
        nanosleep(&(struct timespec){0, PAUSE_US * 1000}, NULL);
    } while (clock_ms() < until_ms);
    return false;
}

void stops_release(struct stops *stops)
{
    while (stops->count > 0)
        kill(stops->pids[--stops->count], SIGCONT);
}
