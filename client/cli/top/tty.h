/*
 * tty.h - the terminal itself: raw keys, the alternate screen, and painting what differs from what is shown.
 * Nothing here waits for a terminal that does not take its output: what is left is written when poll says so, and until
 * then nothing is painted. tty_leave gives it back as it was.
 */
#ifndef SLUICE_CLIENT_CLI_TOP_TTY_H
#define SLUICE_CLIENT_CLI_TOP_TTY_H

#include <termios.h>

#include "client/cli/top/screen.h"

struct tty {
    int fd; /* of its own, so that it may be non-blocking */
    struct termios before;
    bool is_entered, has_colour, is_utf8;
    size_t columns, rows;
    struct buffer out; /* not written yet, from `written` on */
    size_t written;
    struct buffer *shown; /* what each row has, as painted */
    size_t shown_rows;
};

/* Whether stdin and stdout are a terminal that knows escape sequences. */
bool tty_is_there(void);
/* Negative errno, with nothing changed. */
int tty_open(struct tty *terminal);
void tty_close(struct tty *terminal); /* leaves it first */
void tty_enter(struct tty *terminal); /* all is painted anew */
void tty_leave(struct tty *terminal); /* waits a second at most */
void tty_measure(struct tty *terminal);
void tty_paint(struct tty *terminal, const struct screen *screen);
bool tty_has_output(const struct tty *terminal);
void tty_flush(struct tty *terminal);

#endif
