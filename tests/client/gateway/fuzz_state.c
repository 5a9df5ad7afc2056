/*
 * What a kill, a full disk or a stranger left in the files of a gateway: they are read, and what is added is there
 * when they are read again, beside all that was there. The first byte says which file.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/gateway/prorl/trainers.h"
#include "client/gateway/runs/had.h"
#include "common/base/cleanup.h"
#include "tests/fuzz.h"

/* A file that is nowhere, by its path. */
static int make_file(const uint8_t *data, size_t size, char path[64])
{
    const int fd = memfd_create("state", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static struct had *open_had(const char *path)
{
    struct fail fail = {0};
    struct had *had = had_open(path, &fail);
    if (!had)
        fprintf(stderr, "%s\n", fail.text);
    must(had);
    return had;
}

/* Each whole line that is a name. */
static void check_lines(const struct had *had, struct slice text)
{
    for (size_t at = 0; at < text.len;) {
        char name[HAD_NAME_SIZE];
        const uint8_t *end = memchr(text.data + at, '\n', text.len - at);
        const size_t len = end ? (size_t)(end - text.data) - at : 0;
        if (!end)
            return;
        if (len > 0 && len < sizeof(name) && !memchr(text.data + at, 0, len)) {
            snprintf(name, sizeof(name), "%.*s", (int)len, (const char *)text.data + at);
            must(had_has(had, name));
        }
        at += len + 1;
    }
}

static void check_had(const char *path, struct slice text)
{
    struct had *had = open_had(path);
    check_lines(had, text);
    must(had_add(had, "gym-added-0"));
    had_close(&had);
    had = open_had(path);
    check_lines(had, text);
    must(had_has(had, "gym-added-0"));
    had_remove(had, "gym-added-0");
    must(!had_has(had, "gym-added-0"));
    had_close(&had);
}

/* Beside that file, under a name of its own: they are written anew and moved there. */
static void check_trainers(struct slice text)
{
    static char folder[] = "/tmp/sluice-fuzz-XXXXXX", path[64], whole[80];
    if (!path[0]) {
        must(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/state", folder);
        snprintf(whole, sizeof(whole), "%s.prorl", path);
    }
    FILE *out = fopen(whole, "w");
    must(out && fwrite(text.data, 1, text.len, out) == text.len && fclose(out) == 0);
    struct trainers *trainers = trainers_open(path);
    must(trainers);
    trainers_save(trainers);
    trainers_close(&trainers);
    must(access(whole, F_OK) != 0);
    must(rmdir(folder) == 0 && mkdir(folder, 0700) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    if (size == 0)
        return 0;
    if (data[0] & 1) {
        check_trainers(slice_of(data + 1, size - 1));
        return 0;
    }
    const int fd = make_file(data + 1, size - 1, path);
    check_had(path, slice_of(data + 1, size - 1));
    close(fd);
    return 0;
}
