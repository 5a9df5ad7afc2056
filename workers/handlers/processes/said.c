#include "workers/handlers/processes/said.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/loop/loop_now.h"

enum { CHUNK_BYTES = 4096, CHUNKS_A_TURN = 16 };

static void refill(struct said *said)
{
    const int64_t now_ms = loop_now_ms(), more = (now_ms - said->refilled_ms) * SAID_RATE / 1000;
    if (more <= 0)
        return;
    said->budget = more > SAID_BURST - said->budget ? SAID_BURST : said->budget + (int)more;
    said->refilled_ms = now_ms;
}

static void log_line(struct said *said)
{
    said->line[said->len] = '\0';
    const bool is_empty = said->len == 0;
    said->len = 0;
    if (is_empty)
        return;
    refill(said);
    if (said->budget <= 0) {
        said->unsaid++;
        return;
    }
    said->budget--;
    text_sanitize(said->line);
    if (said->unsaid)
        log_event(LOG_INFO, "handler.said", "handler=%s line=\"%s\" unsaid=%llu", said->handler, said->line,
                  (unsigned long long)said->unsaid);
    else
        log_event(LOG_INFO, "handler.said", "handler=%s line=\"%s\"", said->handler, said->line);
    said->unsaid = 0;
}

static void take(struct said *said, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] == '\n')
            log_line(said);
        else if (said->len < SAID_LINE_MAX)
            said->line[said->len++] = bytes[i] ? bytes[i] : '?';
}

/* False at the end. */
static bool read_some(struct said *said)
{
    char chunk[CHUNK_BYTES];
    for (int i = 0; i < CHUNKS_A_TURN; i++) {
        ssize_t got = read(said->fd, chunk, sizeof(chunk));
        if (got <= 0)
            return got < 0 && (errno == EAGAIN || errno == EINTR);
        take(said, chunk, (size_t)got);
    }
    return true;
}

static void ready(void *arg, uint32_t events)
{
    struct said *said = arg;
    (void)events;
    if (!read_some(said))
        loop_unwatch(said->loop, &said->watch);
}

bool said_open(struct said *said, struct loop *loop, int fd, const char *handler)
{
    *said = (struct said){
        .fd = fd, .loop = loop, .handler = handler, .budget = SAID_BURST, .refilled_ms = loop_now_ms()};
    said->watch = loop_watch(loop, fd, EPOLLIN, ready, said);
    if (!said->watch)
        close(take_fd(&said->fd));
    return said->watch != NULL;
}

void said_close(struct said *said)
{
    if (said->fd < 0)
        return;
    read_some(said);
    log_line(said);
    loop_unwatch(said->loop, &said->watch);
    close(take_fd(&said->fd));
}
