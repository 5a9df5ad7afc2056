/* What apptainer says of itself. */
#include "workers/sandbox/backends/apptainer/apptainer_ask.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/sandbox/backends/apptainer/apptainer.h"
#include "workers/sandbox/init/launch.h"
#include "common/base/text.h"

enum { ASK_MS = 5000 };

void apptainer_read_said(int from, char *ret, size_t size)
{
    size_t len = 0;
    ssize_t got = 1;
    const int64_t until_ms = clock_ms() + ASK_MS;
    while (got > 0 && len + 1 < size) {
        int64_t left_ms = until_ms - clock_ms();
        if (left_ms <= 0 || poll(&(struct pollfd){from, POLLIN, 0}, 1, (int)left_ms) <= 0)
            break;
        got = read(from, ret + len, size - 1 - len);
        len += got > 0 ? (size_t)got : 0;
    }
    ret[len] = '\0';
}

/* In the child. */
static _Noreturn void become(const char *const *arguments, int out)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    launch_reset_signals();
    if (dup2(out, STDOUT_FILENO) >= 0)
        execvpe(arguments[0], (char *const *)(uintptr_t)arguments, apptainer_environment());
    _exit(127);
}

int apptainer_ask(const char *const *arguments, char *ret, size_t size, struct fail *fail)
{
    int ends[2], status = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return fail_set(fail, -errno, "pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0)
        become(arguments, ends[1]);
    int error = errno;
    close(ends[1]);
    AUTO_CLOSE int from = ends[0];
    if (pid < 0)
        return fail_set(fail, -error, "fork: %s", strerror(error));
    apptainer_read_said(from, ret, size);
    ret[strcspn(ret, "\n")] = '\0';
    text_sanitize(ret);
    if (waitpid(pid, &status, WNOHANG) == 0) { /* its end of the pipe may be closed before it ends */
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    return *ret ? 0 : fail_set(fail, -EIO, "%s %s says nothing", arguments[0], arguments[1]);
}
