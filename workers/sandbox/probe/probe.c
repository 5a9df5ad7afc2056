#include "workers/sandbox/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "common/files/dirtree_remove.h"
#include "workers/sandbox/probe/remedy.h"

#define CHECK_AFTER(name) CHECK_##name

static const struct {
    const char *word, *title, *use;
    uint64_t namespaces;
    enum probe_check after;
    int64_t limit_ms;
    int (*try)(const struct probe_place *place, struct fail *fail);
} checks[] = {
#define CHECK(name, title, namespaces, after, limit_ms, use)                                                           \
    {#name, title, use, namespaces, CHECK_AFTER(after), limit_ms, probe_try_##name},
#include "workers/sandbox/proto/checks.def"
#undef CHECK
};

const char *probe_word(enum probe_check check) { return checks[check].word; }
const char *probe_title(enum probe_check check) { return checks[check].title; }
const char *probe_use(enum probe_check check) { return checks[check].use; }

int probe_find_program(const char *name, struct fail *fail)
{
    const char *at = getenv("PATH");
    while (at && *at) {
        char path[PATH_MAX];
        size_t len = strcspn(at, ":");
        int wrote = snprintf(path, sizeof(path), "%.*s/%s", (int)len, at, name);
        if (len && wrote < (int)sizeof(path) && access(path, X_OK) == 0)
            return fail_set(fail, 0, "%s", path);
        at += len + (at[len] == ':');
    }
    return fail_set(fail, -ENOENT, "not in PATH");
}

/* ---- one check, in a process of its own ---------------------------------------------- */

static _Noreturn void try_in_child(int (*check)(const struct probe_place *, struct fail *),
                                   const struct probe_place *place, int told)
{
    struct fail fail = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fail.code = check(place, &fail);
    _exit(write(told, &fail, sizeof(fail)) == sizeof(fail) ? 0 : 1);
}

static void take_answer(int told, int64_t limit_ms, struct probe_result *ret)
{
    struct fail fail;
    if (poll(&(struct pollfd){told, POLLIN, 0}, 1, (int)limit_ms) <= 0)
        fail_set(&fail, -ETIMEDOUT, "did not answer within %d ms", (int)limit_ms);
    else if (read(told, &fail, sizeof(fail)) != sizeof(fail))
        fail_set(&fail, -ECHILD, "the process that tried it was killed");
    ret->code = fail.code;
    ret->is_ok = fail.code >= 0;
    snprintf(ret->text, sizeof(ret->text), "%.*s", PROBE_TEXT_MAX - 1, fail.text);
}

void probe_try(int (*check)(const struct probe_place *place, struct fail *fail), uint64_t namespaces,
               const struct probe_place *place, int64_t limit_ms, struct probe_result *ret)
{
    int told[2];
    *ret = (struct probe_result){.is_tried = true, .code = -EMFILE, .text = "cannot be tried: no pipe"};
    if (pipe2(told, O_CLOEXEC) < 0)
        return;
    fflush(NULL);
    struct clone_args args = {.flags = namespaces, .exit_signal = SIGCHLD};
    /* a filter that answers clone3 as an old kernel would is no reason against what needs no namespace */
    pid_t pid = namespaces ? (pid_t)syscall(SYS_clone3, &args, sizeof(args)) : fork();
    if (pid == 0)
        try_in_child(check, place, told[1]);
    ret->code = pid < 0 ? -errno : 0;
    snprintf(ret->text, sizeof(ret->text), "clone: %s", strerror(-ret->code));
    close(told[1]);
    AUTO_CLOSE int answer = told[0];
    if (pid < 0)
        return;
    take_answer(answer, limit_ms, ret);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* ---- all of them --------------------------------------------------------------------- */

static void try_all(const struct probe_place *place, struct probe *probe)
{
    for (int i = 0; i < CHECK_COUNT; i++) {
        struct probe_result *result = &probe->results[i];
        enum probe_check after = checks[i].after;
        if (after != CHECK_NONE && !probe->results[after].is_ok) {
            *result = (struct probe_result){.code = -ENOTSUP};
            snprintf(result->text, sizeof(result->text), "not tried: it needs %s", checks[after].title);
            continue;
        }
        probe_try(checks[i].try, checks[i].namespaces, place, checks[i].limit_ms, result);
        if (!result->is_ok)
            remedy_find((enum probe_check)i, &probe->kernel, result);
    }
}

static int open_place(const char *cache, struct probe_place *ret, struct fail *fail)
{
    int len = snprintf(ret->path, sizeof(ret->path), "%s/.probe.XXXXXX", cache);
    if (len >= (int)sizeof(ret->path))
        return fail_set(fail, -ENAMETOOLONG, "the cache's path has %d bytes", len);
    if (!mkdtemp(ret->path))
        return fail_set(fail, -errno, "cannot write to %s: %s", cache, strerror(errno));
    ret->uid = geteuid();
    ret->gid = getegid();
    ret->directory = open(ret->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (ret->directory >= 0)
        return 0;
    int code = fail_set(fail, -errno, "%s: %s", ret->path, strerror(errno));
    rmdir(ret->path);
    return code;
}

int probe_run(const char *cache, const struct cgroups *cgroups, struct probe *ret, struct fail *fail)
{
    struct probe_place place = {.cgroups = cgroups};
    AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    *ret = (struct probe){0};
    kernel_info_read(root, &ret->kernel);
    int code = open_place(cache, &place, fail);
    if (code < 0)
        return code;
    try_all(&place, ret);
    close(place.directory);
    code = dirtree_remove(place.path);
    return code < 0 ? fail_set(fail, code, "cannot remove %s: %s", place.path, strerror(-code)) : 0;
}

/* ---- what follows -------------------------------------------------------------------- */

uint32_t probe_missing(const struct probe *probe, enum tier tier)
{
    uint32_t missing = 0;
    for (int i = 0; i < CHECK_COUNT; i++)
        if ((tier_needs(tier) & (1u << i)) && !probe->results[i].is_ok)
            missing |= 1u << i;
    return missing;
}

enum tier probe_choose(const struct probe *probe)
{
    for (int i = 0; i < TIER_COUNT; i++)
        if (probe_missing(probe, (enum tier)i) == 0)
            return (enum tier)i;
    return TIER_NONE;
}

int probe_refuse(const struct probe *probe, enum tier tier, struct fail *fail)
{
    uint32_t missing = probe_missing(probe, tier);
    for (int i = 0; i < CHECK_COUNT; i++)
        if (missing & (1u << i))
            return fail_set(fail, -ENOTSUP, "no sandbox of the tier %s here: %s: %s%s%s", tier_word(tier),
                            checks[i].title, probe->results[i].text, probe->results[i].remedy[0] ? "; " : "",
                            probe->results[i].remedy);
    return fail_set(fail, -ENOTSUP, "the tier %s lacks nothing", tier_word(tier));
}
