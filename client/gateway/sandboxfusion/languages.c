#include "client/gateway/sandboxfusion/languages.h"

static const struct language languages[] = {
#define LANGUAGE(name, file, program, compile, run) {name, file, program, compile, run},
#include "client/gateway/sandboxfusion/languages.def"
#undef LANGUAGE
};
enum { COUNT = sizeof(languages) / sizeof(*languages) };

const struct language *language_find(const char *name)
{
    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(languages[i].name, name) == 0)
            return &languages[i];
    return NULL;
}

void languages_list(struct buffer *ret)
{
    for (size_t i = 0; i < COUNT; i++)
        buffer_printf(ret, "%s'%s'", i == 0 ? "" : i + 1 < COUNT ? ", " : " or ", languages[i].name);
}
