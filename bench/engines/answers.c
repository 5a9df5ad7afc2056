/* answers.c - what the engine of bench_engines says: documents made beforehand, whole or as events of a stream. */
#include "bench/engines/answers.h"

#include <stdlib.h>

#include "common/base/cleanup.h"

uint32_t id_at(size_t i) { return (uint32_t)(300 + i * 7919 % 48000); }

double logprob_at(size_t i) { return -((double)(i * 104729 % 9973) + 1) / 1013.7; }

/* Of an answer's tokens those that are told: all of them, or an event's. */
struct part {
    size_t from, to, count;
};

static uint32_t sampled_id(const struct part *part, size_t i) { return i + 1 == part->count ? END_ID : id_at(i); }

static void write_prompt(struct buffer *out)
{
    for (size_t i = 0; i < PROMPT; i++)
        buffer_printf(out, "%s%u", i ? "," : "", id_at(i));
}

static void write_ids(struct buffer *out, const struct part *part)
{
    for (size_t i = part->from; i < part->to; i++)
        buffer_printf(out, "%s%u", i > part->from ? "," : "", sampled_id(part, i));
}

/* What they say, but for the end. */
static void write_text(struct buffer *out, const struct part *part)
{
    for (size_t i = part->from; i < part->to && i + 1 < part->count; i++)
        buffer_append_str(out, " word");
}

static bool is_last(const struct part *part) { return part->to == part->count; }

/* ---- llama.cpp's server ------------------------------------------------------------------------ */

static void answer_llama(struct buffer *out, const struct part *part)
{
    buffer_append_str(out, "{\"content\":\"");
    write_text(out, part);
    buffer_append_str(out, "\",\"tokens\":[");
    write_ids(out, part);
    buffer_printf(out,
                  "],\"stop_type\":\"eos\",\"tokens_evaluated\":%d,\"timings/cache_n\":%d,"
                  "\"completion_probabilities\":[",
                  PROMPT, PROMPT - 10);
    for (size_t i = part->from; i < part->to; i++) {
        const uint32_t id = sampled_id(part, i);
        const double p = logprob_at(i);
        buffer_printf(out,
                      "%s{\"id\":%u,\"token\":\" word\",\"bytes\":[32,119,111,114,100],"
                      "\"logprob\":%.17g,\"top_logprobs\":[{\"id\":%u,\"token\":\" word\","
                      "\"bytes\":[32,119,111,114,100],\"logprob\":%.17g}]}",
                      i ? "," : "", id, p, id, p);
    }
    buffer_append_str(out, "]}");
}

/* ---- vLLM's, of ids ------------------------------------------------------------------------------ */

static void write_content(struct buffer *out, const struct part *part)
{
    buffer_append_str(out, "\"logprobs\":{\"content\":[");
    for (size_t i = part->from; i < part->to; i++) {
        const uint32_t id = sampled_id(part, i);
        const double p = logprob_at(i);
        buffer_printf(out,
                      "%s{\"token_id\":%u,\"logprob\":%.17g,\"rank\":1,\"top_logprobs\":"
                      "[{\"token_id\":%u,\"logprob\":%.17g,\"rank\":1}]}",
                      i > part->from ? "," : "", id, p, id, p);
    }
    buffer_append_str(out, "]}");
}

static void write_finish(struct buffer *out, const struct part *part)
{
    buffer_printf(out, "\"finish_reason\":%s,\"stop_reason\":null,\"token_ids\":[",
                  is_last(part) ? "\"stop\"" : "null");
    write_ids(out, part);
    buffer_append_str(out, "],");
    if (is_last(part))
        buffer_append_str(out, "\"weight_versions\":[{\"version\":\"v1\",\"start\":0,\"end\":9}],");
}

static void answer_vllm(struct buffer *out, const struct part *part)
{
    buffer_printf(out,
                  "{\"request_id\":\"generate-tokens-x\",\"usage\":{\"prompt_tokens\":%d},"
                  "\"choices\":[{\"index\":0,",
                  PROMPT);
    write_finish(out, part);
    write_content(out, part);
    buffer_append_str(out, "}]}");
}

static void event_vllm(struct buffer *out, const struct part *part)
{
    buffer_append_str(out, "{\"request_id\":\"generate-tokens-x\",\"choices\":[{\"index\":0,");
    write_finish(out, part);
    write_content(out, part);
    buffer_append_str(out, "}]}");
}

/* ---- vLLM's, of text too --------------------------------------------------------------------------- */

static void write_lists(struct buffer *out, const struct part *part)
{
    buffer_append_str(out, "\"logprobs\":{\"text_offset\":[");
    for (size_t i = part->from; i < part->to; i++)
        buffer_printf(out, "%s%zu", i > part->from ? "," : "", i * 13);
    buffer_append_str(out, "],\"token_logprobs\":[");
    for (size_t i = part->from; i < part->to; i++)
        buffer_printf(out, "%s%.17g", i > part->from ? "," : "", logprob_at(i));
    buffer_append_str(out, "],\"tokens\":[");
    for (size_t i = part->from; i < part->to; i++)
        buffer_printf(out, "%s\"token_id:%u\"", i > part->from ? "," : "", sampled_id(part, i));
    buffer_append_str(out, "],\"top_logprobs\":[");
    for (size_t i = part->from; i < part->to; i++)
        buffer_printf(out, "%s{\"token_id:%u\":%.17g}", i > part->from ? "," : "", id_at(i), logprob_at(i));
    buffer_append_str(out, "]}");
}

static void write_completion(struct buffer *out, const struct part *part)
{
    buffer_append_str(out, "\"choices\":[{\"index\":0,\"text\":\"");
    write_text(out, part);
    buffer_printf(out, "\",\"finish_reason\":%s,\"token_ids\":[", is_last(part) ? "\"stop\"" : "null");
    write_ids(out, part);
    buffer_append_str(out, "],");
    if (part->from == 0) {
        buffer_append_str(out, "\"prompt_token_ids\":[");
        write_prompt(out);
        buffer_append_str(out, "],");
    }
    write_lists(out, part);
    buffer_append_str(out, "}]}");
}

static void answer_completion(struct buffer *out, const struct part *part)
{
    buffer_printf(out, "{\"id\":\"cmpl-x\",\"usage\":{\"prompt_tokens\":%d},", PROMPT);
    write_completion(out, part);
}

static void event_completion(struct buffer *out, const struct part *part)
{
    buffer_append_str(out, "{\"id\":\"cmpl-x\",\"object\":\"text_completion\",\"model\":\"m\",");
    write_completion(out, part);
}

/* ---- SGLang's ---------------------------------------------------------------------------------------- */

static void answer_sglang(struct buffer *out, const struct part *part)
{
    buffer_append_str(out, "{\"text\":\"");
    write_text(out, part);
    buffer_append_str(out, "\",\"output_ids\":[");
    write_ids(out, part);
    buffer_printf(out,
                  "],\"meta_info\":{\"finish_reason\":%s,\"prompt_tokens\":%d,\"completion_tokens\":%zu,"
                  "\"cached_tokens\":9,\"weight_version\":\"v1\",\"output_token_logprobs\":[",
                  is_last(part) ? "{\"type\":\"stop\",\"matched\":2}" : "null", PROMPT, part->to);
    for (size_t i = part->from; i < part->to; i++)
        buffer_printf(out, "%s[%.17g,%u,null]", i > part->from ? "," : "", logprob_at(i), sampled_id(part, i));
    buffer_append_str(out, "]}}");
}

/* ---- what else is asked ------------------------------------------------------------------------------ */

/* What ids say. */
static void answer_text(struct buffer *out, const struct part *part)
{
    static const char *const keys[] = {"{\"prompt\":\"", "\",\"text\":\""};
    for (size_t i = 0; i < 2; i++) {
        buffer_append_str(out, keys[i]);
        write_text(out, part);
    }
    buffer_append_str(out, "\"}");
}

/* Who it is, whichever way it is asked. */
static void answer_about(struct buffer *out, const struct part *part)
{
    (void)part;
    buffer_append_str(out, "{\"media_marker\":\"<__media_0123456789abcdefghijklmn__>\",\"model_"
                           "path\":\"m\",\"version\":\"1\","
                           "\"data\":[{\"id\":\"m\",\"max_model_len\":1048576}],\"tokenizer_path\":"
                           "\"m\",\"random_seed\":7,"
                           "\"tokens\":[5,6,7]}");
}

typedef void write_part(struct buffer *out, const struct part *part);

static write_part *const documents[] = {answer_llama,  answer_vllm, answer_completion,
                                        answer_sglang, answer_text, answer_about};
static write_part *const events[] = {NULL, event_vllm, event_completion, answer_sglang, NULL, NULL};

const struct route routes[ROUTES] = {
    {"llama", "/completion", &dialect_llama, false},
    {"vllm", "/inference/v1/generate", &dialect_vllm, true},
    {"vllm-completions", "/v1/completions", &dialect_vllm, false},
    {"sglang", "/generate", &dialect_sglang, false},
};

/* ---- all of them ------------------------------------------------------------------------------------- */

static void end_piece(struct answer *answer)
{
    size_t *ends = realloc(answer->ends, (answer->count + 1) * sizeof(*ends));
    if (!ends)
        give_up("an answer", "out of memory");
    answer->ends = ends;
    answer->ends[answer->count++] = answer->bytes.len;
}

static void make_document(write_part *write, size_t count, struct answer *ret)
{
    AUTO_BUFFER body = {0};
    write(&body, &(struct part){0, count, count});
    buffer_printf(&ret->bytes,
                  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                  "Content-Length: %zu\r\n\r\n",
                  body.len);
    buffer_append(&ret->bytes, body.data, body.len);
    end_piece(ret);
}

static void append_chunk(struct buffer *out, struct slice data)
{
    buffer_printf(out, "%zx\r\ndata: ", data.len + sizeof("data: \n\n") - 1);
    buffer_append(out, data.data, data.len);
    buffer_append_str(out, "\n\n\r\n");
}

/* The first token is told at once, and with the last ones comes what ends the stream. */
static void make_stream(write_part *write, size_t count, size_t interval, struct answer *ret)
{
    char usage[64];
    snprintf(usage, sizeof(usage), "{\"choices\":[],\"usage\":{\"prompt_tokens\":%d}}", PROMPT);
    buffer_append_str(&ret->bytes, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                                   "Transfer-Encoding: chunked\r\n\r\n");
    for (size_t from = 0, to = 1; from < count; from = to, to = to + interval < count ? to + interval : count) {
        AUTO_BUFFER event = {0};
        write(&event, &(struct part){from, to, count});
        append_chunk(&ret->bytes, buffer_peek(&event));
        if (to == count) {
            if (write != answer_sglang)
                append_chunk(&ret->bytes, slice_from_str(usage));
            append_chunk(&ret->bytes, slice_from_str("[DONE]"));
            buffer_append_str(&ret->bytes, "0\r\n\r\n");
        }
        end_piece(ret);
    }
}

void answers_make(struct answer answers[ANSWERS], size_t count, size_t interval)
{
    for (size_t i = 0; i < ANSWERS; i++) {
        answers[i] = (struct answer){0};
        if (interval > 0 && events[i])
            make_stream(events[i], count, interval, &answers[i]);
        else
            make_document(documents[i], count, &answers[i]);
    }
}

void answers_finish(struct answer answers[ANSWERS])
{
    for (size_t i = 0; i < ANSWERS; i++) {
        buffer_finish(&answers[i].bytes);
        free(answers[i].ends);
    }
}
