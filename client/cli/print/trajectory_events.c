#include "client/cli/print/trajectory_events.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/json/json.h"
#include "common/base/cleanup.h"

/* Takes the object. */
static void put(json_t *event)
{
    AUTO_FREE char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;
    json_decref(event);
    if (text)
        json_line(stdout, text);
}

static void put_message(size_t index, const struct sluice_message *message)
{
    json_t *event = json_pack("{s:s, s:I, s:s, s:b, s:s}", "event", "message", "index", (json_int_t)index, "role",
                              message->role, "sampled", message->sampled, "content", message->content);
    if (message->tool) {
        json_object_set_new(event, "tool", json_string(message->tool));
        json_object_set_new(event, "exit_status", json_integer(message->exit_status));
    }
    put(event);
}

static void put_tokens(size_t number, const struct sluice_trace *trace, const struct sluice_turn *turn)
{
    const bool is_sampled = turn->length > 0 && trace->mask[turn->offset];
    json_t *ids = json_array(), *logprobs = json_array();
    for (uint32_t i = turn->offset; i < turn->offset + turn->length; i++) {
        json_array_append_new(ids, json_integer(trace->token_ids[i]));
        json_array_append_new(logprobs, json_real((double)trace->logprobs[i]));
    }
    json_t *event = json_pack("{s:s, s:I, s:i, s:i, s:o}", "event", "tokens", "turn", (json_int_t)number, "offset", 0,
                              "mask", (int)is_sampled, "ids", ids);
    if (is_sampled)
        json_object_set(event, "logprobs", logprobs);
    json_decref(logprobs);
    put(event);
}

static void put_turn(size_t number, size_t at, size_t trace, const struct sluice_turn *turn)
{
    json_t *event = json_pack("{s:s, s:I, s:I, s:s, s:I}", "event", "turn", "turn", (json_int_t)number, "trace",
                              (json_int_t)trace, "role", turn->role, "tokens", (json_int_t)turn->length);
    json_object_set_new(event, "after", at ? json_integer((json_int_t)number - 1) : json_null());
    if (strcmp(turn->role, "assistant") == 0) {
        json_object_set_new(event, "finish", json_string(turn->finish));
        json_object_set_new(event, "engine", json_string(turn->engine));
        json_object_set_new(event, "version", json_string(turn->version));
        json_object_set_new(event, "prompt_tokens", json_integer(turn->prompt_tokens));
        json_object_set_new(event, "cached_tokens", json_integer(turn->cached_tokens));
        json_object_set_new(event, "seconds", json_real(turn->seconds));
    }
    put(event);
}

void trajectory_events(const struct sluice_trajectory *t)
{
    size_t number = 0;
    for (size_t i = 0; i < t->message_count; i++)
        put_message(i, &t->messages[i]);
    for (size_t i = 0; i < t->trace_count; i++) {
        put(json_pack("{s:s, s:I, s:s}", "event", "trace", "trace", (json_int_t)i, "reason", t->traces[i].reason));
        for (size_t k = 0; k < t->traces[i].turn_count; k++, number++) {
            put_turn(number, k, i, &t->traces[i].turns[k]);
            put_tokens(number, &t->traces[i], &t->traces[i].turns[k]);
        }
    }
}

void trajectory_event_ended(const char *rollout, const struct sluice_trajectory *t)
{
    json_t *event = json_pack("{s:s, s:s}", "rollout", rollout, "event", "ended");
    if (t) {
        json_object_set_new(event, "outcome", json_string(t->outcome));
        json_object_set_new(event, "reward", t->has_reward ? json_real(t->reward) : json_null());
        json_object_set_new(event, "detail", json_string(t->detail));
    }
    put(event);
}
