/* A terminal for one command, for programs that ask for one: 200 by 50, no echo, no translation of
 * what is written, and an input that has ended. */
#include "workers/tools/bash/shell_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "common/base/cleanup.h"
#include "workers/runtime/fiber.h"
#include "workers/sandbox/requests.h"
#include "workers/tools/bash/shell_inside.h"

enum { COLUMNS = 200, LINES = 50, READ_MAX = 1 << 20, ENDS = 16 };

/* False when there will be no more. */
static bool read_some(struct terminal *terminal)
{
    const struct shell_command *command = terminal->command;
    uint8_t chunk[16384];
    for (size_t done = 0; done < READ_MAX;) {
        ssize_t got = read(terminal->master, chunk, sizeof(chunk));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 && errno == EAGAIN;
        output_append(terminal->output, chunk, (size_t)got);
        if (command->on_output)
            command->on_output(command->on_output_arg, slice_of(chunk, (size_t)got));
        done += (size_t)got;
    }
    return true;
}

/* Once the shell has closed it, it is hung up and there is no more to come. */
static void on_ready(void *arg, uint32_t events)
{
    struct terminal *terminal = arg;
    (void)events;
    if (!read_some(terminal))
        loop_unwatch(terminal->loop, &terminal->watch);
}

/* The master's settings are the terminal's. Programs that read meet the end of the input, as often
 * as they may ask. */
static int set_up(int master)
{
    struct termios mode;
    struct winsize size = {.ws_row = LINES, .ws_col = COLUMNS};
    char ends[ENDS];
    if (tcgetattr(master, &mode) < 0 || ioctl(master, TIOCSWINSZ, &size) < 0)
        return -errno;
    mode.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK | ECHONL | ECHOCTL | ECHOKE);
    mode.c_oflag &= ~(tcflag_t)OPOST;
    memset(ends, mode.c_cc[VEOF], sizeof(ends));
    if (tcsetattr(master, TCSANOW, &mode) < 0 || fcntl(master, F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    return write(master, ends, sizeof(ends)) < 0 ? -errno : 0;
}

int terminal_open(struct terminal *terminal, struct sandbox *sandbox, const struct shell_command *command,
                  struct output *output, struct fail *fail)
{
    int number = 0;
    *terminal = (struct terminal){.master = -1, .loop = fiber_loop(), .output = output, .command = command};
    terminal->master = sandbox_open_terminal(sandbox, &number, fail);
    if (terminal->master == -ENOSPC) /* those inside have all that there may be */
        return fail_set(fail, -ENOEXEC, "there is no terminal left");
    if (terminal->master < 0)
        return terminal->master;
    snprintf(terminal->path, sizeof(terminal->path), "/dev/pts/%d", number);
    int code = set_up(terminal->master);
    if (code < 0)
        return fail_set(fail, code, "a terminal: %s", strerror(-code));
    terminal->watch = loop_watch(terminal->loop, terminal->master, EPOLLIN, on_ready, terminal);
    return terminal->watch ? 0 : fail_memory(fail);
}

void terminal_end_input(struct terminal *terminal)
{
    struct termios mode;
    if (tcgetattr(terminal->master, &mode) == 0 && !(mode.c_lflag & ICANON) && write(terminal->master, "\004", 1) < 0)
        return; /* what was said before is not read either */
}

void terminal_drain(struct terminal *terminal)
{
    if (terminal->master >= 0)
        read_some(terminal);
}

void terminal_close(struct terminal *terminal)
{
    if (terminal->watch)
        loop_unwatch(terminal->loop, &terminal->watch);
    cleanup_close(&terminal->master);
    terminal->master = -1;
}
