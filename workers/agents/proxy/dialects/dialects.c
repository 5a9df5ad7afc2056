#include "workers/agents/proxy/dialects/dialects.h"

#include <string.h>
#include <time.h>

#include "workers/agents/proxy/dialects/events.h"

static const struct dialect *const dialects[] = {&dialect_chat, &dialect_responses, &dialect_anthropic,
                                                 &dialect_google};
enum { DIALECT_COUNT = sizeof(dialects) / sizeof(*dialects) };

const struct dialect *dialect_find(const char *method, const char *path, enum dialect_ask *ask, bool *is_stream,
                                   struct slice *model)
{
    for (size_t i = 0; i < DIALECT_COUNT; i++)
        if (dialects[i]->match(method, path, ask, is_stream, model))
            return dialects[i];
    return NULL;
}

const struct dialect *dialect_named(const char *name)
{
    for (size_t i = 0; i < DIALECT_COUNT; i++)
        if (strcmp(dialects[i]->name, name) == 0)
            return dialects[i];
    return NULL;
}

/* What each client reads of a model: OpenAI's and Anthropic's stand in `data`, Google's in `models`. */
void dialect_write_models(const char *model, uint64_t context_tokens, int64_t created, struct buffer *out)
{
    char when[32] = "";
    struct tm utc;
    if (gmtime_r(&(time_t){created}, &utc))
        strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_t *entry = json_pack("{s:o, s:s, s:s, s:o, s:I, s:s, s:s, s:o}", "id", event_str(model), "object", "model",
                              "type", "model", "display_name", event_str(model), "created", (json_int_t)created,
                              "created_at", when, "owned_by", "sluice", "max_model_len", event_number(context_tokens));
    json_t *of_google = json_pack("{s:o, s:o, s:o, s:[s, s, s]}", "name", event_id("models/", model), "displayName",
                                  event_str(model), "inputTokenLimit", event_number(context_tokens),
                                  "supportedGenerationMethods", "generateContent", "streamGenerateContent",
                                  "countTokens");
    event_json(out, json_pack("{s:s, s:[o], s:b, s:o, s:o, s:[o]}", "object", "list", "data", entry, "has_more", 0,
                              "first_id", event_str(model), "last_id", event_str(model), "models", of_google));
}
