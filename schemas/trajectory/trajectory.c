#include "schemas/trajectory/trajectory.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/base/utf8.h"
#include "schemas/trajectory/trajectory_wire.h"

/* ---- the tables ---------------------------------------------------------------------- */

#define SIZE_TEXT(owner, key) sizeof(((struct owner *)0)->key)
#define SIZE_OPTIONAL_TEXT(owner, key) SIZE_TEXT(owner, key)
#define SIZE_COLUMN(owner, key) sizeof(*((struct owner *)0)->key)
#define SIZE_STRING(owner, key) 0
#define SIZE_OPTIONAL_STRING(owner, key) 0
#define SIZE_BIN(owner, key) 0
#define SIZE_U32(owner, key) 0
#define SIZE_U64(owner, key) 0
#define SIZE_I32(owner, key) 0
#define SIZE_REAL(owner, key) 0
#define SIZE_OPTIONAL_REAL(owner, key) 0
#define SIZE_OPTIONAL_I64(owner, key) 0
#define SIZE_BOOL(owner, key) 0
#define SIZE_SHAPE(owner, key) 0
#define SIZE_VALUES(owner, key) 0
#define SIZE_OPTIONAL_VALUES(owner, key) 0

#define RECORD_MAP(owner)                                                                                              \
    static const struct record_map *describe_##owner(void)                                                             \
    {                                                                                                                  \
        typedef struct owner self;                                                                                     \
        static const struct record_field fields[] = {
#define RECORD_FIELD(owner, type_, key_) RECORD_ADDED(1, owner, type_, key_)
#define RECORD_ADDED(since_, owner, type_, key_)                                                                       \
    {.key = #key_,                                                                                                     \
     .since = since_,                                                                                                  \
     .type = RECORD_##type_,                                                                                           \
     .offset = offsetof(self, key_),                                                                                   \
     .size = SIZE_##type_(owner, key_)},
#define RECORD_LIST(owner, key_, element_, count_, capacity_, max_)                                                    \
    RECORD_ADDED_LIST(1, owner, key_, element_, count_, capacity_, max_)
#define RECORD_ADDED_LIST(since_, owner, key_, element_, count_, capacity_, max_)                                      \
    RECORD_ANY_LIST(since_, RECORD_LIST, owner, key_, element_, count_, capacity_, max_)
#define RECORD_OPTIONAL_LIST(owner, key_, element_, count_, capacity_, max_)                                           \
    RECORD_ANY_LIST(1, RECORD_OPTIONAL_LIST, owner, key_, element_, count_, capacity_, max_)
#define RECORD_ANY_LIST(since_, type_, owner, key_, element_, count_, capacity_, max_)                                 \
    {.key = #key_,                                                                                                     \
     .since = since_,                                                                                                  \
     .type = type_,                                                                                                    \
     .offset = offsetof(self, key_),                                                                                   \
     .element = MAP_##element_,                                                                                        \
     .count_offset = offsetof(self, count_),                                                                           \
     .capacity_offset = offsetof(self, capacity_),                                                                     \
     .max = max_},
#define RECORD_OPTIONAL(owner, key_, element_)                                                                         \
    {.key = #key_, .since = 1, .type = RECORD_OPTIONAL, .offset = offsetof(self, key_), .element = MAP_##element_},
#define RECORD_MAP_END(owner)                                                                                          \
    }                                                                                                                  \
    ;                                                                                                                  \
    static const struct record_map map = {                                                                             \
        .fields = fields, .field_count = sizeof(fields) / sizeof(fields[0]), .size = sizeof(self)};                    \
    return &map;                                                                                                       \
    }
#include "schemas/trajectory/trajectory.def"
#undef RECORD_MAP
#undef RECORD_FIELD
#undef RECORD_ADDED
#undef RECORD_LIST
#undef RECORD_ADDED_LIST
#undef RECORD_OPTIONAL_LIST
#undef RECORD_OPTIONAL
#undef RECORD_MAP_END

const struct record_map *record_map_get(enum record_map_id id)
{
    static const struct record_map *(*const all[])(void) = {
#define RECORD_MAP(owner) describe_##owner,
#define RECORD_FIELD(owner, type, key)
#define RECORD_ADDED(version, owner, type, key)
#define RECORD_LIST(owner, key, element, count, capacity, max)
#define RECORD_ADDED_LIST(version, owner, key, element, count, capacity, max)
#define RECORD_OPTIONAL_LIST(owner, key, element, count, capacity, max)
#define RECORD_OPTIONAL(owner, key, element)
#define RECORD_MAP_END(owner)
#include "schemas/trajectory/trajectory.def"
#undef RECORD_MAP
#undef RECORD_FIELD
#undef RECORD_ADDED
#undef RECORD_LIST
#undef RECORD_ADDED_LIST
#undef RECORD_OPTIONAL_LIST
#undef RECORD_OPTIONAL
#undef RECORD_MAP_END
    };
    return all[id]();
}

bool record_field_is_optional(const struct record_field *field)
{
    return field->type == RECORD_OPTIONAL_TEXT || field->type == RECORD_OPTIONAL_STRING ||
           field->type == RECORD_OPTIONAL_REAL || field->type == RECORD_OPTIONAL_I64 ||
           field->type == RECORD_OPTIONAL_VALUES || field->type == RECORD_OPTIONAL_LIST ||
           field->type == RECORD_OPTIONAL;
}

/* ---- making --------------------------------------------------------------------------- */

void record_init(struct record *record) { *record = (struct record){.version = RECORD_VERSION}; }

void record_turn_finish(struct record_turn *turn)
{
    free(take_ptr(&turn->sampling));
    free(take_ptr(&turn->versions));
}

static void extra_finish(struct record_extra *column)
{
    free(column->values.data);
    free(column->counts.data);
}

static void trace_finish(struct record_trace *trace)
{
    for (size_t i = 0; i < trace->turn_count; i++)
        record_turn_finish(&trace->turns[i]);
    for (size_t i = 0; i < trace->column_count; i++)
        extra_finish(&trace->columns[i]);
    free(trace->token_ids);
    free(trace->mask);
    free(trace->logprobs);
    free(trace->turns);
    free(trace->columns);
    free(trace->messages.runs);
}

void record_finish(struct record *record)
{
    for (size_t i = 0; i < record->trace_count; i++)
        trace_finish(&record->traces[i]);
    for (size_t i = 0; i < record->message_count; i++) {
        free(record->messages[i].role);
        free(record->messages[i].content);
        free(record->messages[i].tool);
    }
    free(record->traces);
    free(record->messages);
    if (record->sandbox)
        free(record->sandbox->breaches);
    free(record->sandbox);
    if (record->tamper)
        free(record->tamper->files);
    free(record->tamper);
    if (record->noted)
        free(record->noted->metrics);
    free(record->noted);
    record_init(record);
}

enum { FIRST_BYTES = 512 }; /* of a list, or its first element alone: most have one or two that are large */

void *record_list_add(void *list, size_t *count, size_t *capacity, size_t size, size_t max)
{
    if (*count >= max)
        return NULL;
    if (*count == *capacity) {
        size_t wanted = *capacity ? *capacity * 2 : size < FIRST_BYTES / 4 ? 4 : 1;
        void *grown = reallocarray(*(void **)list, wanted, size);
        if (!grown)
            return NULL;
        *(void **)list = grown;
        *capacity = wanted;
    }
    void *element = *(char **)list + *count * size;
    memset(element, 0, size);
    ++*count;
    return element;
}

bool record_start_trace(struct record *record, const char *reason)
{
    struct record_trace *trace = record_list_add(&record->traces, &record->trace_count, &record->trace_capacity,
                                                 sizeof(*trace), RECORD_TRACES_MAX);
    if (!trace)
        return false;
    snprintf(trace->reason, sizeof(trace->reason), "%s", reason);
    memcpy(trace->template_digest, record->template_digest, sizeof(trace->template_digest));
    memcpy(trace->tokenizer_digest, record->tokenizer_digest, sizeof(trace->tokenizer_digest));
    return true;
}

static bool grow_column(void *column, size_t capacity, size_t size)
{
    void *grown = reallocarray(*(void **)column, capacity, size);
    if (!grown)
        return false;
    *(void **)column = grown;
    return true;
}

static bool reserve_tokens(struct record_trace *trace, size_t count)
{
    size_t capacity = trace->token_capacity ? trace->token_capacity : 256;
    while (capacity < trace->token_count + count)
        capacity *= 2;
    if (capacity == trace->token_capacity)
        return true;
    if (!grow_column(&trace->token_ids, capacity, sizeof(*trace->token_ids)) ||
        !grow_column(&trace->mask, capacity, sizeof(*trace->mask)) ||
        !grow_column(&trace->logprobs, capacity, sizeof(*trace->logprobs)))
        return false;
    trace->token_capacity = capacity;
    return true;
}

static bool has_room(const struct record *record, size_t count)
{
    size_t tokens = 0, turns = 0;
    for (size_t i = 0; i < record->trace_count; i++) {
        tokens += record->traces[i].token_count;
        turns += record->traces[i].turn_count;
    }
    return record->trace_count > 0 && count <= RECORD_TOKENS_MAX - tokens && turns < RECORD_TURNS_MAX;
}

bool record_turn_copy(struct record_turn *to, const struct record_turn *from)
{
    *to = *from;
    to->version_capacity = from->version_count;
    to->sampling = from->sampling ? malloc(sizeof(*to->sampling)) : NULL;
    to->versions = from->version_count ? calloc(from->version_count, sizeof(*to->versions)) : NULL;
    if ((from->sampling && !to->sampling) || (from->version_count && !to->versions)) {
        record_turn_finish(to);
        return false;
    }
    if (from->sampling)
        *to->sampling = *from->sampling;
    if (from->version_count)
        memcpy(to->versions, from->versions, from->version_count * sizeof(*to->versions));
    return true;
}

bool record_append(struct record *record, const struct record_turn *turn, const uint32_t *token_ids,
                   const float *logprobs, size_t count, bool sampled)
{
    if (!has_room(record, count))
        return false;
    struct record_trace *trace = &record->traces[record->trace_count - 1];
    if (!reserve_tokens(trace, count))
        return false;
    struct record_turn *added = record_list_add(&trace->turns, &trace->turn_count, &trace->turn_capacity,
                                                sizeof(*added), RECORD_TURNS_MAX);
    if (!added)
        return false;
    size_t at = trace->token_count;
    if (!record_turn_copy(added, turn)) {
        trace->turn_count--;
        return false;
    }
    added->offset = (uint32_t)at;
    added->length = (uint32_t)count;
    if (count) {
        memcpy(trace->token_ids + at, token_ids, count * sizeof(*token_ids));
        memset(trace->mask + at, sampled, count);
        memset(trace->logprobs + at, 0, count * sizeof(*logprobs));
    }
    if (count && logprobs)
        memcpy(trace->logprobs + at, logprobs, count * sizeof(*logprobs));
    trace->token_count += count;
    return true;
}

static char *repaired(struct slice text)
{
    struct buffer out = {0};
    utf8_append_repaired(&out, text);
    return buffer_take_str(&out);
}

static bool say(struct record *record, const char *role, struct slice content, const char *tool, int exit_status,
                bool sampled)
{
    struct record_message *message = record_list_add(&record->messages, &record->message_count,
                                                     &record->message_capacity, sizeof(*message), RECORD_MESSAGES_MAX);
    if (!message)
        return false;
    message->role = strdup(role);
    message->content = repaired(content);
    message->tool = tool ? repaired(slice_from_str(tool)) : NULL;
    message->exit_status = exit_status;
    message->sampled = sampled;
    if (message->role && message->content && (message->tool || !tool))
        return true;
    free(message->role);
    free(message->content);
    free(message->tool);
    record->message_count--;
    return false;
}

bool record_say(struct record *record, const char *role, struct slice content, const char *tool, int exit_status)
{
    return say(record, role, content, tool, exit_status, false);
}

bool record_say_sampled(struct record *record, struct slice content)
{
    return say(record, "assistant", content, NULL, 0, true);
}

bool record_stretches_add(struct record_stretches *stretches, size_t offset, size_t length)
{
    struct record_stretch *last = stretches->count > 0 ? &stretches->runs[stretches->count - 1] : NULL;
    if (length == 0)
        return true;
    if (last && last->offset + last->length == offset) {
        last->length += (uint32_t)length;
        return true;
    }
    struct record_stretch *added = record_list_add(&stretches->runs, &stretches->count, &stretches->capacity,
                                                   sizeof(*added), RECORD_MESSAGES_MAX);
    if (added)
        *added = (struct record_stretch){(uint32_t)offset, (uint32_t)length};
    return added != NULL;
}

struct record_sampled record_sampled(const struct record *record)
{
    struct record_sampled ret = {0};
    for (size_t i = 0; i < record->trace_count; i++) {
        const char *label = record->traces[i].label;
        const bool is_main = !*label || label_find(label) == LABEL_MAIN;
        for (size_t k = 0; k < record->traces[i].turn_count; k++) {
            const struct record_turn *turn = &record->traces[i].turns[k];
            if (strcmp(turn->role, "assistant") != 0)
                continue;
            ret.turns++;
            ret.tokens += turn->length;
            if (!ret.last || is_main)
                ret.last = turn;
        }
    }
    return ret;
}

struct record_sandbox *record_add_sandbox(struct record *record)
{
    if (!record->sandbox)
        record->sandbox = calloc(1, sizeof(*record->sandbox));
    return record->sandbox;
}

bool record_add_breach(struct record_sandbox *sandbox, const char *limit, uint32_t count)
{
    if (count == 0)
        return true;
    struct record_breach *breach = record_list_add(&sandbox->breaches, &sandbox->breach_count,
                                                   &sandbox->breach_capacity, sizeof(*breach), RECORD_BREACHES_MAX);
    if (!breach)
        return false;
    snprintf(breach->limit, sizeof(breach->limit), "%s", limit);
    breach->count = count;
    return true;
}

struct record_tamper *record_add_tamper(struct record *record)
{
    if (!record->tamper)
        record->tamper = calloc(1, sizeof(*record->tamper));
    return record->tamper;
}

bool record_add_touched(struct record_tamper *tamper, const char *what, const char *path)
{
    char *whole = repaired(slice_from_str(path));
    struct record_touched *file = whole ? record_list_add(&tamper->files, &tamper->file_count, &tamper->file_capacity,
                                                          sizeof(*file), RECORD_TOUCHED_MAX)
                                        : NULL;
    if (file) {
        snprintf(file->what, sizeof(file->what), "%s", what);
        memcpy(file->path, whole, text_cut(whole, sizeof(file->path) - 1).len);
    }
    free(whole);
    return file != NULL;
}
