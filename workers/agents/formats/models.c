/* from a model's name to its tool format. */
#include "workers/agents/formats/models.h"

#include <ctype.h>
#include <string.h>

#include "workers/agents/formats/tool_format.h"
#include "workers/agents/formats/table.h"

static const struct {
    const char *part;
    const struct tool_format *format;
} models[] = {
#define MODEL(part, format) {part, &tool_format_##format},
#include "workers/agents/formats/models.def"
#undef MODEL
};

static char plain(char byte) { return byte == '_' ? '-' : (char)tolower((unsigned char)byte); }

/* Whether one word or one number goes on from `a` to `b`. */
static bool goes_on(char a, char b)
{
    return (isalpha((unsigned char)a) && isalpha((unsigned char)b)) ||
           (isdigit((unsigned char)a) && isdigit((unsigned char)b));
}

static bool fits_at(const char *name, const char *at, const char *part)
{
    size_t len = strlen(part);
    for (size_t i = 0; i < len; i++)
        if (plain(at[i]) != part[i])
            return false;
    return (at == name || !goes_on(at[-1], at[0])) && !goes_on(at[len - 1], at[len]);
}

static bool has_part(const char *name, const char *part)
{
    for (const char *at = name; *at; at++)
        if (fits_at(name, at, part))
            return true;
    return false;
}

const struct tool_format *tool_format_of_model(const char *model)
{
    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++)
        if (has_part(model, models[i].part))
            return models[i].format;
    return &tool_format_hermes;
}

const struct tool_format *tool_format_of_row(size_t i, const char **ret_part)
{
    if (i >= sizeof(models) / sizeof(*models))
        return NULL;
    *ret_part = models[i].part;
    return models[i].format;
}
