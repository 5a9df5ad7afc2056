#include "workers/sandbox/output.h"

#include <errno.h>
#include <unistd.h>

#include "common/base/cleanup.h"

void output_init(struct output *output, size_t max)
{
    *output = (struct output){.head_max = max - max / 2, .tail_max = max / 2};
}

static void append_tail(struct output *output, const uint8_t *data, size_t len)
{
    if (!output->tail && output->tail_max > 0 && !(output->tail = malloc(output->tail_max)))
        output->failed = true;
    if (!output->tail)
        return;
    if (len > output->tail_max) {
        data += len - output->tail_max;
        len = output->tail_max;
    }
    size_t first = output->tail_max - output->tail_at;
    if (first > len)
        first = len;
    memcpy(output->tail + output->tail_at, data, first);
    memcpy(output->tail, data + first, len - first);
    output->tail_at = (output->tail_at + len) % output->tail_max;
    output->tail_len = output->tail_len + len < output->tail_max ? output->tail_len + len : output->tail_max;
}

void output_append(struct output *output, const void *data, size_t len)
{
    size_t room = output->head_max - output->head.len;
    size_t first = len < room ? len : room;
    output->total += len;
    buffer_append(&output->head, data, first);
    if (len > first)
        append_tail(output, (const uint8_t *)data + first, len - first);
}

/* [from, to) of the file; a file that shrank gives less. */
static void append_range(struct output *output, int fd, uint64_t from, uint64_t to)
{
    uint8_t chunk[16384];
    while (from < to) {
        size_t want = to - from < sizeof(chunk) ? (size_t)(to - from) : sizeof(chunk);
        ssize_t got = pread(fd, chunk, want, (off_t)from);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return;
        output_append(output, chunk, (size_t)got);
        from += (uint64_t)got;
    }
}

void output_append_part(struct output *output, int fd, uint64_t from, uint64_t to)
{
    uint64_t before = output->total, room = output->head_max - output->head.len;
    if (to - from <= room + output->tail_max) {
        append_range(output, fd, from, to);
        return;
    }
    append_range(output, fd, from, from + room);
    append_range(output, fd, to - output->tail_max, to);
    output->total = before + (to - from);
}

void output_append_file(struct output *output, int fd, uint64_t size) { output_append_part(output, fd, 0, size); }

char *output_take(struct output *output, size_t *len)
{
    size_t kept = output->head.len + output->tail_len;
    if (output->total > kept)
        buffer_printf(&output->head, "\n[%lu bytes left out]\n", (unsigned long)(output->total - kept));
    if (output->tail_len > 0) {
        size_t from = output->tail_len < output->tail_max ? 0 : output->tail_at;
        buffer_append(&output->head, output->tail + from, output->tail_len - from);
        buffer_append(&output->head, output->tail, from);
    }
    *len = output->head.len;
    char *text = output->failed || output->head.failed ? NULL : buffer_take_str(&output->head);
    output_finish(output);
    return text;
}

void output_finish(struct output *output)
{
    buffer_finish(&output->head);
    free(output->tail);
    output->tail = NULL;
}
