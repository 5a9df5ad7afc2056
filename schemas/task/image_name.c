#include "schemas/task/image_name.h"

#include <stdio.h>
#include <string.h>

enum { NAME_SHOWN = 100, STEM_MAX = 64 };

/* How a name begins, and what the tools call it. */
static const struct {
    const char *prefix, *source;
    bool has_layout; /* skopeo reads it too */
} registries[] = {
    {"docker://", "docker://", true}, {"docker-daemon:", "docker-daemon:", true},
    {"podman://", "docker://", true}, {"library://", "library://", false},
    {"oras://", "oras://", false},    {"shub://", "shub://", false},
    {"http://", "http://", false},    {"https://", "https://", false},
};

/* "debian:12", "ghcr.io/org/name@sha256:..." : not a path, and it says a version. */
static bool is_bare_reference(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-/:@";
    bool looks = strchr(name, ':') || strchr(name, '@');
    return looks && name[0] != '/' && name[0] != '.' && name[0] != ':' && name[strspn(name, allowed)] == '\0';
}

/* "docker.io/library/debian:12" as "debian_12". */
static void make_stem(const char *name, char stem[STEM_MAX])
{
    const char *slash = strrchr(name, '/');
    snprintf(stem, STEM_MAX, "%s", slash ? slash + 1 : name);
    for (char *at = stem; *at; at++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-", *at))
            *at = '_';
    if (!stem[0])
        strcpy(stem, "image");
}

static void explain(const char *given, const char *source, const char *rest, bool has_layout, char *words, size_t size)
{
    char stem[STEM_MAX];
    make_stem(rest, stem);
    int len = snprintf(words, size,
                       "%.*s is a registry's name, and nothing is fetched here: run "
                       "`apptainer build %s.sif %s%.*s`",
                       NAME_SHOWN, given, stem, source, NAME_SHOWN, rest);
    if (has_layout && len > 0 && (size_t)len < size)
        snprintf(words + len, size - (size_t)len,
                 " or `skopeo copy %s%.*s oci:%s:latest`, and name that file or directory", source, NAME_SHOWN, rest,
                 stem);
    else if (len > 0 && (size_t)len < size)
        snprintf(words + len, size - (size_t)len, " and name that file");
}

bool image_name_explain(const char *name, char *ret_words, size_t size)
{
    for (size_t i = 0; i < sizeof(registries) / sizeof(*registries); i++) {
        size_t len = strlen(registries[i].prefix);
        if (strncmp(name, registries[i].prefix, len) != 0)
            continue;
        explain(name, registries[i].source, name + len, registries[i].has_layout, ret_words, size);
        return true;
    }
    if (!is_bare_reference(name) || strncmp(name, "oci:", 4) == 0)
        return false;
    explain(name, "docker://", name, true, ret_words, size);
    return true;
}
