#include "workers/sandbox/init/proc.h"

#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "common/base/cleanup.h"

struct entry { /* as getdents64 writes it */
    uint64_t inode;
    int64_t offset;
    uint16_t len;
    uint8_t type;
    char name[];
};

/* The pids there are, at most `max`; their number. */
static size_t list_all(int proc, pid_t *ret, size_t max)
{
    char block[8192] __attribute__((aligned(8)));
    size_t count = 0;
    if (lseek(proc, 0, SEEK_SET) < 0)
        return 0;
    for (;;) {
        long got = syscall(SYS_getdents64, proc, block, sizeof(block));
        if (got <= 0)
            return count;
        for (long at = 0; at < got; at += ((struct entry *)(block + at))->len) {
            const char *name = ((struct entry *)(block + at))->name;
            if (isdigit((unsigned char)*name) && count < max)
                ret[count++] = (pid_t)strtol(name, NULL, 10);
        }
    }
}

/* The file /proc/PID/NAME as a string; false when it is gone. */
static bool read_file(int proc, pid_t pid, const char *name, char *ret, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "%d/%s", pid, name);
    AUTO_CLOSE int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, ret, size - 1);
    if (got <= 0)
        return false;
    ret[got] = '\0';
    return true;
}

/* 'R', 'S', 'Z' ..., the parent, and when it began in ticks since boot; 0 when it is gone. */
static char read_state(int proc, pid_t pid, pid_t *parent, uint64_t *began)
{
    char text[512], state = 0;
    *parent = 0;
    if (!read_file(proc, pid, "stat", text, sizeof(text)))
        return 0;
    const char *name_end = strrchr(text, ')'); /* a name may hold anything */
    /* state, ppid; pgrp to priority; nice, threads, -; starttime */
    return name_end && sscanf(name_end + 1,
                              " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d"
                              " %*d %*d %*d %lu",
                              &state, parent, began) == 3
               ? state
               : 0;
}

char proc_state(int proc, pid_t pid)
{
    pid_t parent;
    uint64_t began;
    return read_state(proc, pid, &parent, &began);
}

bool proc_is_still(int proc, pid_t pid)
{
    static pid_t threads[PROC_SEEN_MAX];
    char path[32];
    snprintf(path, sizeof(path), "%d/task", pid);
    AUTO_CLOSE int tasks = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const size_t count = tasks < 0 ? 0 : list_all(tasks, threads, PROC_SEEN_MAX);
    for (size_t i = 0; i < count; i++) {
        const char state = proc_state(tasks, threads[i]);
        if (state != 0 && !strchr("TtZXD", state))
            return false;
    }
    return true;
}

enum { FREEZE_PASSES = 64 };

static bool has(const pid_t *pids, size_t count, pid_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

void proc_take_census(int proc, struct proc_census *ret)
{
    ret->count = list_all(proc, ret->pids, PROC_HOST_MAX);
    for (size_t i = 0; i < ret->count; i++) {
        uint64_t began;
        char state = read_state(proc, ret->pids[i], &ret->parents[i], &began);
        if (state == 0 || state == 'Z' || state == 'X')
            ret->pids[i] = ret->parents[i] = 0;
    }
}

static size_t find_tree(const struct proc_census *census, pid_t root, pid_t *ret, size_t max)
{
    size_t count = 0, before = 0;
    if (max > 0 && has(census->pids, census->count, root))
        ret[count++] = root;
    while (before < count) { /* a generation at a time */
        size_t from = before;
        before = count;
        for (size_t i = 0; i < census->count && count < max; i++)
            if (census->parents[i] > 0 && has(ret + from, before - from, census->parents[i]))
                ret[count++] = census->pids[i];
    }
    return count;
}

static struct proc_census now; /* of those that nobody hands in */

size_t proc_tree(int proc, pid_t root, pid_t *ret, size_t max)
{
    proc_take_census(proc, &now);
    return find_tree(&now, root, ret, max);
}

static int compare_pids(const void *a, const void *b)
{
    const pid_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static size_t leave_out(pid_t first, pid_t *pids, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (pids[i] != first)
            pids[kept++] = pids[i];
    return kept;
}

size_t proc_inside_of(const struct proc_census *census, pid_t first, pid_t *ret, size_t max)
{
    size_t count = find_tree(census, first, ret, max);
    qsort(ret, count, sizeof(*ret), compare_pids);
    return leave_out(first, ret, count);
}

size_t proc_inside(int proc, pid_t first, pid_t *ret, size_t max)
{
    if (first == 1)
        return leave_out(1, ret, list_all(proc, ret, max));
    proc_take_census(proc, &now);
    return proc_inside_of(&now, first, ret, max);
}

size_t proc_children(int proc, pid_t parent, pid_t *ret, size_t max)
{
    size_t count = 0;
    proc_take_census(proc, &now);
    for (size_t i = 0; i < now.count && count < max; i++)
        if (now.parents[i] == parent)
            ret[count++] = now.pids[i];
    return count;
}

static void send_all(const pid_t *pids, size_t count, pid_t spared, int signal)
{
    for (size_t i = 0; i < count; i++)
        if (pids[i] != spared)
            kill(pids[i], signal);
}

void proc_signal_tree(int proc, pid_t root, pid_t spared, int signal)
{
    static pid_t pids[PROC_SEEN_MAX];
    size_t count = proc_tree(proc, root, pids, PROC_SEEN_MAX), frozen = 0;
    for (int pass = 0; signal == SIGKILL && frozen < count && pass < FREEZE_PASSES; pass++) {
        send_all(pids, count, spared, SIGSTOP);
        frozen = count;
        count = proc_tree(proc, root, pids, PROC_SEEN_MAX);
    }
    send_all(pids, count, spared, signal);
}

struct process {
    pid_t pid, parent;
    enum { UNDECIDED, SPARED, OTHER } verdict;
};

static struct process *find(struct process *all, size_t count, pid_t pid)
{
    size_t from = 0, end = count; /* in the order of their pids, as /proc lists them */
    while (from < end) {
        size_t middle = from + (end - from) / 2;
        if (all[middle].pid < pid)
            from = middle + 1;
        else
            end = middle;
    }
    return from < count && all[from].pid == pid ? &all[from] : NULL;
}

/* As the nearest ancestor of whom that is known; all on the way there are decided with it. */
static void decide(struct process *all, size_t count, struct process *process)
{
    struct process *up = process;
    for (size_t i = 0; i < count && up && up->verdict == UNDECIDED; i++)
        up = find(all, count, up->parent);
    const bool is_spared = up && up->verdict == SPARED;
    for (; process && process->verdict == UNDECIDED; process = find(all, count, process->parent))
        process->verdict = is_spared ? SPARED : OTHER;
}

/* All who live, and who of them is decided by himself. */
static size_t see(int proc, pid_t first, const struct proc_spared *spared, struct process *ret)
{
    static pid_t pids[PROC_SEEN_MAX];
    size_t seen = proc_inside(proc, first, pids, PROC_SEEN_MAX), count = 0;
    for (size_t i = 0; i < seen; i++) {
        struct process *it = &ret[count];
        uint64_t began;
        char state = read_state(proc, pids[i], &it->parent, &began);
        if (state == 0 || state == 'Z' || state == 'X')
            continue;
        it->pid = pids[i];
        if (it->pid == spared->alone)
            it->verdict = OTHER;
        else if (began < spared->before || has(spared->roots, spared->root_count, it->pid))
            it->verdict = SPARED;
        else
            it->verdict = UNDECIDED;
        count++;
    }
    return count;
}

size_t proc_others(int proc, pid_t first, const struct proc_spared *spared, pid_t *ret, size_t max)
{
    static struct process all[PROC_SEEN_MAX];
    size_t count = see(proc, first, spared, all), others = 0;
    for (size_t i = 0; i < count; i++) {
        decide(all, count, &all[i]);
        if (all[i].verdict == OTHER && all[i].pid != spared->alone && others < max)
            ret[others++] = all[i].pid;
    }
    return others;
}

/* Of what follows the name: state is field 3, threads 20, resident pages 24. */
bool proc_weigh(int proc, pid_t pid, uint64_t *kib, uint64_t *threads)
{
    char text[512];
    unsigned long count, pages;
    if (!read_file(proc, pid, "stat", text, sizeof(text)))
        return false;
    const char *name_end = strrchr(text, ')');
    if (!name_end || sscanf(name_end + 1,
                            " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d"
                            " %lu %*d %*u %*u %lu",
                            &count, &pages) != 2)
        return false;
    *threads = count > 0 ? count : 1;
    *kib = pages * ((uint64_t)sysconf(_SC_PAGESIZE) / 1024);
    return true;
}

static uint64_t read_kib(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

struct proportions proc_proportions(int proc, pid_t pid)
{
    char text[4096];
    uint64_t kib, threads;
    if (!read_file(proc, pid, "smaps_rollup", text, sizeof(text)))
        return (struct proportions){proc_weigh(proc, pid, &kib, &threads) ? kib : 0, 0};
    return (struct proportions){read_kib(text, "\nPss:"), read_kib(text, "\nPss_Shmem:")};
}

/* key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap */
static uint64_t segment_kib(const char *line)
{
    unsigned long resident;
    return sscanf(line, "%*d %*d %*o %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %lu", &resident) == 1 ? resident / 1024
                                                                                                       : 0;
}

uint64_t proc_segments_kib(int segments)
{
    char text[4096];
    size_t len = 0;
    uint64_t total = 0;
    ssize_t got;
    if (segments < 0 || lseek(segments, 0, SEEK_SET) < 0)
        return 0;
    while ((got = read(segments, text + len, sizeof(text) - 1 - len)) > 0) {
        char *line = text, *end;
        len += (size_t)got;
        text[len] = '\0';
        for (; (end = strchr(line, '\n')); line = end + 1)
            total += segment_kib(line);
        len -= (size_t)(line - text);
        memmove(text, line, len);
    }
    return total;
}
