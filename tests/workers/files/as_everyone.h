/* as_everyone.h - a group of tests as who runs it and, where that is root, again as a user without its rights. */
#ifndef SLUICE_TESTS_WORKERS_FILES_AS_EVERYONE_H
#define SLUICE_TESTS_WORKERS_FILES_AS_EVERYONE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ORDINARY_USER = 1001 };

static inline int run_as_all(int (*group)(void))
{
    int failed = group(), status = 0;
    if (geteuid() != 0)
        return failed;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        if (setresgid(ORDINARY_USER, ORDINARY_USER, ORDINARY_USER) < 0 ||
            setresuid(ORDINARY_USER, ORDINARY_USER, ORDINARY_USER) < 0 ||
            prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0) /* as after an exec: /proc/self is ours */
            _exit(1);
        exit(group());
    }
    waitpid(pid, &status, 0);
    return failed || status != 0;
}

#endif
