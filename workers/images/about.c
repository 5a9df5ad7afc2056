#include "workers/images/about.h"
#include "workers/files/dirtree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"

enum { ABOUT_MAX = 65536 };

void image_about_finish(struct image_about *about) { free(take_ptr(&about->name)); }

/* The numbers of about.json, said once. */
#define ABOUT_NUMBERS(NUMBER)                                                                                          \
    NUMBER(bytes)                                                                                                      \
    NUMBER(entries)                                                                                                    \
    NUMBER(devices)                                                                                                    \
    NUMBER(sockets)                                                                                                    \
    NUMBER(attributes)                                                                                                 \
    NUMBER(unreadable)                                                                                                 \
    NUMBER(prepared_s)

json_t *image_about_json(const struct image_about *about)
{
    json_t *json = json_pack("{s:s, s:s, s:s}", "key", about->key, "image", about->name, "kind", about->kind);
#define PUT(name) json_object_set_new(json, #name, json_integer((json_int_t)about->name));
    ABOUT_NUMBERS(PUT)
#undef PUT
    return json;
}

/* A path that is no UTF-8 cannot be said in JSON: its odd bytes become "?". */
static char *name_image(const struct image *image)
{
    char *name = NULL;
    if (asprintf(&name, "%s%s%s", image->path, image->tag ? ":" : "", image->tag ? image->tag : "") < 0)
        return NULL;
    json_t *sayable = json_string(name);
    for (char *at = name; !sayable && *at; at++)
        if (*at & 0x80)
            *at = '?';
    json_decref(sayable);
    return name;
}

int image_about_write(const char *directory, const struct image *image, const struct rootfs_counts *counts,
                      struct image_trouble *trouble)
{
    struct image_about about = {.bytes = counts->bytes,
                                .entries = counts->entries,
                                .devices = counts->devices,
                                .sockets = counts->sockets,
                                .attributes = counts->attributes,
                                .unreadable = counts->unreadable,
                                .prepared_s = clock_wall_ms() / 1000,
                                .name = name_image(image)};
    AUTO_FREE char *path = dirtree_join(directory, "about.json");
    memcpy(about.key, image->key, sizeof(about.key));
    snprintf(about.kind, sizeof(about.kind), "%s", image_kind_name(image->kind));
    json_t *json = about.name ? image_about_json(&about) : NULL;
    int code = 0;
    if (!path || !json)
        code = image_fail(trouble, -ENOMEM, "out of memory");
    else if (json_dump_file(json, path, JSON_SORT_KEYS) < 0)
        code = image_fail_errno(trouble, "write", path);
    json_decref(json);
    image_about_finish(&about);
    return code;
}

static json_t *load(const char *directory)
{
    AUTO_FREE char *path = dirtree_join(directory, "about.json");
    char text[ABOUT_MAX];
    if (!path)
        return NULL;
    AUTO_CLOSE int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t len = file < 0 ? -1 : read(file, text, sizeof(text));
    return len < 0 ? NULL : json_loadb(text, (size_t)len, 0, NULL);
}

static bool look(const char *directory, struct image_about *about)
{
    struct stat it;
    bool is_there = lstat(directory, &it) == 0;
    about->used_s = is_there ? it.st_mtime : 0;
    return is_there;
}

bool image_about_read(const char *directory, struct image_about *ret)
{
    json_t *json = load(directory);
    const char *name = json_string_value(json_object_get(json, "image"));
    const char *kind = json_string_value(json_object_get(json, "kind"));
    const char *key = strrchr(directory, '/');
    *ret = (struct image_about){0};
    bool is_whole = name && kind && key && (ret->name = strdup(name)) && look(directory, ret);
    if (is_whole) {
        snprintf(ret->key, sizeof(ret->key), "%s", key + 1);
        snprintf(ret->kind, sizeof(ret->kind), "%s", kind);
#define GET(field) ret->field = (__typeof__(ret->field))json_integer_value(json_object_get(json, #field));
        ABOUT_NUMBERS(GET)
#undef GET
    } else {
        image_about_finish(ret);
    }
    json_decref(json);
    return is_whole;
}
