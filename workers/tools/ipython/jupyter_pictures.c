#include "workers/tools/ipython/jupyter_pictures.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "schemas/task/base64.h"
#include "workers/runtime/offload.h"

/* As in ipython_driver.py. */
enum {
    PICTURES_MAX = 64,
    PICTURE_BYTES_MAX = 4 << 20,
    PICTURES_BYTES_MAX = 16 << 20,
    NAMES_TRIED = 100
};

static const struct kind {
    const char *name, *extension;
    bool is_text; /* else base64 */
} kinds[] = {
    {"image/png", "png", false},  {"image/jpeg", "jpg", false}, {"image/svg+xml", "svg", true},
    {"image/gif", "gif", false},  {"image/webp", "webp", false}, {"application/pdf", "pdf", false},
};

struct picture {
    const struct kind *kind;
    uint8_t *data;
    size_t len;
    char path[96];
};

/* ---- bytes -------------------------------------------------------------------------------- */

/* Kernels break base64 into lines. False: it is none. */
static bool decode(const char *text, size_t len, struct picture *picture)
{
    AUTO_FREE char *digits = malloc(len + 1);
    size_t count = 0;
    for (size_t i = 0; digits && i < len; i++)
        if (!isspace((unsigned char)text[i]))
            digits[count++] = text[i];
    picture->data = malloc(base64_room(count) + 1);
    return digits && picture->data &&
           base64_decode(slice_of(digits, count), picture->data, &picture->len);
}

static bool take_bytes(const json_t *value, struct picture *picture)
{
    const char *text = json_string_value(value);
    size_t len = json_string_length(value);
    if (!picture->kind->is_text)
        return decode(text, len, picture);
    picture->data = malloc(len + 1);
    if (picture->data)
        memcpy(picture->data, text, len);
    picture->len = len;
    return picture->data;
}

/* ---- files -------------------------------------------------------------------------------- */

struct writing {
    int fd;
    const struct picture *picture;
};

static int write_work(void *arg, const atomic_bool *stop)
{
    const struct writing *writing = arg;
    for (size_t done = 0; done < writing->picture->len && !*stop;) {
        ssize_t wrote = write(writing->fd, writing->picture->data + done, writing->picture->len - done);
        if (wrote < 0 && errno != EINTR)
            return -errno;
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    return *stop ? -ECANCELED : 0;
}

/* A name that nothing has; the descriptor, or negative errno. */
static int make_file(struct jupyter_pictures *pictures, struct picture *picture, struct fail *fail)
{
    int fd = -EEXIST;
    for (int tries = 0; fd == -EEXIST && tries < NAMES_TRIED; tries++) {
        snprintf(picture->path, sizeof(picture->path), "/workspace/.sluice/%.32s-%u.%s",
                 pictures->base, ++pictures->number, picture->kind->extension);
        fd = sandbox_open_file(pictures->sandbox, picture->path,
                               O_WRONLY | O_CREAT | O_EXCL | SANDBOX_AS_USER, 0644, fail);
    }
    return fd;
}

static int write_file(struct jupyter_pictures *pictures, struct picture *picture, struct fail *fail)
{
    AUTO_CLOSE int fd = make_file(pictures, picture, fail);
    if (fd < 0)
        return fd;
    struct writing writing = {fd, picture};
    int code = offload_run(write_work, &writing, fail);
    if (code < 0)
        sandbox_remove(pictures->sandbox, picture->path, NULL);
    return code;
}

/* What is said of it, after its kind and length. */
static void save(struct jupyter_pictures *pictures, struct picture *picture, char *words, size_t size)
{
    struct fail fail = {0};
    if (picture->len > PICTURE_BYTES_MAX) {
        snprintf(words, size, "not saved, more than %d MiB", PICTURE_BYTES_MAX >> 20);
        return;
    }
    if (pictures->saved >= PICTURES_MAX || pictures->bytes + picture->len > PICTURES_BYTES_MAX) {
        snprintf(words, size, "not saved, this kernel has saved its %d files or %d MiB", PICTURES_MAX,
                 PICTURES_BYTES_MAX >> 20);
        return;
    }
    int code = write_file(pictures, picture, &fail);
    if (code < 0) {
        snprintf(words, size, "not saved: %s", strerror(-code));
        return;
    }
    pictures->saved++;
    pictures->bytes += picture->len;
    snprintf(words, size, "%s", picture->path);
}

static const json_t *find(const json_t *bundle, const struct kind **ret)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        const json_t *value = json_object_get(bundle, kinds[i].name);
        *ret = &kinds[i];
        if (json_string_length(value) > 0)
            return value;
    }
    return NULL;
}

bool jupyter_pictures_take(struct jupyter_pictures *pictures, const json_t *bundle,
                           struct output *output)
{
    struct picture picture = {0};
    char words[128] = "not saved: its bytes are no base64", line[256];
    const json_t *value = find(bundle, &picture.kind);
    if (!value)
        return false;
    if (take_bytes(value, &picture))
        save(pictures, &picture, words, sizeof(words));
    snprintf(line, sizeof(line), "[%s, %zu bytes: %s]\n", picture.kind->name, picture.len, words);
    output_append(output, line, strlen(line));
    free(picture.data);
    return true;
}
