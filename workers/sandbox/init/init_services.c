/* What the worker asks the first process of a sandbox for: processes, files, an archive. */
#include "workers/sandbox/init/init_services.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/init/services/copy.h"
#include "workers/sandbox/init/services/files.h"
#include "workers/sandbox/init/services/places.h"
#include "workers/sandbox/init/init_answer.h"
#include "workers/sandbox/init/init_ends.h"
#include "workers/sandbox/init/init_inside.h"
#include "workers/sandbox/init/launch.h"
#include "workers/sandbox/init/proc.h"
#include "workers/sandbox/init/stops.h"

static void serve_start(struct init *init)
{
    struct fail fail = {0};
    int report = -1;
    pid_t pid = execs_check(&init->execs, &fail);
    if (pid == 0)
        pid = launch(&init->plan, init->backend, &init->container, &init->message, &report, &fail);
    if (pid < 0)
        init_refuse(init, &fail);
    else
        execs_add(&init->execs, pid, init->message.head.id, report); /* init_settle answers */
}

static void answer_killed(struct init *init, bool is_done)
{
    struct fail fail = {0};
    if (is_done) {
        init_answer(init, 0, NULL, 0);
        return;
    }
    fail_set(&fail, -EBUSY, "processes keep appearing, or do not end");
    init_refuse(init, &fail);
}

static void serve_kill_all(struct init *init)
{
    answer_killed(init, init_kill_others(init, (pid_t)init->message.head.number[0]));
}

/* What was started by other requests stays, with its descendants. */
static void serve_kill_command(struct init *init)
{
    const pid_t shell = (pid_t)init->message.head.number[0];
    const uint64_t before = (uint64_t)init->message.head.number[1];
    pid_t roots[EXECS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < init->execs.count; i++)
        if (init->execs.each[i].pid != shell)
            roots[count++] = init->execs.each[i].pid;
    struct proc_spared spared = {before > 0 ? shell : 0, roots, count, before};
    answer_killed(init, init_kill_but(init, &spared));
}

static void serve_signal(struct init *init)
{
    pid_t root = (pid_t)init->message.head.number[0];
    if (root > 1)
        proc_signal_tree(init->container.proc, root, 0, (int)init->message.head.number[1]);
    init_answer(init, 0, NULL, 0);
}

/* Somebody else's child that is ours by now: its parent in between has ended. */
static void serve_adopt(struct init *init)
{
    struct fail fail = {0};
    pid_t pid = (pid_t)init->message.head.number[0];
    if (execs_check(&init->execs, NULL) < 0 || pid <= 1 || waitpid(pid, NULL, WNOHANG) != 0) {
        fail_set(&fail, -ESRCH, "process %d is not there", pid);
        init_refuse(init, &fail);
        return;
    }
    execs_add(&init->execs, pid, init->message.head.id, -1);
    init_answer(init, pid, NULL, 0);
}

/* `asked` as it is inside: relative to the workspace, and there where it begins with "/workspace". */
static int inside_path(const struct container *container, const char *asked, char *ret, size_t size)
{
    static const char workspace[] = "/workspace";
    const size_t len = strlen(workspace);
    bool is_there = strncmp(asked, workspace, len) == 0 && (asked[len] == '/' || asked[len] == '\0');
    int wrote = *asked == '/' && !is_there
                    ? snprintf(ret, size, "%s", asked)
                    : snprintf(ret, size, "%s/%s", container->workspace, is_there ? asked + len : asked);
    return wrote < (int)size ? 0 : -ENAMETOOLONG;
}

static bool read_path(const struct init *init, size_t *from, char path[PATH_MAX], struct fail *fail)
{
    const char *asked = wire_next_string(&init->message, from);
    if (asked && inside_path(&init->container, asked, path, PATH_MAX) == 0)
        return true;
    fail_set(fail, -ENAMETOOLONG, "a path of more than %d bytes", PATH_MAX - 1);
    return false;
}

static void serve_file(struct init *init)
{
    struct fail fail = {0};
    char path[PATH_MAX];
    size_t from = 0;
    const uint64_t flags = (uint64_t)init->message.head.number[0];
    const bool as_user = init->message.head.number[2];
    AUTO_CLOSE int fd = -1;
    if (read_path(init, &from, path, &fail))
        fd = files_open(path, flags, (mode_t)init->message.head.number[1], as_user, &fail);
    if (fd < 0)
        init_refuse(init, &fail);
    else
        init_answer(init, 0, &fd, 1);
}

static void serve_rename(struct init *init)
{
    struct fail fail = {0};
    char from_path[PATH_MAX], to_path[PATH_MAX];
    size_t from = 0;
    bool has_to = init->message.head.number[0];
    if (read_path(init, &from, from_path, &fail) && (!has_to || read_path(init, &from, to_path, &fail)))
        files_rename(from_path, has_to ? to_path : NULL, &fail);
    if (fail.code < 0)
        init_refuse(init, &fail);
    else
        init_answer(init, 0, NULL, 0);
}

static void serve_place(struct init *init)
{
    struct fail fail = {0};
    char path[PATH_MAX];
    size_t from = 0;
    const enum wire_place wanted = (enum wire_place)init->message.head.number[0];
    if (read_path(init, &from, path, &fail))
        place_prepare(path, wanted, (mode_t)init->message.head.number[1], &fail);
    if (fail.code < 0)
        init_refuse(init, &fail);
    else
        init_answer(init, 0, NULL, 0);
}

static void serve_copy(struct init *init)
{
    struct fail fail = {0};
    char path[PATH_MAX];
    size_t from = 0;
    if (init->message.fd_count != 1)
        fail_set(&fail, -EINVAL, "nothing to copy");
    else if (read_path(init, &from, path, &fail))
        copy_in(init->message.fds[0], path, (mode_t)init->message.head.number[0], &fail);
    if (fail.code < 0)
        init_refuse(init, &fail);
    else
        init_answer(init, 0, NULL, 0);
}

static void serve_state(struct init *init)
{
    struct fail fail = {0};
    struct stat it;
    const int64_t what = init->message.head.number[0], mode = init->message.head.number[1];
    int fd = init->message.fd_count == 1 ? init->message.fds[0] : -1;
    if (what == STATE_CHANGE_MODE && fchmod(fd, (mode_t)mode & 07777) < 0)
        fail_set(&fail, -errno, "%s", strerror(errno));
    else if (fstat(fd, &it) < 0)
        fail_set(&fail, -errno, "%s", strerror(errno));
    if (fail.code < 0)
        init_refuse(init, &fail);
    else
        init_answer(init,
                    what == STATE_SIZE    ? it.st_size
                    : what == STATE_LINKS ? (int64_t)it.st_nlink
                                          : it.st_mode,
                    NULL, 0);
}

static void serve_terminal(struct init *init)
{
    struct fail fail = {0};
    int number = 0;
    AUTO_CLOSE int fd = init->backend->has_terminals
                            ? files_open_terminal(&number, &fail)
                            : fail_set(&fail, -EINVAL, "there are no terminals in sandboxes of the tier %s",
                                       tier_word(init->plan.tier));
    if (fd < 0)
        init_refuse(init, &fail);
    else
        init_answer(init, number, &fd, 1);
}

static void serve_inside(struct init *init)
{
    static const char *const names[] = {"user", "pid", "net", "ipc", "uts", "cgroup", "mnt"};
    enum { COUNT = sizeof(names) / sizeof(*names) };
    struct fail fail = {0};
    int fds[COUNT];
    size_t count = 0;
    while (count < COUNT) {
        char path[32];
        snprintf(path, sizeof(path), "self/ns/%s", names[count]);
        fds[count] = openat(init->container.proc, path, O_RDONLY | O_CLOEXEC);
        if (fds[count] < 0)
            break;
        count++;
    }
    if (count == COUNT) {
        init_answer(init, 0, fds, COUNT);
    } else {
        fail_set(&fail, -errno, "%s: %s", names[count], strerror(errno));
        init_refuse(init, &fail);
    }
    while (count > 0)
        close(fds[--count]);
}

/* Over no layers a whole tree is the first. */
static enum pack_form form_of(const struct init *init)
{
    bool is_first = init->backend->form == PACK_WHOLE && init->plan.layer_count == 0;
    return is_first ? PACK_FIRST : init->backend->form;
}

/* Before the answer, which who asked waits for. */
static void tell_touched(const struct init *init, const struct touched *touched, struct fail *fail)
{
    static char text[TOUCHED_TEXT_MAX];
    const struct wire_head head = {.verb = WIRE_TOUCHED, .number = {(int64_t)touched->count}};
    size_t len = touched_write(touched, text);
    int code = touched->count == 0 ? 0 : wire_send(init->control, &head, slice_of(text, len), NULL, 0);
    if (code < 0)
        fail_set(fail, code, "what was touched: %s", strerror(-code));
}

static void pack(const struct init *init, uint64_t *bytes, struct touched *touched, struct fail *fail)
{
    pack_upper(init->container.upper, init->message.fds[0], form_of(init), NULL, bytes, touched, fail);
}

/* Those at work are held still meanwhile. */
static void pack_held(const struct init *init, uint64_t *bytes, struct touched *touched, struct fail *fail)
{
    static struct stops stops;
    if (stops_hold(init, &stops))
        pack(init, bytes, touched, fail);
    else
        fail_set(fail, -EBUSY, "processes keep appearing, or do not stop");
    stops_release(&stops);
}

static void serve_pack(struct init *init)
{
    static struct touched touched;
    struct fail fail = {0};
    uint64_t bytes = 0;
    touched = (struct touched){0};
    if (init->message.fd_count != 1)
        fail_set(&fail, -EINVAL, "no file to pack into");
    else if (init->message.head.number[0]) {
        pack_held(init, &bytes, &touched, &fail);
    } else {
        init_kill_others(init, 0);
        pack(init, &bytes, &touched, &fail);
    }
    if (fail.code == 0)
        tell_touched(init, &touched, &fail);
    if (fail.code < 0)
        init_refuse(init, &fail);
    else
        init_answer(init, (int64_t)bytes, NULL, 0);
}

static void serve_confirm(struct init *init)
{
    struct fail fail = {0};
    if (files_confirm(init->container.upper, (uint64_t)init->message.head.number[0], &fail) < 0)
        init_refuse(init, &fail);
    else
        init_answer(init, 0, NULL, 0);
}

static const struct {
    enum wire_verb verb;
    void (*serve)(struct init *init);
} services[] = {
    {WIRE_START, serve_start},   {WIRE_KILL_ALL, serve_kill_all}, {WIRE_KILL_COMMAND, serve_kill_command},
    {WIRE_SIGNAL, serve_signal}, {WIRE_ADOPT, serve_adopt},       {WIRE_INSIDE, serve_inside},
    {WIRE_FILE, serve_file},     {WIRE_PACK, serve_pack},         {WIRE_RENAME, serve_rename},
    {WIRE_STATE, serve_state},   {WIRE_TERMINAL, serve_terminal}, {WIRE_CONFIRM, serve_confirm},
    {WIRE_PLACE, serve_place},   {WIRE_COPY, serve_copy},
};

void init_serve(struct init *init)
{
    for (size_t i = 0; i < sizeof(services) / sizeof(*services); i++)
        if (services[i].verb == init->message.head.verb)
            services[i].serve(init);
}
