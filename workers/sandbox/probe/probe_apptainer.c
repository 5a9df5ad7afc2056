/* Whether apptainer makes containers here: one is made, as the spawner makes them, and ended. */
#include "workers/sandbox/probe/probe_apptainer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "workers/sandbox/backends/apptainer/apptainer.h"
#include "workers/sandbox/backends/apptainer/apptainer_ask.h"
#include "workers/sandbox/backends/apptainer/apptainer_container.h"
#include "workers/sandbox/proto/usage.h"
#include "workers/sandbox/init/init.h"
#include "workers/sandbox/probe/probe.h"
#include "workers/sandbox/embedded/program.h"
#include "workers/sandbox/init/proc.h"
#include "workers/sandbox/proto/wire.h"

enum { CONTAINER_MS = 10000, SAID_MAX = 1024 };

static int refuse(struct fail *fail, const char *what)
{
    return fail_set(fail, -errno, "%s: %s", what, strerror(errno));
}

/* ---- one container ------------------------------------------------------------------------- */

struct trial {
    int control[2], births[2], usages, said[2];
    struct usage *usage;
    char disk[CONTAINER_PATH_SIZE - 128];
};

static int open_trial(const struct probe_place *place, struct trial *ret, struct fail *fail)
{
    *ret = (struct trial){.usages = -1};
    ret->usage = usages_create(&ret->usages);
    if (!ret->usage || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret->control) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret->births) < 0 || pipe2(ret->said, O_CLOEXEC) < 0)
        return refuse(fail, "descriptors");
    snprintf(ret->disk, sizeof(ret->disk), "%s/container", place->path);
    if (mkdir(ret->disk, 0700) < 0)
        return refuse(fail, ret->disk);
    AUTO_CLOSE int program = program_open(apptainer_program(), "sluice-apptainer-init", place->path, fail);
    return program < 0 ? program : apptainer_prepare(place->path, program, fail);
}

static _Noreturn void be_container(const struct trial *trial)
{
    const struct container_plan plan = {.id = 1,
                                        .image = "host",
                                        .wanted = {.memory_mib = 64, .disk_mib = 16, .processes = 16, .file_mib = 16},
                                        .usage = trial->usage,
                                        .brought = {trial->usages},
                                        .brought_count = 1,
                                        .tier = TIER_apptainer,
                                        .disk = trial->disk,
                                        .uid = geteuid(),
                                        .gid = getegid()};
    dup2(trial->said[1], STDERR_FILENO);
    dup2(trial->said[1], STDOUT_FILENO);
    init_main(&plan, trial->control[1], trial->births[1]);
}

/* "\033[91mERROR  : why\n\033[0m": the last of those is what it ended with. Cuts `said`. */
const char *probe_apptainer_reason(char *said)
{
    static const char *const words[] = {"FATAL", "ERROR"};
    char *last = NULL;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        for (char *at = said; (at = strstr(at, words[i])); at++)
            last = at > last ? at : last;
    if (!last)
        return "it gave no reason";
    last[strcspn(last, "\n")] = '\0';
    text_sanitize(last);
    return last;
}

static int blame_apptainer(const struct trial *trial, struct fail *fail)
{
    char said[SAID_MAX];
    apptainer_read_said(trial->said[0], said, sizeof(said));
    return fail_set(fail, -EIO, "apptainer ended: %.160s", probe_apptainer_reason(said));
}

static int await_container(const struct trial *trial, struct fail *fail)
{
    static struct wire_message message;
    if (poll(&(struct pollfd){trial->control[0], POLLIN, 0}, 1, CONTAINER_MS) <= 0)
        return fail_set(fail, -ETIMEDOUT, "no sandbox within %d s", CONTAINER_MS / 1000);
    if (wire_receive(trial->control[0], &message) <= 0)
        return blame_apptainer(trial, fail);
    wire_close_fds(&message);
    if (message.head.number[0] < 0)
        return fail_set(fail, (int)message.head.number[0], "%.200s", message.text);
    return 0;
}

/* All that came of it: orphans come to us. */
static void end_all(void)
{
    AUTO_CLOSE int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    do
        proc_signal_tree(proc, getpid(), getpid(), SIGKILL);
    while (waitpid(-1, NULL, 0) > 0);
}

static int try_container(const struct probe_place *place, struct fail *fail)
{
    struct trial trial;
    int code = open_trial(place, &trial, fail);
    if (code < 0)
        return code;
    pid_t pid = fork();
    if (pid == 0)
        be_container(&trial);
    close(trial.control[1]);
    close(trial.births[1]);
    close(trial.said[1]);
    return pid < 0 ? refuse(fail, "fork") : await_container(&trial, fail);
}

static int learn_version(unsigned *major, unsigned *minor, struct fail *fail)
{
    static const char *const question[] = {"apptainer", "--version", NULL};
    char said[128];
    int code = apptainer_ask(question, said, sizeof(said), fail);
    if (code < 0 || apptainer_parse_version(said, major, minor))
        return code;
    return fail_set(fail, -EINVAL, "apptainer --version says \"%.60s\"", said);
}

int probe_try_apptainer(const struct probe_place *place, struct fail *fail)
{
    unsigned major = 0, minor = 0;
    int code = probe_find_program("apptainer", fail);
    if (code < 0)
        return code;
    if (geteuid() == 0)
        return fail_set(fail, -ENOTSUP, "root runs this program, and would be who is inside");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return refuse(fail, "subreaper");
    code = learn_version(&major, &minor, fail);
    if (code == 0)
        code = try_container(place, fail);
    end_all();
    if (code == 0)
        fail_set(fail, 0, "version %u.%u", major, minor);
    return code;
}
