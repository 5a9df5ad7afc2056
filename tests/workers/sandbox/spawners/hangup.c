/* A first process that is slow to close its copy of a terminal that it hands out. */
#include <unistd.h>

#include "workers/sandbox/init/init_inside.h"

enum { SLOW_US = 300000 };

void __real_init_answer(struct init *init, int64_t result, const int *fds, size_t fd_count);
void __wrap_init_answer(struct init *init, int64_t result, const int *fds, size_t fd_count);

/* A terminal is answered with its number and one descriptor. */
void __wrap_init_answer(struct init *init, int64_t result, const int *fds, size_t fd_count)
{
    __real_init_answer(init, result, fds, fd_count);
    if (fd_count == 1 && isatty(fds[0]))
        usleep(SLOW_US);
}
