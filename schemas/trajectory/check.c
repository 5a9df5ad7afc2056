#include "schemas/trajectory/trajectory.h"

#include <math.h>
#include <stdio.h>

#include "common/base/utf8.h"
#include "schemas/labels.h"
#include "schemas/limits.h"
#include "schemas/trajectory/metric.h"
#include "schemas/trajectory/trajectory_wire.h"

/* A place in the record, for the refusal: "traces[0].turns[3].role". */
struct spot {
    char path[64];
    struct refusal *no;
};

static bool refuse_at(const struct spot *spot, const char *key, enum refusal_reason reason, const char *why)
{
    char field[128];
    snprintf(field, sizeof(field), "%s%s", spot->path, key);
    return refuse(spot->no, reason, field, "trajectory record: %s %s", field, why);
}

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

bool record_texts_check(enum record_map_id id, const void *base, const char **ret_key, enum refusal_reason *ret_reason)
{
    const struct record_map *map = record_map_get(id);
    for (size_t i = 0; i < map->field_count; i++) {
        const struct record_field *field = &map->fields[i];
        const char *text = (const char *)base + field->offset;
        bool is_text = field->type == RECORD_TEXT || field->type == RECORD_OPTIONAL_TEXT;
        size_t len = is_text ? strnlen(text, field->size) : 0;
        bool is_long = is_text && len == field->size;
        if (!is_long && utf8_is_valid(slice_of(text, len)))
            continue;
        *ret_key = field->key;
        *ret_reason = is_long ? REFUSAL_TOO_LARGE : REFUSAL_NOT_UTF8;
        return false;
    }
    return true;
}

static bool check_texts(const struct spot *spot, enum record_map_id id, const void *base)
{
    const char *key;
    enum refusal_reason reason;
    return record_texts_check(id, base, &key, &reason) ||
           refuse_at(spot, key, reason, reason == REFUSAL_TOO_LARGE ? "is too long" : "is not UTF-8 text");
}

/* A word of labels.def, or none. */
static bool is_label(const char *text) { return !*text || label_find(text) != LABEL_COUNT; }

/* Times are finite, and where an engine told them, no less than 0. */
static bool check_times(const struct spot *spot, const struct record_turn *turn)
{
    const struct {
        const char *key;
        struct record_seconds time;
    } told[] = {{"queue_seconds", turn->queue_seconds},
                {"prefill_seconds", turn->prefill_seconds},
                {"decode_seconds", turn->decode_seconds}};
    if (!isfinite(turn->seconds))
        return refuse_at(spot, "seconds", REFUSAL_NOT_FINITE, "is not a finite number");
    for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++)
        if (told[i].time.is_known && !(isfinite(told[i].time.value) && told[i].time.value >= 0))
            return refuse_at(spot, told[i].key, REFUSAL_NOT_FINITE, "is not a finite number from 0");
    return true;
}

static bool check_sampling(const struct spot *spot, const struct record_sampling *sampling, bool said)
{
    if (!sampling)
        return true;
    if (!said)
        return refuse_at(spot, "sampling", REFUSAL_WRONG_TYPE, "is given of a turn that is not the assistant's");
    return (isfinite(sampling->temperature) && isfinite(sampling->top_p) && isfinite(sampling->min_p)) ||
           refuse_at(spot, "sampling", REFUSAL_NOT_FINITE, "holds a number that is not finite");
}

/* None, or spans that cover the turn in order without gaps. */
static bool check_versions(const struct spot *spot, const struct record_turn *turn, bool said)
{
    uint32_t covered = 0;
    if (turn->version_count == 0)
        return true;
    if (!said || turn->version_count > RECORD_SPANS_MAX)
        return refuse_at(spot, "versions", REFUSAL_WRONG_TYPE, "are too many, or not of the assistant's turn");
    for (size_t i = 0; i < turn->version_count; i++) {
        const struct record_span *span = &turn->versions[i];
        if (!check_texts(spot, MAP_record_span, span))
            return false;
        if (span->offset != covered || span->length == 0 || span->length > turn->length - covered)
            return refuse_at(spot, "versions", REFUSAL_WRONG_TYPE, "do not continue one another within the turn");
        covered += span->length;
    }
    return covered == turn->length || refuse_at(spot, "versions", REFUSAL_TOO_SMALL, "do not cover the turn");
}

static bool check_turn(const struct spot *spot, const struct record_turn *turn)
{
    static const char *const roles[] = {"prompt", "assistant", "user", "tool", NULL};
    static const char *const finishes[] = {"stop", "length", "abort", NULL};
    if (!check_texts(spot, MAP_record_turn, turn))
        return false;
    if (!is_one_of(turn->role, roles))
        return refuse_at(spot, "role", REFUSAL_WRONG_TYPE, "is not prompt, assistant, user or tool");
    bool said = strcmp(turn->role, "assistant") == 0;
    if (said ? !is_one_of(turn->finish, finishes) : turn->finish[0] != '\0')
        return refuse_at(spot, "finish", REFUSAL_WRONG_TYPE,
                         "is not stop, length or abort for the assistant, and empty for others");
    if (!is_label(turn->masked) || (turn->masked[0] && !said))
        return refuse_at(spot, "masked", REFUSAL_WRONG_TYPE, "is not a known label, or not of the assistant's turn");
    return check_times(spot, turn) && check_sampling(spot, turn->sampling, said) && check_versions(spot, turn, said);
}

/* What a turn covers: only the assistant's tokens may be sampled. */
static bool check_tokens(const struct spot *spot, const struct record_trace *trace, const struct record_turn *turn)
{
    bool said = strcmp(turn->role, "assistant") == 0 && !turn->masked[0];
    for (size_t i = turn->offset; i < turn->offset + (size_t)turn->length; i++) {
        if (trace->mask[i] > said)
            return refuse_at(spot, "mask", REFUSAL_TOO_LARGE,
                             said ? "is not 0 or 1"
                                  : "marks a token as sampled outside the "
                                    "assistant's turns, or in one that is masked");
        if (!isfinite(trace->logprobs[i]))
            return refuse_at(spot, "logprobs", REFUSAL_NOT_FINITE, "holds a number that is not finite");
        if (!trace->mask[i] && trace->logprobs[i] != 0)
            return refuse_at(spot, "logprobs", REFUSAL_TOO_LARGE, "is not 0 where mask is 0");
    }
    return true;
}

/* Runs of the record's messages, each behind the one before. */
static bool check_stretches(const struct spot *spot, const struct record_trace *trace, size_t message_count)
{
    size_t end = 0;
    for (size_t i = 0; i < trace->messages.count; i++) {
        const struct record_stretch *stretch = &trace->messages.runs[i];
        if (stretch->offset < end || stretch->offset > message_count || stretch->length == 0 ||
            stretch->length > message_count - stretch->offset)
            return refuse_at(spot, "messages", REFUSAL_WRONG_TYPE,
                             "are not runs of the record's messages, each behind the one before");
        end = (size_t)stretch->offset + stretch->length;
    }
    return true;
}

static bool check_trace(const struct spot *spot, const struct record_trace *trace, size_t message_count)
{
    size_t covered = 0;
    if (!check_texts(spot, MAP_record_trace, trace) || !check_stretches(spot, trace, message_count))
        return false;
    if (!is_label(trace->label))
        return refuse_at(spot, "label", REFUSAL_WRONG_TYPE, "is not a known label");
    for (size_t i = 0; i < trace->turn_count; i++) {
        const struct record_turn *turn = &trace->turns[i];
        struct spot at = {.no = spot->no};
        snprintf(at.path, sizeof(at.path), "%.30sturns[%zu].", spot->path, i);
        if (turn->offset != covered || turn->length > trace->token_count - covered)
            return refuse_at(&at, "offset", REFUSAL_WRONG_TYPE,
                             "and length do not continue the turn before within the trace");
        covered += turn->length;
        if (!check_turn(&at, turn) || !check_tokens(spot, trace, turn))
            return false;
    }
    if (covered != trace->token_count)
        return refuse_at(spot, "turns", REFUSAL_TOO_SMALL, "do not cover the trace's tokens");
    return record_columns_check(trace, spot->path, spot->no);
}

static bool check_message(const struct spot *spot, const struct record_message *message)
{
    static const char *const roles[] = {"system", "user", "assistant", "tool", "note", NULL};
    if (!message->role || !is_one_of(message->role, roles))
        return refuse_at(spot, "role", REFUSAL_WRONG_TYPE, "is not system, user, assistant, tool or note");
    if (!message->content || !utf8_is_valid(slice_from_str(message->content)))
        return refuse_at(spot, "content", REFUSAL_NOT_UTF8, "is not UTF-8 text");
    if (message->sampled && strcmp(message->role, "assistant") != 0)
        return refuse_at(spot, "sampled", REFUSAL_WRONG_TYPE, "is true of a message that is not the assistant's");
    if (message->tool && !utf8_is_valid(slice_from_str(message->tool)))
        return refuse_at(spot, "tool", REFUSAL_NOT_UTF8, "is not UTF-8 text");
    return true;
}

static bool check_sandbox(const struct spot *whole, const struct record_sandbox *sandbox)
{
    if (!isfinite(sandbox->cpu_seconds) || sandbox->cpu_seconds < 0)
        return refuse_at(whole, "sandbox.cpu_seconds", REFUSAL_NOT_FINITE, "is not a finite number from 0");
    for (size_t i = 0; i < sandbox->breach_count; i++) {
        struct spot at = {.no = whole->no};
        snprintf(at.path, sizeof(at.path), "sandbox.breaches[%zu].", i);
        if (!check_texts(&at, MAP_record_breach, &sandbox->breaches[i]))
            return false;
        if (limit_find(sandbox->breaches[i].limit) == LIMIT_COUNT)
            return refuse_at(&at, "limit", REFUSAL_WRONG_TYPE, "is not a known limit");
    }
    return true;
}

static bool check_tamper(const struct spot *whole, const struct record_tamper *tamper)
{
    static const char *const words[] = {
#define TAMPER_KIND(id, word, meaning) word,
#define TAMPER_PATH(id, pattern)
#include "schemas/trajectory/tamper.def"
#undef TAMPER_KIND
#undef TAMPER_PATH
        NULL};
    if (tamper->count < tamper->file_count)
        return refuse_at(whole, "tamper.count", REFUSAL_TOO_SMALL, "is less than the number of files");
    for (size_t i = 0; i < tamper->file_count; i++) {
        struct spot at = {.no = whole->no};
        snprintf(at.path, sizeof(at.path), "tamper.files[%zu].", i);
        if (!check_texts(&at, MAP_record_touched, &tamper->files[i]))
            return false;
        if (!is_one_of(tamper->files[i].what, words))
            return refuse_at(&at, "what", REFUSAL_WRONG_TYPE, "is not a known kind of file");
    }
    return true;
}

static bool check_noted(const struct record_noted *noted, struct refusal *no)
{
    for (size_t i = 0; i < noted->metric_count; i++)
        if (!metric_check(noted->metrics, i, no))
            return false;
    return true;
}

static bool check_totals(const struct record *record, const struct spot *spot)
{
    size_t tokens = 0, turns = 0, bytes = 0;
    for (size_t i = 0; i < record->trace_count; i++) {
        const struct record_trace *trace = &record->traces[i];
        tokens += trace->token_count;
        turns += trace->turn_count;
        for (size_t k = 0; k < trace->column_count; k++)
            bytes += trace->columns[k].values.bytes + trace->columns[k].counts.bytes;
    }
    if (bytes > RECORD_COLUMN_BYTES_MAX)
        return refuse_at(spot, "traces", REFUSAL_TOO_LARGE, "hold columns that are too large together");
    return (tokens <= RECORD_TOKENS_MAX && turns <= RECORD_TURNS_MAX) ||
           refuse_at(spot, "traces", REFUSAL_TOO_LARGE, "hold too many tokens or turns together");
}

bool record_check(const struct record *record, struct refusal *no)
{
    struct spot whole = {.no = no};
    if (record->version != RECORD_VERSION)
        return refuse_at(&whole, "version", record->version < RECORD_VERSION ? REFUSAL_TOO_SMALL : REFUSAL_TOO_LARGE,
                         "is not one that is known here");
    if (!check_texts(&whole, MAP_record, record) || !check_totals(record, &whole))
        return false;
    for (size_t i = 0; i < record->trace_count; i++) {
        struct spot at = {.no = no};
        snprintf(at.path, sizeof(at.path), "traces[%zu].", i);
        if (!check_trace(&at, &record->traces[i], record->message_count))
            return false;
    }
    for (size_t i = 0; i < record->message_count; i++) {
        struct spot at = {.no = no};
        snprintf(at.path, sizeof(at.path), "messages[%zu].", i);
        if (!check_message(&at, &record->messages[i]))
            return false;
    }
    return (!record->sandbox || check_sandbox(&whole, record->sandbox)) &&
           (!record->tamper || check_tamper(&whole, record->tamper)) &&
           (!record->noted || check_noted(record->noted, no));
}
