/* shell_driver.h - the bash of a shell, and what it says. */
#ifndef SLUICE_WORKERS_TOOLS_BASH_SHELL_DRIVER_H
#define SLUICE_WORKERS_TOOLS_BASH_SHELL_DRIVER_H

#include "workers/tools/bash/shell_inside.h"

int shell_start(struct shell *shell, struct fail *fail);
void shell_disconnect(struct shell *shell);
/* The order to run what stands in its file, as `name`, on a terminal (NULL: none). False: it does
 * not listen. */
bool shell_order(const struct shell *shell, const char *name, const char *terminal);

enum news { NEWS_NONE, NEWS_STATUS, NEWS_EXIT, NEWS_BROKEN };

/* Called every SHELL_TICK_MS while a command runs. */
struct shell_tick {
    void (*call)(void *arg);
    void *arg;
};
enum { SHELL_TICK_MS = 100 };

/* What became of the command `name`: NEWS_NONE when it still runs at until_ms, or errno. `tick`
 * may be NULL. */
int shell_await_news(struct shell *shell, const char *name, int64_t until_ms, const struct shell_tick *tick,
                     int *status, struct fail *fail);
/* After it fell silent: NEWS_EXIT, NEWS_BROKEN when it lives on all the same, or errno. */
int shell_await_exit(struct shell *shell, int *status, struct fail *fail);

#endif
