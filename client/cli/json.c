#include "client/cli/json.h"

#include <stdlib.h>

#include "common/base/sanitize.h"

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

void json_line(FILE *out, const char *json)
{
    for (size_t len; *json; json += len) {
        len = strcspn(json, "\n\t\r");
        write_sanitized(out, slice_of(json, len));
        if (!json[len])
            break;
        putc(' ', out);
        len++;
    }
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

static void write_turn(FILE *out, const struct sluice_turn *turn)
{
    fputs("{\"role\": ", out);
    json_text(out, turn->role);
    count_member(out, "offset", turn->offset);
    count_member(out, "length", turn->length);
    member(out, "finish", turn->finish);
    member(out, "engine", turn->engine);
    member(out, "version", turn->version);
    count_member(out, "prompt_tokens", turn->prompt_tokens);
    count_member(out, "cached_tokens", turn->cached_tokens);
    fputs(", \"seconds\": ", out);
    json_number(out, turn->seconds);
    told_member(out, "queue_seconds", turn->queue_seconds);
    told_member(out, "prefill_seconds", turn->prefill_seconds);
    told_member(out, "decode_seconds", turn->decode_seconds);
    putc('}', out);
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
    putc(']', out);
    member(out, "reason", trace->reason);
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
    member(out, "outcome", t->outcome);
    fprintf(out, ", \"trainable\": %s, \"reward\": ", t->trainable ? "true" : "false");
    if (t->has_reward)
        json_number(out, t->reward);
    else
        fputs("null", out);
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
