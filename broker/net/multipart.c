#undef _FORTIFY_SOURCE /* its inline functions would stand before those here */
#include "broker/net/multipart.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ZMTP 3: a greeting of 64 bytes, then frames: flags, a length of one byte or eight, a body. */
enum {
    FDS_MAX = 65536, /* connections with higher descriptors are not followed */
    GREETING_SIZE = 64,
    GREETING_PAD = 9,
    GREETING_VERSION = 10,
    FLAG_MORE = 1,
    FLAG_LONG = 2,
    FLAG_COMMAND = 4
};

enum phase { PHASE_NONE, PHASE_GREETING, PHASE_FLAGS, PHASE_LENGTH, PHASE_BODY, PHASE_CUT };

struct stream {
    enum phase phase;
    uint8_t flags;
    uint8_t at;      /* bytes of the greeting, or of the length, so far */
    uint16_t frames; /* of the message that has not ended ... */
    uint64_t bytes;  /* ... and what they hold, all together */
    uint64_t length; /* of the frame; in its body, what is left of it */
};

/* By descriptor. A connection is read by one thread at a time, which libzmq sees to. */
static struct stream streams[FDS_MAX];
static atomic_ullong cuts;
static atomic_bool follows_own;
static _Thread_local bool passes_over;

void multipart_follow_own(void) { atomic_store(&follows_own, true); }

void multipart_pass_over(void) { passes_over = true; }

uint64_t multipart_cuts(void) { return atomic_load(&cuts); }

/* ---- following --------------------------------------------------------------------------------- */

static bool take_greeting(struct stream *stream, uint8_t byte)
{
    unsigned at = stream->at++;
    if (stream->at == GREETING_SIZE)
        stream->phase = PHASE_FLAGS;
    return !((at == 0 && byte != 0xff) || (at == GREETING_PAD && !(byte & 1)) || (at == GREETING_VERSION && byte < 3));
}

/* A command ends with its frame: one that says more is no message, and libzmq would count none of what follows. */
static bool take_flags(struct stream *stream, uint8_t byte)
{
    stream->flags = byte;
    stream->at = 0;
    stream->length = 0;
    stream->phase = PHASE_LENGTH;
    return (byte & (FLAG_COMMAND | FLAG_MORE)) != (FLAG_COMMAND | FLAG_MORE);
}

static bool take_length(struct stream *stream, uint8_t byte)
{
    stream->length = stream->length << 8 | byte;
    if (++stream->at < (stream->flags & FLAG_LONG ? 8 : 1))
        return true;
    stream->phase = stream->length ? PHASE_BODY : PHASE_FLAGS;
    if (stream->flags & FLAG_COMMAND)
        return true;
    if (!(stream->flags & FLAG_MORE)) { /* the last one, or the only one */
        stream->frames = 0;
        stream->bytes = 0;
        return true;
    }
    stream->frames++;
    stream->bytes += stream->length < MULTIPART_BYTES_MAX ? stream->length : MULTIPART_BYTES_MAX;
    return stream->frames < MULTIPART_MAX && stream->bytes < MULTIPART_BYTES_MAX;
}

static size_t skip_body(struct stream *stream, size_t len)
{
    size_t skipped = stream->length < len ? (size_t)stream->length : len;
    stream->length -= skipped;
    if (stream->length == 0)
        stream->phase = PHASE_FLAGS;
    return skipped;
}

/* False: it is to be cut off. */
static bool follow(struct stream *stream, const uint8_t *bytes, size_t len)
{
    bool is_good = true;
    for (size_t at = 0; at < len && is_good;) {
        if (stream->phase == PHASE_BODY)
            at += skip_body(stream, len - at);
        else if (stream->phase == PHASE_FLAGS)
            is_good = take_flags(stream, bytes[at++]);
        else if (stream->phase == PHASE_LENGTH)
            is_good = take_length(stream, bytes[at++]);
        else
            is_good = take_greeting(stream, bytes[at++]);
    }
    return is_good;
}

/* ---- in the C library's place -------------------------------------------------------------------- */

static void set_phase(int fd, enum phase phase)
{
    if (fd >= 0 && fd < FDS_MAX)
        streams[fd] = (struct stream){.phase = phase};
}

int accept4(int listener, struct sockaddr *address, socklen_t *len, int flags)
{
    int fd = (int)syscall(SYS_accept4, listener, address, len, flags);
    set_phase(fd, PHASE_GREETING);
    return fd;
}

int accept(int listener, struct sockaddr *address, socklen_t *len) { return accept4(listener, address, len, 0); }

/* Its descriptor may have been another's. */
int connect(int fd, const struct sockaddr *address, socklen_t len)
{
    set_phase(fd, atomic_load(&follows_own) && !passes_over ? PHASE_GREETING : PHASE_NONE);
    return (int)syscall(SYS_connect, fd, address, len);
}

static ssize_t cut_off(int fd, struct stream *stream)
{
    if (stream->phase != PHASE_CUT)
        atomic_fetch_add(&cuts, 1);
    stream->phase = PHASE_CUT;
    shutdown(fd, SHUT_RDWR);
    errno = ECONNRESET;
    return -1;
}

ssize_t recv(int fd, void *bytes, size_t size, int flags)
{
    ssize_t got = recvfrom(fd, bytes, size, flags, NULL, NULL);
    struct stream *stream = fd >= 0 && fd < FDS_MAX ? &streams[fd] : NULL;
    if (got <= 0 || !stream || stream->phase == PHASE_NONE || flags & MSG_PEEK)
        return got;
    if (stream->phase != PHASE_CUT && follow(stream, bytes, (size_t)got))
        return got;
    return cut_off(fd, stream);
}
