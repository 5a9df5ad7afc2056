#include "client/gateway/prorl/swe_patch.h"

#include <stdlib.h>

#include "common/base/cleanup.h"

static const char *const no_tests[] = {".json", ".png", ".csv", ".txt",  ".md",  ".jpg",
                                       ".jpeg", ".pkl", ".yml", ".yaml", ".toml"};

void swe_append_word(struct buffer *ret, const char *word)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_";
    if (*word && strspn(word, safe) == strlen(word))
        buffer_append_str(ret, word);
    else
        buffer_append_quoted(ret, word);
}

/* Each name once, however many there are. */
static void add_name(json_t *files, json_t *seen, struct slice name)
{
    json_t *text = json_stringn((const char *)name.data, name.len); /* NULL: no UTF-8 */
    if (text && !json_object_get(seen, json_string_value(text)) &&
        json_object_set(seen, json_string_value(text), text) == 0)
        json_array_append(files, text);
    json_decref(text);
}

/* What stands behind the last " b/" of such a line. */
static struct slice file_of(struct slice line, const char *start, const char *mark)
{
    const size_t len = strlen(start), mark_len = strlen(mark);
    if (line.len <= len + mark_len || memcmp(line.data, start, len) != 0)
        return slice_of(NULL, 0);
    for (size_t at = line.len - mark_len; at >= len; at--) {
        if (memcmp(line.data + at, mark, mark_len) == 0)
            return slice_of(line.data + at + mark_len, line.len - at - mark_len);
        if (at == 0)
            break;
    }
    return slice_of(NULL, 0);
}

static void find_files(const char *patch, const char *start, const char *mark, json_t *ret)
{
    json_t *seen = json_object();
    for (const char *at = patch; *at;) {
        const size_t len = strcspn(at, "\n");
        const struct slice name = file_of(slice_of(at, len), start, mark);
        if (name.len > 0)
            add_name(ret, seen, name);
        at += len + (at[len] == '\n');
    }
    json_decref(seen);
}

json_t *swe_patch_files(const char *patch)
{
    json_t *files = json_array();
    find_files(patch, "diff --git a/", " b/", files);
    if (json_array_size(files) == 0)
        find_files(patch, "+++ ", "b/", files);
    return files;
}

static bool is_test(const char *name)
{
    const size_t len = strlen(name);
    for (size_t i = 0; i < sizeof(no_tests) / sizeof(*no_tests); i++) {
        const size_t end = strlen(no_tests[i]);
        if (len >= end && strcmp(name + len - end, no_tests[i]) == 0)
            return false;
    }
    return true;
}

/* tests/a/b.py as a.b, as Django's runner is given it. */
static void as_module(char *name)
{
    if (strncmp(name, "tests/", 6) == 0)
        memmove(name, name + 6, strlen(name + 6) + 1);
    char *dot = strrchr(name, '.');
    if (dot && !strchr(dot, '/'))
        *dot = '\0';
    for (char *at = name; *at; at++)
        *at = *at == '/' ? '.' : *at;
}

void swe_patch_tests(const char *repository, const char *patch, struct buffer *ret)
{
    json_t *files = swe_patch_files(patch), *each;
    size_t i;
    json_array_foreach(files, i, each)
    {
        AUTO_FREE char *name = strdup(json_string_value(each));
        if (!name || !is_test(name))
            continue;
        if (strcmp(repository, "django/django") == 0)
            as_module(name);
        buffer_append_str(ret, " ");
        swe_append_word(ret, name);
    }
    json_decref(files);
}
