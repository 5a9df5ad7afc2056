#include "client/cli/top/top_loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "client/cli/connect.h"
#include "client/cli/top/draw.h"
#include "client/cli/top/source.h"
#include "client/cli/top/tty.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

enum { ESCAPE_MS = 50, REDRAW_MS = 1000 };

struct top {
    struct tty terminal;
    struct model model;
    struct view view;
    struct source *source;
    struct draw_facts facts;
    int signals;
    char keys[64]; /* bytes that are no whole key yet */
    size_t key_len;
};

static void draw(struct top *top)
{
    AUTO_SCREEN screen = {0};
    AUTO_ROWS rows = {0};
    const struct table_order order = view_order(&top->view);
    top->facts.now_ms = clock_ms();
    if (rows_make(&rows, &top->model, top->view.panel, &order) &&
        screen_init(&screen, top->terminal.columns, top->terminal.rows, top->terminal.is_utf8)) {
        draw_all(&screen, &top->model, &top->view, &rows, &top->facts);
        tty_paint(&top->terminal, &screen);
    }
}

static void press(struct top *top, int key)
{
    AUTO_ROWS rows = {0};
    const struct table_order order = view_order(&top->view);
    const bool was_paused = top->view.is_paused;
    if (!rows_make(&rows, &top->model, top->view.panel, &order))
        return;
    view_key(&top->view, key, &rows);
    if (top->view.is_paused != was_paused)
        source_pause(top->source, top->view.is_paused);
}

/* The whole keys among the bytes; with is_all the rest, too. */
static void press_all(struct top *top, bool is_all)
{
    size_t used;
    while (top->key_len > 0 && !top->view.ends) {
        const int key = key_next(top->keys, top->key_len, is_all, &used);
        if (!used)
            return;
        top->key_len -= used;
        memmove(top->keys, top->keys + used, top->key_len);
        press(top, key);
    }
}

static void read_keys(struct top *top)
{
    const ssize_t got = read(top->terminal.fd, top->keys + top->key_len, sizeof(top->keys) - top->key_len);
    if (got > 0)
        top->key_len += (size_t)got;
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
        top->view.ends = true; /* the terminal is gone */
    press_all(top, top->key_len == sizeof(top->keys));
}

static void stop_for_a_while(struct top *top)
{
    tty_leave(&top->terminal);
    raise(SIGSTOP);
    tty_enter(&top->terminal);
}

static void take_signal(struct top *top)
{
    struct signalfd_siginfo info;
    if (read(top->signals, &info, sizeof(info)) != sizeof(info))
        return;
    switch (info.ssi_signo) {
    case SIGWINCH: tty_measure(&top->terminal); break;
    case SIGTSTP: stop_for_a_while(top); break;
    case SIGCONT: tty_enter(&top->terminal); break;
    default: top->view.ends = true;
    }
}

static void run(struct top *top)
{
    while (!top->view.ends) {
        const short wanted = POLLIN | (tty_has_output(&top->terminal) ? POLLOUT : 0);
        struct pollfd fds[] = {
            {top->terminal.fd, wanted, 0}, {top->signals, POLLIN, 0}, {source_fd(top->source), POLLIN, 0}};
        const int ready = poll(fds, 3, top->key_len ? ESCAPE_MS : REDRAW_MS);
        if (ready == 0)
            press_all(top, true);
        if (ready > 0 && (fds[0].revents & POLLOUT))
            tty_flush(&top->terminal);
        if (ready > 0 && (fds[0].revents & (POLLIN | POLLHUP | POLLERR)))
            read_keys(top);
        if (ready > 0 && fds[1].revents)
            take_signal(top);
        if (ready > 0 && fds[2].revents)
            source_take(top->source, &top->model);
        if (!top->view.ends)
            draw(top);
    }
}

/* Held back from every thread, so that each comes where it can be answered. */
static int hold_signals(sigset_t *ret_before)
{
    static const int held[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ROWS(held); i++)
        sigaddset(&set, held[i]);
    pthread_sigmask(SIG_BLOCK, &set, ret_before);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int top_loop(struct sluice_client *client, int64_t interval_ms)
{
    sigset_t before;
    struct top top = {.facts = {.url = sluice_url(client), .interval_ms = interval_ms}};
    view_init(&top.view);
    const int failed = tty_open(&top.terminal);
    if (failed) {
        cli_say("the terminal cannot be opened: %s", strerror(-failed));
        return EXITS_FAILED;
    }
    AUTO_CLOSE int signals = top.signals = hold_signals(&before);
    top.source = source_start(client, interval_ms);
    const bool is_begun = signals >= 0 && top.source;
    if (is_begun) {
        tty_enter(&top.terminal);
        run(&top);
    }
    tty_close(&top.terminal);
    source_stop(&top.source);
    model_finish(&top.model);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!is_begun)
        cli_say("out of memory, threads or descriptors");
    return is_begun ? EXITS_OK : EXITS_FAILED;
}
