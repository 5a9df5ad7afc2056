/*
 * jupyter_link.h - a connection to one socket of a Jupyter kernel: ZMTP 3.0 with the mechanism NULL
 * over a Unix socket, as a DEALER or as a SUB of everything.
 *
 * Whoever listens there may be the agent. libzmq would keep the frames of a message that does not
 * end, and a thousand messages behind it; here one message is taken in at a time, of at most
 * message_max bytes in 64 frames. A longer one is passed over and counted, and what has not been
 * read waits with its sender. Sending and connecting await, in a fiber.
 */
#ifndef SLUICE_WORKERS_TOOLS_IPYTHON_JUPYTER_LINK_H
#define SLUICE_WORKERS_TOOLS_IPYTHON_JUPYTER_LINK_H

#include "common/base/buffer.h"
#include "common/base/fail.h"

enum { JUPYTER_FRAMES_MAX = 64 };

enum jupyter_link_type { JUPYTER_DEALER, JUPYTER_SUB };

struct jupyter_link {
    int fd; /* -1: not connected */
    bool is_broken;
    size_t message_max;
    uint8_t chunk[16384]; /* as read; from `at` on not yet looked at */
    size_t at, len;
    uint8_t head[9]; /* of the frame: flags, then its length in one or eight bytes */
    size_t head_len;
    bool in_body;
    uint64_t left; /* of the body */
    struct buffer bytes; /* the frames of the message so far */
    size_t ends[JUPYTER_FRAMES_MAX], frame_count;
    bool is_too_long, is_whole;
    uint64_t passed_over; /* messages that were too large, or broken */
};

void jupyter_link_init(struct jupyter_link *link, size_t message_max);
void jupyter_link_finish(struct jupyter_link *link); /* idempotent */

/*
 * Connects to the socket that the descriptor `file` (O_PATH) stands for. -EAGAIN: nobody listens
 * there (yet); -EPROTO: who does is no ZeroMQ socket, or not by until_ms; else as awaits fail.
 */
int jupyter_link_connect(struct jupyter_link *link, int file, enum jupyter_link_type type,
                         int64_t until_ms);

/* False when the other end does not take it; the link is broken then. */
bool jupyter_link_send(struct jupyter_link *link, const struct slice *frames, size_t count);

/*
 * 1: the next message, its frames good until the next call; 0: none is whole, or *budget bytes have
 * been read, of which it takes off what it reads; -EPIPE: broken. Never blocks.
 */
int jupyter_link_receive(struct jupyter_link *link, size_t *budget);
/* Frame i of the message; an empty one beyond the last. */
struct slice jupyter_link_frame(const struct jupyter_link *link, size_t i);

#endif
