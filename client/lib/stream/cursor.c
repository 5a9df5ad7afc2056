#include "client/lib/stream/cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/cleanup.h"

enum { CURSOR_VERSION = 1, CURSOR_BYTES_MAX = 4096 };

/* ---- reading ---------------------------------------------------------------------------------- */

static uint64_t number(const json_t *object, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value > 0 ? (uint64_t)value : 0;
}

/* False unless it is whole, of this version and of this stream. */
static bool take_cursor(const json_t *object, struct stream *stream)
{
    const char *name = json_string_value(json_object_get(object, "stream"));
    const char *rollout = json_string_value(json_object_get(object, "rollout"));
    if (number(object, "sluice_cursor") != CURSOR_VERSION || !name || !rollout || strcmp(name, stream->name) != 0 ||
        strlen(rollout) >= sizeof(stream->last.rollout) || number(object, "next") < 2 || number(object, "epoch") < 1)
        return false;
    stream->next = number(object, "next");
    stream->head = stream->next - 1;
    stream->seen = (struct seen){.epoch = number(object, "epoch"),
                                 .start_id = number(object, "start_id"),
                                 .head = stream->head,
                                 .accepted = stream->head};
    strcpy(stream->last.rollout, rollout);
    stream->last.ended_ms = number(object, "ended_ms");
    return true;
}

int cursor_read(struct sluice_client *client, struct stream *stream)
{
    char bytes[CURSOR_BYTES_MAX];
    AUTO_FCLOSE FILE *file = fopen(stream->cursor_path, "re");
    if (!file && errno == ENOENT)
        return 0;
    size_t len = file ? fread(bytes, 1, sizeof(bytes), file) : 0;
    if (!file || ferror(file))
        return client_fail(client, -errno, "cannot read the cursor %s: %s", stream->cursor_path, strerror(errno));
    json_t *object = json_loadb(bytes, len, 0, NULL);
    bool good = take_cursor(object, stream);
    json_decref(object);
    if (!good)
        return client_fail(client, -EINVAL, "%s is not a cursor of stream %s; remove it to start over",
                           stream->cursor_path, stream->name);
    return 0;
}

/* ---- writing ---------------------------------------------------------------------------------- */

static char *format_cursor(const struct stream *stream)
{
    json_t *object = json_pack("{s:i, s:s, s:I, s:I, s:I, s:s, s:I}", "sluice_cursor", CURSOR_VERSION, "stream",
                               stream->name, "next", (json_int_t)stream->next, "epoch", (json_int_t)stream->seen.epoch,
                               "start_id", (json_int_t)stream->seen.start_id, "rollout", stream->last.rollout,
                               "ended_ms", (json_int_t)stream->last.ended_ms);
    char *text = object ? json_dumps(object, 0) : NULL;
    json_decref(object);
    return text;
}

/* Errno of what failed, or 0. */
static int write_whole(const char *path, const char *text)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno;
    for (size_t at = 0, len = strlen(text); at < len;) {
        ssize_t wrote = write(fd, text + at, len - at);
        if (wrote < 0 && errno != EINTR)
            return errno;
        at += wrote < 0 ? 0 : (size_t)wrote;
    }
    return fdatasync(fd) == 0 && close(take_fd(&fd)) == 0 ? 0 : errno;
}

int cursor_write(struct sluice_client *client, struct stream *stream)
{
    AUTO_BUFFER beside = {0};
    AUTO_FREE char *text = format_cursor(stream);
    buffer_printf(&beside, "%s.new", stream->cursor_path);
    AUTO_FREE char *path = buffer_take_str(&beside);
    if (!text || !path)
        return client_fail(client, -ENOMEM, "out of memory");
    int why = write_whole(path, text);
    if (!why && rename(path, stream->cursor_path) != 0)
        why = errno;
    return why ? client_fail(client, -why, "cannot write the cursor %s: %s", stream->cursor_path, strerror(why)) : 0;
}
