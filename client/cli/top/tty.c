#include "client/cli/top/tty.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/cli/print/print.h"
#include "common/base/clock.h"

enum { LEAVE_MS = 1000, COLUMNS_USUAL = 80, ROWS_USUAL = 24 };

static const char enter_text[] = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
static const char leave_text[] = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

bool tty_is_there(void)
{
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

int tty_open(struct tty *terminal)
{
    const char *name = ttyname(STDOUT_FILENO);
    *terminal = (struct tty){.fd = open(name ? name : "/dev/tty", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
    if (terminal->fd < 0 || tcgetattr(terminal->fd, &terminal->before) != 0) {
        const int error = -errno;
        if (terminal->fd >= 0)
            close(terminal->fd);
        return error;
    }
    setlocale(LC_CTYPE, "");
    terminal->is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    terminal->has_colour = has_colour(stdout);
    tty_measure(terminal);
    return 0;
}

static void forget_shown(struct tty *terminal)
{
    for (size_t i = 0; i < terminal->shown_rows; i++)
        buffer_finish(&terminal->shown[i]);
    free(terminal->shown);
    terminal->shown = NULL;
    terminal->shown_rows = 0;
}

void tty_close(struct tty *terminal)
{
    tty_leave(terminal);
    forget_shown(terminal);
    buffer_finish(&terminal->out);
    close(terminal->fd);
}

void tty_measure(struct tty *terminal)
{
    struct winsize size = {0};
    const bool is_known = ioctl(terminal->fd, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;
    terminal->columns = is_known ? size.ws_col : COLUMNS_USUAL;
    terminal->rows = is_known ? size.ws_row : ROWS_USUAL;
    forget_shown(terminal);
}

/* ---- output -------------------------------------------------------------------------------------- */

bool tty_has_output(const struct tty *terminal) { return terminal->written < terminal->out.len; }

void tty_flush(struct tty *terminal)
{
    while (tty_has_output(terminal)) {
        const ssize_t wrote = write(terminal->fd, terminal->out.data + terminal->written,
                                    terminal->out.len - terminal->written);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0 && errno == EAGAIN)
            return;
        if (wrote <= 0)
            break; /* it is gone */
        terminal->written += (size_t)wrote;
    }
    buffer_clear(&terminal->out);
    terminal->written = 0;
}

void tty_enter(struct tty *terminal)
{
    struct termios raw = terminal->before;
    raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO | IEXTEN); /* ISIG stays: Ctrl-C and Ctrl-Z are signals */
    raw.c_iflag &= (tcflag_t) ~(ICRNL | IXON);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(terminal->fd, TCSANOW, &raw);
    buffer_append_str(&terminal->out, enter_text);
    terminal->is_entered = true;
    tty_measure(terminal);
    tty_flush(terminal);
}

void tty_leave(struct tty *terminal)
{
    const int64_t end_ms = clock_ms() + LEAVE_MS;
    if (!terminal->is_entered)
        return;
    buffer_append_str(&terminal->out, leave_text);
    tty_flush(terminal);
    for (int64_t left_ms; tty_has_output(terminal) && (left_ms = end_ms - clock_ms()) > 0;) {
        poll(&(struct pollfd){terminal->fd, POLLOUT, 0}, 1, (int)left_ms);
        tty_flush(terminal);
    }
    tcsetattr(terminal->fd, TCSANOW, &terminal->before);
    terminal->is_entered = false;
}

/* ---- painting --------------------------------------------------------------------------------------- */

static void add_style(struct buffer *out, uint8_t mark, bool has_colour)
{
    static const char *const styles[] = {
        [MARK_PLAIN] = "\x1b[0m", [MARK_BOLD] = "\x1b[1m",   [MARK_DIM] = "\x1b[2m",  [MARK_GOOD] = "\x1b[32m",
        [MARK_WARN] = "\x1b[33m", [MARK_BAD] = "\x1b[1;31m", [MARK_HEAD] = "\x1b[7m", [MARK_CHOSEN] = "\x1b[7m",
    };
    if (has_colour || mark == MARK_PLAIN || mark == MARK_HEAD || mark == MARK_CHOSEN || mark == MARK_BOLD)
        buffer_append_str(out, styles[mark]);
    else if (mark == MARK_BAD)
        buffer_append_str(out, styles[MARK_BOLD]);
}

static void paint_row(struct tty *terminal, const struct buffer *row, size_t at)
{
    struct buffer *out = &terminal->out;
    buffer_printf(out, "\x1b[%zu;1H\x1b[0m\x1b[2K", at + 1);
    for (size_t i = 0; i < row->len; i++)
        if (row->data[i] < MARK_END)
            add_style(out, row->data[i], terminal->has_colour);
        else
            buffer_append(out, &row->data[i], 1);
}

void tty_paint(struct tty *terminal, const struct screen *screen)
{
    if (tty_has_output(terminal))
        return;
    if (terminal->shown_rows != screen->rows) {
        forget_shown(terminal);
        terminal->shown = calloc(screen->rows, sizeof(*terminal->shown));
        terminal->shown_rows = terminal->shown ? screen->rows : 0;
        buffer_append_str(&terminal->out, "\x1b[0m\x1b[2J");
    }
    for (size_t i = 0; i < terminal->shown_rows; i++) {
        struct buffer *shown = &terminal->shown[i];
        if (slice_equal(buffer_peek(shown), buffer_peek(&screen->text[i])))
            continue;
        paint_row(terminal, &screen->text[i], i);
        buffer_clear(shown);
        buffer_append(shown, screen->text[i].data, screen->text[i].len);
    }
    tty_flush(terminal);
}
