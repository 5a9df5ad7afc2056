#include "client/cli/programs/python.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cli/connect.h"
#include "common/base/cleanup.h"

static const char *interpreter(void)
{
    const char *said = getenv("SLUICE_PYTHON");
    return said && *said ? said : "python3";
}

bool python_add(struct python_call *call, const char *argument)
{
    if (call->count == PYTHON_ARGUMENTS_MAX - 4) {
        cli_say("more than %d arguments", PYTHON_ARGUMENTS_MAX - 4);
        return false;
    }
    call->arguments[call->count++] = argument;
    return true;
}

/* Returns only when it cannot. */
static void become(const struct python_call *call)
{
    const char *argv[PYTHON_ARGUMENTS_MAX] = {interpreter(), "-m", call->module};
    memcpy(argv + 3, call->arguments, call->count * sizeof(*argv));
    execvp(argv[0], (char *const *)(uintptr_t)argv);
}

/* Whether the interpreter is there and has the package: asked in silence. */
static bool has_package(const char *module)
{
    int status;
    const pid_t pid = fork();
    if (pid == 0) {
        const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execlp(interpreter(), interpreter(), "-c", "import importlib, sys; importlib.import_module(sys.argv[1])",
               module, NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool check_package(const char *module)
{
    if (has_package(module))
        return true;
    cli_say("%s cannot import %s, which this command needs: install the Python package (docs/install.md), or let "
            "$SLUICE_PYTHON name the python that has it",
            interpreter(), module);
    return false;
}

int python_exec(const struct python_call *call)
{
    if (!check_package(call->module))
        return EXITS_FAILED;
    become(call);
    cli_say("cannot start %s: %s", interpreter(), strerror(errno));
    return EXITS_FAILED;
}

FILE *python_open(struct python_call *call)
{
    int ends[2];
    if (!check_package(call->module))
        return NULL;
    if (pipe2(ends, O_CLOEXEC) < 0 || (call->pid = fork()) < 0) {
        cli_say("cannot start %s: %s", interpreter(), strerror(errno));
        return NULL;
    }
    if (call->pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        become(call);
        _exit(127);
    }
    close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    if (!out)
        close(ends[0]);
    return out;
}

bool python_end(struct python_call *call)
{
    int status = 0;
    while (waitpid(call->pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
