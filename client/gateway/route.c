#include "client/gateway/route.h"

#include "client/gateway/json_text.h"

/* A part of a path or pattern, from its slash on; empty at the end. */
static struct slice next_part(const char **at)
{
    const char *begin = *at;
    if (*begin != '/')
        return slice_of(begin, 0);
    const size_t len = 1 + strcspn(begin + 1, "/");
    *at = begin + len;
    return slice_of(begin, len);
}

static bool is_name(struct slice part) { return part.len > 3 && part.data[1] == '{'; }

static bool is_rest(struct slice part) { return slice_is(part, "/{rest}"); }

static bool add(struct route_params *params, struct slice part, struct slice value)
{
    if (params->count == ROUTE_PARAMS_MAX || (value.len < 2 && !is_rest(part)))
        return false;
    params->of[params->count].name = slice_of(part.data + 2, part.len - 3);
    params->of[params->count++].value = is_rest(part) ? value : slice_of(value.data + 1, value.len - 1);
    return true;
}

bool route_fits(const struct route *route, const char *path, struct route_params *ret)
{
    const char *pattern = route->pattern;
    *ret = (struct route_params){0};
    while (*pattern) {
        const struct slice part = next_part(&pattern);
        struct slice value = is_rest(part) ? slice_from_str(path) : next_part(&path);
        if (!is_name(part)) {
            if (!slice_equal(part, value))
                return false;
            continue;
        }
        if (slice_is(part, "/{rollout}"))
            value.len += next_part(&path).len;
        else if (is_rest(part))
            path += value.len;
        if (!add(ret, part, value))
            return false;
    }
    return *path == '\0';
}

const char *route_write_detail(const struct trouble *trouble, struct buffer *ret)
{
    buffer_append_str(ret, "{\"detail\": ");
    json_text_append(ret, slice_from_str(trouble->words));
    buffer_append_str(ret, "}");
    return "application/json";
}
