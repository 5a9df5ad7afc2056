/* What is in a directory of a sandbox, for edit_file.h. */
#include "workers/tools/edit/edit_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/files/dir_stream.h"
#include "common/base/sanitize.h"
#include "workers/runtime/offload.h"
#include "workers/sandbox/requests.h"
#include "workers/tools/edit/edit_file.h"

struct entry {
    char *name;
    unsigned char type; /* DT_DIR ... */
};

struct folder {
    int fd;
    struct entry entries[EDIT_ENTRIES_MAX];
    size_t count;
    bool is_more;
};

struct listing {
    struct sandbox *sandbox;
    struct buffer *out;
    size_t entries, folders;
    bool is_more;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static int read_work(void *arg, const atomic_bool *stop)
{
    struct folder *folder = arg;
    int own = dup(folder->fd);
    DIR *dir = own < 0 ? NULL : fdopendir(own);
    if (!dir) {
        cleanup_close(&own);
        return -ENOMEM;
    }
    const struct dirent *it;
    int code = 0, more = 0;
    while (code == 0 && (more = dir_stream_next(dir, &it)) > 0) {
        if (it->d_name[0] == '.')
            continue;
        if ((folder->is_more = folder->count == EDIT_ENTRIES_MAX) || *stop)
            break;
        struct entry *entry = &folder->entries[folder->count];
        *entry = (struct entry){strdup(it->d_name), it->d_type};
        code = entry->name ? 0 : -ENOMEM;
        folder->count += code == 0;
    }
    closedir(dir);
    folder->is_more |= more < 0; /* what it is made of may be the agent's: there may be more is all that is known */
    qsort(folder->entries, folder->count, sizeof(*folder->entries), by_name);
    return code;
}

static void finish(struct folder *folder)
{
    for (size_t i = 0; i < folder->count; i++)
        free(folder->entries[i].name);
    free(folder);
}

static int list_folder(struct listing *listing, int fd, const char *path, int levels, struct fail *fail);

/* One that cannot be opened has nothing to show. */
static int list_inner(struct listing *listing, const char *path, int levels, struct fail *fail)
{
    if (levels == 0)
        return 0;
    if (listing->folders == EDIT_FOLDERS_MAX) {
        listing->is_more = true;
        return 0;
    }
    AUTO_CLOSE int fd = sandbox_open_file(listing->sandbox, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | SANDBOX_AS_USER,
                                          0, fail);
    if (fd < 0)
        return sandbox_is_alive(listing->sandbox) && fd != -ECANCELED && fd != -ETIMEDOUT ? 0 : fd;
    return list_folder(listing, fd, path, levels, fail);
}

/* A name can hold anything: it makes one line all the same. */
static void append_line(struct buffer *out, const char *path, const char *mark)
{
    size_t at = out->len;
    buffer_printf(out, "%s%s", path, mark);
    if (!out->failed)
        out->len = at + sanitize((char *)out->data + at, out->len - at, false);
    buffer_append_str(out, "\n");
}

static int list_entry(struct listing *listing, const char *path, const struct entry *entry, int levels,
                      struct fail *fail)
{
    char inner[PATH_MAX];
    const bool is_dir = entry->type == DT_DIR;
    if (listing->entries++ >= EDIT_ENTRIES_MAX) {
        listing->is_more = true;
        return 0;
    }
    if (snprintf(inner, sizeof(inner), "%s/%s", strcmp(path, "/") == 0 ? "" : path, entry->name) >= PATH_MAX)
        return 0;
    append_line(listing->out, inner, is_dir ? "/" : "");
    return is_dir ? list_inner(listing, inner, levels, fail) : 0;
}

static int list_folder(struct listing *listing, int fd, const char *path, int levels, struct fail *fail)
{
    struct folder *folder = calloc(1, sizeof(*folder));
    if (!folder)
        return fail_memory(fail);
    folder->fd = fd;
    listing->folders++;
    int code = offload_run(read_work, folder, fail);
    if (code < 0)
        fail_set(fail, code, "%.400s: %s", path, strerror(-code));
    listing->is_more |= folder->is_more;
    for (size_t i = 0; i < folder->count && code == 0; i++)
        code = list_entry(listing, path, &folder->entries[i], levels - 1, fail);
    finish(folder);
    return code;
}

int edit_file_list(const struct edit_file *file, struct sandbox *sandbox, struct buffer *out, struct fail *fail)
{
    struct listing listing = {.sandbox = sandbox, .out = out};
    int code = list_folder(&listing, file->fd, file->path, 2, fail);
    if (code == 0 && listing.is_more)
        buffer_append_str(out, "[there is more, which is not shown]\n");
    if (code == 0 && listing.entries == 0)
        buffer_append_str(out, "[nothing that is not hidden]\n");
    return code == 0 && out->failed ? fail_memory(fail) : code;
}
