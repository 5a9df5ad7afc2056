#include "tests/workers/attacks/inside/attack.h"

#include <sys/prctl.h>
#include <sys/auxv.h>

static void who(void)
{
    printf("uid %d %d %d %d secure %lu no_new_privs %d\n", (int)getuid(), (int)geteuid(), (int)getgid(), (int)getegid(),
           getauxval(AT_SECURE), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "", *kind = argc > 2 ? argv[2] : "";
    if (!getenv("SLUICE_WORKSPACE") || prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2 ||
        prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return 3; /* not in a sandbox: this would be meant */
    if (strcmp(word, "calls") == 0)
        attack_calls();
    else if (strcmp(word, "sockets") == 0)
        attack_sockets(argv + 2);
    else if (strcmp(word, "proc") == 0)
        attack_proc(argv + 2);
    else if (strcmp(word, "serve") == 0)
        attack_serve();
    else if (strcmp(word, "neighbour") == 0)
        attack_neighbour(argv + 2);
    else if (strcmp(word, "outside") == 0)
        attack_outside(argv + 2);
    else if (strcmp(word, "limits") == 0)
        attack_limits();
    else if (strcmp(word, "memory") == 0)
        attack_memory(kind);
    else if (strcmp(word, "processes") == 0)
        attack_processes(kind);
    else if (strcmp(word, "files") == 0)
        attack_files(kind);
    else if (strcmp(word, "kernel") == 0)
        attack_kernel(kind);
    else if (strcmp(word, "who") == 0)
        who();
    else
        return 2;
    return 0;
}
