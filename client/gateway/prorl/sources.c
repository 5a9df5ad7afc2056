#include "client/gateway/prorl/sources.h"

#include <string.h>

static const struct {
    const char *name;
    enum source_kind kind;
} sources[] = {
#define SOURCE(name, kind) {name, SOURCE_##kind},
#include "client/gateway/prorl/sources.def"
#undef SOURCE
};

enum source_kind source_kind_of(const char *source)
{
    for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++) {
        const char *star = strchr(sources[i].name, '*');
        if (star ? strncmp(source, sources[i].name, (size_t)(star - sources[i].name)) == 0
                 : strcmp(source, sources[i].name) == 0)
            return sources[i].kind;
    }
    return SOURCE_HANDLER;
}
