#include "client/cli/up/registrar.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cli/commands/engine_probe.h"
#include "client/cli/connect.h"
#include "common/base/url.h"

enum { PROBE_MS = 2000 };

/* Of that policy; NULL: the usual one, or, at a later start, the one that it was moved to. */
static bool register_each(struct sluice_client *client, const struct texts *engines, const char *policy)
{
    for (size_t i = 0; i < engines->count; i++) {
        struct fail fail;
        const char *moved_from;
        struct slice shown = url_shown(slice_from_str(engines->items[i]));
        if (sluice_engine_move(client, engines->items[i], 0, policy, &moved_from)) {
            cli_say("cannot register the engine %.*s: %s", SLICE_ARG(shown), sluice_error(client));
            return false;
        }
        if (moved_from)
            cli_say("moved the engine %.*s from the policy %s to %s", SLICE_ARG(shown), moved_from, policy);
        if (engine_probe(engines->items[i], PROBE_MS, &fail))
            cli_say("warning: the engine %.*s does not answer: %s; rollouts will wait for it", SLICE_ARG(shown),
                    fail.text);
    }
    return true;
}

static bool register_all(const struct up *up)
{
    AUTO_CLIENT *client = sluice_connect(up->url);
    if (client && up->allow_plaintext)
        sluice_allow_plaintext(client);
    if (client && up->options->keys && sluice_set_key(client, up->admin_key)) {
        cli_say("%s", sluice_error(client));
        return false;
    }
    return client && register_each(client, &up->options->engines, NULL) &&
           register_each(client, &up->options->judges, "judge") &&
           register_each(client, &up->options->teachers, "teacher");
}

int registrar_start(struct registrar *registrar, const struct up *up, struct fail *fail)
{
    fflush(stdout);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(getppid() == parent && register_all(up) ? 0 : 1);
    }
    *registrar = (struct registrar){.pid = pid > 0 ? pid : 0};
    return pid > 0 ? 0 : fail_set(fail, -errno, "cannot start a process that registers engines: %s", strerror(errno));
}

bool registrar_end(struct registrar *registrar)
{
    if (registrar->pid) {
        kill(registrar->pid, SIGKILL);
        waitpid(registrar->pid, NULL, 0);
        registrar->pid = 0;
    }
    return registrar->succeeded;
}
