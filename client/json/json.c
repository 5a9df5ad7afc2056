#include "client/json/json.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/sanitize.h"
#include "schemas/trajectory/trajectory.h"

/* Characters, of which those that steer a terminal are escaped: in a string they mean the same. */
static void write_sanitized(FILE *out, struct slice text)
{
    while (text.len > 0) {
        uint32_t steers;
        size_t len = sanitize_next(text, &steers);
        if (steers)
            fprintf(out, "\\u%04x", (unsigned)steers);
        else
            fwrite(text.data, 1, len, out);
        text = slice_of(text.data + len, text.len - len);
    }
}

void json_text(FILE *out, const char *text)
{
    putc('"', out);
    for (size_t len; *text; text += len) {
        len = strcspn(text, "\"\\\n\t");
        write_sanitized(out, slice_of(text, len));
        if (!text[len])
            break;
        putc('\\', out);
        putc(text[len] == '\n' ? 'n' : text[len] == '\t' ? 't' : text[len], out);
        len++;
    }
    putc('"', out);
}

/* JSON that somebody else wrote, without line ends: outside of strings they are blanks. */
static void write_json(FILE *out, const char *json)
{
    for (size_t len; *json; json += len) {
        len = strcspn(json, "\n\t\r");
        write_sanitized(out, slice_of(json, len));
        if (!json[len])
            break;
        putc(' ', out);
        len++;
    }
}

void json_line(FILE *out, const char *json)
{
    write_json(out, json);
    putc('\n', out);
}

void json_number(FILE *out, double number)
{
    char text[40];
    snprintf(text, sizeof(text), "%.15g", number);
    if (strtod(text, NULL) != number)
        snprintf(text, sizeof(text), "%.17g", number);
    fputs(text, out);
}

static void member(FILE *out, const char *name, const char *text)
{
    fprintf(out, ", \"%s\": ", name);
    json_text(out, text);
}

static void count_member(FILE *out, const char *name, uint64_t count)
{
    fprintf(out, ", \"%s\": %llu", name, (unsigned long long)count);
}

/* Only where there is one. */
static void optional_member(FILE *out, const char *name, const char *text)
{
    if (text && *text)
        member(out, name, text);
}

static void number_member(FILE *out, const char *name, double number)
{
    fprintf(out, ", \"%s\": ", name);
    json_number(out, number);
}

/* Only where the engine told it. */
static void told_member(FILE *out, const char *name, double seconds)
{
    if (seconds < 0)
        return;
    fprintf(out, ", \"%s\": ", name);
    json_number(out, seconds);
}

/* "name": [item, item, ...], where item is an expression of i */
#define ARRAY(out, name, count, format, item)                                                                          \
    do {                                                                                                               \
        fputs("\"" name "\": [", out);                                                                                 \
        for (size_t i = 0; i < (count); i++)                                                                           \
            fprintf(out, "%s" format, i ? ", " : "", item);                                                            \
        fputs("], ", out);                                                                                             \
    } while (0)

static void write_sampling(FILE *out, const struct sluice_sampling *sampling)
{
    fputs(", \"sampling\": {\"temperature\": ", out);
    json_number(out, sampling->temperature);
    number_member(out, "top_p", sampling->top_p);
    number_member(out, "min_p", sampling->min_p);
    count_member(out, "top_k", sampling->top_k);
    count_member(out, "max_tokens", sampling->max_tokens);
    if (sampling->seed >= 0)
        count_member(out, "seed", (uint64_t)sampling->seed);
    putc('}', out);
}

static void write_versions(FILE *out, const struct sluice_turn *turn)
{
    fputs(", \"versions\": [", out);
    for (size_t i = 0; i < turn->version_count; i++) {
        fprintf(out, "%s{\"offset\": %u, \"length\": %u", i ? ", " : "", turn->versions[i].offset,
                turn->versions[i].length);
        member(out, "version", turn->versions[i].version);
        putc('}', out);
    }
    putc(']', out);
}

static void write_turn(FILE *out, const struct sluice_turn *turn)
{
    fputs("{\"role\": ", out);
    json_text(out, turn->role);
    count_member(out, "offset", turn->offset);
    count_member(out, "length", turn->length);
    member(out, "finish", turn->finish);
    optional_member(out, "masked", turn->masked);
    member(out, "engine", turn->engine);
    member(out, "version", turn->version);
    count_member(out, "prompt_tokens", turn->prompt_tokens);
    count_member(out, "cached_tokens", turn->cached_tokens);
    fputs(", \"seconds\": ", out);
    json_number(out, turn->seconds);
    told_member(out, "queue_seconds", turn->queue_seconds);
    told_member(out, "prefill_seconds", turn->prefill_seconds);
    told_member(out, "decode_seconds", turn->decode_seconds);
    if (turn->sampling)
        write_sampling(out, turn->sampling);
    if (turn->version_count)
        write_versions(out, turn);
    putc('}', out);
}

/* ---- columns by name ------------------------------------------------------------------- */

/* IEEE 754 binary16, finite. */
static double half_number(uint16_t half)
{
    const int exponent = half >> 10 & 31;
    const double size = exponent ? ldexp((half & 1023) + 1024, exponent - 25) : ldexp(half & 1023, -24);
    return half & 0x8000 ? -size : size;
}

/* The `i`-th value of a column, and how many bytes one has. */
static double column_number(const struct sluice_column *column, size_t i)
{
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        float f32;
    } value = {0};
    const size_t size = record_type_size(column->type);
    memcpy(&value, (const char *)column->values + i * size, size);
    switch (column->type[0]) {
    case 'u': return size == 1 ? value.u8 : size == 2 ? value.u16 : value.u32;
    case 'i': return size == 1 ? value.i8 : size == 2 ? value.i16 : value.i32;
    default: return size == 2 ? half_number(value.u16) : (double)value.f32;
    }
}

static void write_column(FILE *out, const struct sluice_column *column)
{
    const size_t count = column->value_bytes / record_type_size(column->type);
    fputs("{\"name\": ", out);
    json_text(out, column->name);
    member(out, "type", column->type);
    count_member(out, "offset", column->offset);
    count_member(out, "rows", column->rows);
    fputs(", ", out);
    ARRAY(out, "shape", column->shape_count, "%u", column->shape[i]);
    if (column->counts)
        ARRAY(out, "counts", column->rows, "%u", column->counts[i]);
    fputs("\"values\": [", out);
    for (size_t i = 0; i < count; i++)
        fprintf(out, i ? ", %.9g" : "%.9g", column_number(column, i));
    fputs("]}", out);
}

/* ---- traces ---------------------------------------------------------------------------------- */

static void write_stretches(FILE *out, const struct sluice_trace *trace)
{
    fputs(", \"messages\": [", out);
    for (size_t i = 0; i < trace->stretch_count; i++)
        fprintf(out, "%s{\"offset\": %u, \"length\": %u}", i ? ", " : "", trace->messages[i].offset,
                trace->messages[i].length);
    putc(']', out);
}

static void write_trace(FILE *out, const struct sluice_trace *trace)
{
    putc('{', out);
    ARRAY(out, "token_ids", trace->token_count, "%u", trace->token_ids[i]);
    ARRAY(out, "mask", trace->token_count, "%u", trace->mask[i]);
    ARRAY(out, "logprobs", trace->token_count, "%.9g", (double)trace->logprobs[i]);
    fputs("\"turns\": [", out);
    for (size_t i = 0; i < trace->turn_count; i++) {
        fputs(i ? ", " : "", out);
        write_turn(out, &trace->turns[i]);
    }
    fputs("], \"columns\": [", out);
    for (size_t i = 0; i < trace->column_count; i++) {
        fputs(i ? ", " : "", out);
        write_column(out, &trace->columns[i]);
    }
    putc(']', out);
    if (trace->stretch_count)
        write_stretches(out, trace);
    member(out, "reason", trace->reason);
    optional_member(out, "label", trace->label);
    member(out, "template_digest", trace->template_digest);
    member(out, "tokenizer_digest", trace->tokenizer_digest);
    putc('}', out);
}

static void write_message(FILE *out, const struct sluice_message *message)
{
    fputs("{\"role\": ", out);
    json_text(out, message->role);
    member(out, "content", message->content);
    if (message->tool) {
        member(out, "tool", message->tool);
        fprintf(out, ", \"exit_status\": %d", message->exit_status);
    }
    if (strcmp(message->role, "assistant") == 0)
        fprintf(out, ", \"sampled\": %s", message->sampled ? "true" : "false");
    putc('}', out);
}

static void write_sandbox(FILE *out, const struct sluice_sandbox *used)
{
    fputs(", \"sandbox\": {\"cpu_seconds\": ", out);
    json_number(out, used->cpu_seconds);
    count_member(out, "peak_memory_kib", used->peak_memory_kib);
    count_member(out, "peak_processes", used->peak_processes);
    count_member(out, "peak_disk_bytes", used->peak_disk_bytes);
    count_member(out, "peak_inodes", used->peak_inodes);
    count_member(out, "commands", used->commands);
    count_member(out, "timed_out", used->timed_out);
    count_member(out, "output_bytes", used->output_bytes);
    count_member(out, "cut_bytes", used->cut_bytes);
    fputs(", \"breaches\": [", out);
    for (size_t i = 0; i < used->breach_count; i++) {
        fputs(i ? ", {\"limit\": " : "{\"limit\": ", out);
        json_text(out, used->breaches[i].limit);
        count_member(out, "count", used->breaches[i].count);
        putc('}', out);
    }
    fputs("]}", out);
}

static void write_tamper(FILE *out, const struct sluice_tamper *tamper)
{
    fprintf(out, ", \"tamper\": {\"count\": %llu, \"files\": [", (unsigned long long)tamper->count);
    for (size_t i = 0; i < tamper->file_count; i++) {
        fputs(i ? ", {\"what\": " : "{\"what\": ", out);
        json_text(out, tamper->files[i].what);
        member(out, "path", tamper->files[i].path);
        putc('}', out);
    }
    fputs("]}", out);
}

/* ---- the verdict ------------------------------------------------------------------------------- */

static void write_tests(FILE *out, const struct sluice_tests *tests)
{
    fprintf(out, ", \"tests\": {\"passed\": %llu", (unsigned long long)tests->passed);
    count_member(out, "failed", tests->failed);
    count_member(out, "skipped", tests->skipped);
    count_member(out, "error", tests->error);
    told_member(out, "pass_fraction", tests->pass_fraction);
    fputs(", \"list\": [", out);
    for (size_t i = 0; i < tests->list_count; i++) {
        const struct sluice_test *test = &tests->list[i];
        fputs(i ? ", {\"name\": " : "{\"name\": ", out);
        json_text(out, test->name);
        member(out, "status", test->status);
        if (test->message)
            member(out, "message", test->message);
        told_member(out, "seconds", test->seconds);
        putc('}', out);
    }
    fputs("]}", out);
}

static void reward_member(FILE *out, const char *name, const struct sluice_trajectory *t, double reward)
{
    if (t->has_reward)
        number_member(out, name, reward);
    else
        fprintf(out, ", \"%s\": null", name);
}

void json_verdict(FILE *out, const struct sluice_trajectory *t)
{
    member(out, "outcome", t->outcome);
    fprintf(out, ", \"trainable\": %s", t->trainable ? "true" : "false");
    reward_member(out, "reward", t, t->reward);
    reward_member(out, "raw_reward", t, t->raw_reward);
    fputs(", \"parts\": [", out);
    for (size_t i = 0; i < t->part_count; i++) {
        fputs(i ? ", {\"name\": " : "{\"name\": ", out);
        json_text(out, t->parts[i].name);
        number_member(out, "value", t->parts[i].value);
        number_member(out, "weight", t->parts[i].weight);
        putc('}', out);
    }
    fputs("], \"metrics\": [", out);
    for (size_t i = 0; i < t->metric_count; i++) {
        fputs(i ? ", {\"name\": " : "{\"name\": ", out);
        json_text(out, t->metrics[i].name);
        number_member(out, "value", t->metrics[i].value);
        putc('}', out);
    }
    putc(']', out);
    if (t->tests)
        write_tests(out, t->tests);
    if (t->eval_sandbox)
        member(out, "eval_sandbox", t->eval_sandbox);
    if (t->patch)
        member(out, "patch", t->patch);
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* Of its group and its task. */
static void write_origin(FILE *out, const struct sluice_trajectory *t)
{
    if (t->group_size)
        count_member(out, "group_size", t->group_size);
    if (t->group_ended)
        count_member(out, "group_ended", t->group_ended);
    if (*t->metadata) {
        fputs(", \"metadata\": ", out);
        write_json(out, t->metadata);
    }
}

static void write_facts(FILE *out, const struct sluice_trajectory *t)
{
    fputs("{\"rollout\": ", out);
    json_text(out, t->rollout);
    member(out, "stream", t->stream);
    count_member(out, "seq", t->seq);
    member(out, "group", t->group);
    member(out, "task", t->task);
    count_member(out, "sample", t->sample);
    count_member(out, "attempt", t->attempt);
    json_verdict(out, t);
    write_origin(out, t);
    member(out, "end", t->end);
    fprintf(out, ", \"truncated\": %s", t->truncated ? "true" : "false");
    count_member(out, "run_attempt", t->run_attempt);
    member(out, "detail", t->detail);
    member(out, "engine", t->engine);
    member(out, "init_layer", t->init_layer);
    member(out, "agent", t->agent);
    member(out, "template_digest", t->template_digest);
    member(out, "tokenizer_digest", t->tokenizer_digest);
    member(out, "logprobs_mode", t->logprobs_mode);
    count_member(out, "wait_ms", t->wait_ms);
    count_member(out, "init_ms", t->init_ms);
    count_member(out, "run_ms", t->run_ms);
    count_member(out, "eval_ms", t->eval_ms);
    count_member(out, "ended_ms", t->ended_ms);
}

void json_trajectory(FILE *out, const struct sluice_trajectory *trajectory)
{
    write_facts(out, trajectory);
    fputs(", \"traces\": [", out);
    for (size_t i = 0; i < trajectory->trace_count; i++) {
        fputs(i ? ", " : "", out);
        write_trace(out, &trajectory->traces[i]);
    }
    fputs("], \"messages\": [", out);
    for (size_t i = 0; i < trajectory->message_count; i++) {
        fputs(i ? ", " : "", out);
        write_message(out, &trajectory->messages[i]);
    }
    putc(']', out);
    if (trajectory->sandbox)
        write_sandbox(out, trajectory->sandbox);
    if (trajectory->tamper)
        write_tamper(out, trajectory->tamper);
    fputs("}\n", out);
}
