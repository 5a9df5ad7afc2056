#include "workers/images/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"

void image_names_finish(struct image_names *names)
{
    while (names->count > 0)
        free(names->each[--names->count]);
    free(take_ptr(&names->each));
}

/* The beginning and the length of what counts of a name. */
static const char *shorten(const char *name, size_t *len)
{
    static const char *const prefixes[] = {"docker.io/", "library/"}, latest[] = ":latest";
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (*len > strlen(prefixes[i]) && strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
            name += strlen(prefixes[i]);
            *len -= strlen(prefixes[i]);
        }
    if (*len > strlen(latest) && strncmp(name + *len - strlen(latest), latest, strlen(latest)) == 0)
        *len -= strlen(latest);
    return name;
}

int image_names_add(struct image_names *names, const char *text, struct fail *fail)
{
    const char *equals = strchr(text, '=');
    size_t len = equals ? (size_t)(equals - text) : 0;
    if (len == 0 || equals[1] != '/')
        return fail_set(fail, -EINVAL, "--image-name wants NAME=PATH with an absolute path, not '%.100s'", text);
    if (names->count == IMAGE_NAMES_MAX)
        return fail_set(fail, -EINVAL, "--image-name: more than %d names", IMAGE_NAMES_MAX);
    const char *name = shorten(text, &len);
    char **more = reallocarray(names->each, names->count + 1, sizeof(*more));
    if (!more)
        return fail_memory(fail);
    names->each = more;
    if (asprintf(&more[names->count], "%.*s%s", (int)len, name, equals) < 0)
        return fail_memory(fail);
    names->count++;
    return 0;
}

/* In one directory of images: 1; 0: there is none; -ENOMEM. */
static int find_below(const char *dir, const char *name, char **ret)
{
    static const char *const ends[] = {"", ".sif"};
    AUTO_FREE char *flat = strdup(name);
    if (!flat)
        return -ENOMEM;
    for (char *at = flat; *at; at++)
        *at = *at == '/' || *at == ':' ? '_' : *at;
    const char *const forms[] = {name, flat};
    for (size_t i = 0; i < 4; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/%s%s", dir, forms[i / 2], ends[i % 2]) < 0)
            return -ENOMEM;
        if (access(path, F_OK) == 0) {
            *ret = path;
            return 1;
        }
        free(path);
    }
    return 0;
}

int image_names_find(const struct image_names *names, const char *name, char **ret, struct fail *fail)
{
    size_t len = strlen(name);
    const char *shown = shorten(name, &len);
    AUTO_FREE char *short_name = strndup(shown, len);
    if (!short_name)
        return fail_memory(fail);
    for (size_t i = 0; names && i < names->count; i++) {
        const char *each = names->each[i], *equals = each + strcspn(each, "=");
        if ((size_t)(equals - each) == len && strncmp(each, short_name, len) == 0) {
            *ret = strdup(equals + 1);
            return *ret ? 0 : fail_memory(fail);
        }
    }
    for (size_t i = 0; names && !strstr(name, "..") && i < names->list->listed_count; i++) {
        int found = find_below(names->list->listed[i], name, ret);
        found = found == 0 ? find_below(names->list->listed[i], short_name, ret) : found;
        if (found != 0)
            return found < 0 ? fail_memory(fail) : 0;
    }
    return fail_set(fail, -EINVAL,
                    "no image is known as %.200s: the worker's operator says which, with --image-name %.100s=PATH, or "
                    "puts one of that name into a directory of --images; the task may say it with image",
                    name, short_name);
}
