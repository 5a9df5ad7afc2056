/* tokenizer_file.h - small tokenizer.json files for tests: the 256 bytes with their values as ids, and more. */
#ifndef SLUICE_TESTS_WORKERS_TOKENIZER_TOKENIZER_FILE_H
#define SLUICE_TESTS_WORKERS_TOKENIZER_TOKENIZER_FILE_H

#include "common/base/cleanup.h"
#include "workers/tokenizer/tokenizer.h"

#define PRE_NONE "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define PRE_GPT2 "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"
#define PRE_SEQUENCE(first) "{\"type\":\"Sequence\",\"pretokenizers\":[" first "," PRE_NONE "]}"
#define PRE_DIGITS PRE_SEQUENCE("{\"type\":\"Digits\",\"individual_digits\":true}")
#define PRE_SPLIT(regex)                                                                                               \
    PRE_SEQUENCE("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex                                                 \
                 "\"},\"behavior\":\"Isolated\",\"invert\":false}")
#define ADDED(id, name, special) "{\"id\":" id ",\"content\":\"" name "\",\"special\":" special "}"

struct file_parts {
    const char *const *tokens;              /* after the bytes, from 256 on; ASCII; NULL ends them */
    const char *const *merges;              /* "a b"; NULL ends them */
    const char *pre;                        /* NULL: PRE_NONE */
    const char *normalizer, *added, *model; /* JSON; NULL: none. model: "\"key\":value," */
    bool ignore_merges;
};

/* The character that stands for a byte. */
static inline void file_write_byte(struct buffer *out, unsigned byte)
{
    unsigned next = 256;
    for (unsigned i = 0; i < byte; i++)
        next += !((i >= '!' && i <= '~') || (i >= 0xa1 && i <= 0xac) || i >= 0xae);
    const bool is_itself = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    buffer_printf(out, "\\u%04x", is_itself ? byte : next);
}

static inline char *file_write(const struct file_parts *parts)
{
    AUTO_BUFFER out = {0};
    buffer_printf(&out, "{\"normalizer\":%s,\"pre_tokenizer\":%s,\"added_tokens\":[%s],\"model\":{%s",
                  parts->normalizer ? parts->normalizer : "null", parts->pre ? parts->pre : PRE_NONE,
                  parts->added ? parts->added : "", parts->model ? parts->model : "");
    buffer_printf(&out, "\"ignore_merges\":%s,\"vocab\":{", parts->ignore_merges ? "true" : "false");
    for (unsigned byte = 0; byte < 256; byte++) {
        buffer_append_str(&out, byte ? ",\"" : "\"");
        file_write_byte(&out, byte);
        buffer_printf(&out, "\":%u", byte);
    }
    for (unsigned i = 0; parts->tokens && parts->tokens[i]; i++)
        buffer_printf(&out, ",\"%s\":%u", parts->tokens[i], 256 + i);
    buffer_append_str(&out, "},\"merges\":[");
    for (unsigned i = 0; parts->merges && parts->merges[i]; i++)
        buffer_printf(&out, "%s\"%s\"", i ? "," : "", parts->merges[i]);
    buffer_append_str(&out, "]}}");
    return buffer_take_str(&out);
}

#endif
