#include "common/cmdline/verbs.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/nearest.h"

const struct cmdline_verb *cmdline_verb(const struct cmdline *line, const char *name, struct fail *fail)
{
    char names[CMDLINE_ARGUMENTS_SIZE] = "", hint[NEAREST_TEXT_SIZE];
    if (!name) {
        fail_set(fail, -EINVAL, "say which of these: %s", cmdline_arguments(line, names));
        return NULL;
    }
    struct nearest nearest = {.wanted = slice_from_str(name)};
    for (size_t i = 0, len = 0; i < line->verb_count; i++) {
        if (strcmp(line->verbs[i].name, name) == 0)
            return &line->verbs[i];
        nearest_offer_str(&nearest, line->verbs[i].name);
        len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i ? ", " : "", line->verbs[i].name);
        assert(len < sizeof(names));
    }
    fail_set(fail, -EINVAL, "'%.100s' is not one of %s%s", name, names, nearest_text(&nearest, "", hint));
    return NULL;
}

const char *cmdline_arguments(const struct cmdline *line, char ret[CMDLINE_ARGUMENTS_SIZE])
{
    size_t len = (size_t)snprintf(ret, CMDLINE_ARGUMENTS_SIZE, "%s", line->arguments ? line->arguments : "");
    for (size_t i = 0; i < line->verb_count; i++) {
        const struct cmdline_verb *verb = &line->verbs[i];
        len += (size_t)snprintf(ret + len, CMDLINE_ARGUMENTS_SIZE - len, "%s%s%s%s", i ? " | " : "", verb->name,
                                *verb->arguments ? " " : "", verb->arguments);
        assert(len < CMDLINE_ARGUMENTS_SIZE);
    }
    return ret;
}
