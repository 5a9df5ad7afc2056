#include "workers/layers/unpack/name.h"

#include <stdbool.h>
#include <string.h>

#include "workers/sandbox/proto/markers.h"

static bool begins(const char *name, const char *prefix) { return strncmp(name, prefix, strlen(prefix)) == 0; }

static void cut(char *from, const char *prefix)
{
    size_t len = strlen(prefix);
    memmove(from, from + len, strlen(from + len) + 1);
}

/* A name with its escape taken off; `name` ends with the path's end or a slash. */
static enum layer_name read_literal(char *name)
{
    cut(name, MARKER_LITERAL);
    return begins(name, MARKER) ? LAYER_NAME_FILE : LAYER_NAME_BAD;
}

/* The last name, when it is a marker. */
static enum layer_name read_marker(char *path, char *leaf)
{
    if (strcmp(leaf, MARKER_OPAQUE) == 0) {
        leaf[leaf > path ? -1 : 0] = '\0';
        return LAYER_NAME_OPAQUE;
    }
    cut(leaf, MARKER);
    if (begins(leaf, MARKER_LITERAL))
        return read_literal(leaf) == LAYER_NAME_FILE ? LAYER_NAME_WHITEOUT : LAYER_NAME_BAD;
    bool is_name = *leaf && strcmp(leaf, ".") != 0 && strcmp(leaf, "..") != 0;
    return is_name && !begins(leaf, MARKER) ? LAYER_NAME_WHITEOUT : LAYER_NAME_NOTHING;
}

enum layer_name layer_name_read(char *path)
{
    for (char *name = path;; name = strchr(name, '/') + 1) {
        bool is_last = !strchr(name, '/');
        if (begins(name, MARKER_LITERAL)) {
            if (read_literal(name) == LAYER_NAME_BAD)
                return LAYER_NAME_BAD;
        } else if (begins(name, MARKER))
            return is_last ? read_marker(path, name) : LAYER_NAME_NOTHING;
        if (is_last)
            return LAYER_NAME_FILE;
    }
}
