#include "client/gateway/api/status_streams.h"

#include "client/gateway/json_text.h"

void status_streams_each(struct slice status, void (*each)(void *arg, const char *name, uint64_t first, uint64_t head),
                         void *arg)
{
    json_t *json = json_text_read(status);
    const json_t *streams = json_object_get(json, "streams");
    for (size_t i = 0; i < json_array_size(streams); i++) {
        const json_t *one = json_array_get(streams, i);
        const char *name = json_string_value(json_object_get(one, "name"));
        if (name)
            each(arg, name, (uint64_t)json_integer_value(json_object_get(one, "first")),
                 (uint64_t)json_integer_value(json_object_get(one, "head")));
    }
    json_decref(json);
}
