#include "workers/agents/formats/code_block.h"

#include "workers/agents/formats/reading.h"

static bool is_blank(uint8_t byte) { return byte == ' ' || byte == '\t' || byte == '\r'; }

static struct slice line_trim(struct slice line)
{
    while (line.len > 0 && is_blank(line.data[0]))
        line = slice_of(line.data + 1, line.len - 1);
    while (line.len > 0 && is_blank(line.data[line.len - 1]))
        line.len--;
    return line;
}

/* Cuts the first line off; without its newline. */
static struct slice line_take(struct slice *text)
{
    const uint8_t *end = memchr(text->data, '\n', text->len);
    struct slice line = slice_of(text->data, end ? (size_t)(end - text->data) : text->len);
    size_t used = line.len + (end ? 1 : 0);
    *text = slice_of(text->data + used, text->len - used);
    return line;
}

static struct slice command_between(const uint8_t *start, const uint8_t *end)
{
    return slice_of(start, end > start ? (size_t)(end - start) - 1 : 0);
}

static bool starts_block(struct slice word)
{
    return slice_is(word, "```bash") || slice_is(word, "```sh") || slice_is(word, "```mswea_bash_command");
}

/* What a line of thinking leaves to read; the block may go on. */
static bool is_thought(struct slice line, bool *is_thinking)
{
    const struct slice word = line_trim(line);
    const size_t tag = strlen("<think>");
    *is_thinking |= word.len >= tag && memcmp(word.data, "<think>", tag) == 0;
    if (!*is_thinking)
        return false;
    *is_thinking = !memmem(line.data, line.len, "</think>", strlen("</think>"));
    return true;
}

struct code_block code_block_read(const char *reply)
{
    struct code_block fence = {0};
    const char *from = skip_open_thinking(reply);
    struct slice text = slice_from_str(from);
    const uint8_t *start = NULL;
    size_t number = 1;
    for (const char *at = reply; at < from; at++)
        number += *at == '\n';
    for (; text.len > 0; number++) {
        struct slice line = line_take(&text), word = line_trim(line);
        if (!start && is_thought(line, &fence.is_thinking))
            continue;
        if (!start) {
            fence.is_done |= slice_is(word, FENCE_DONE);
            start = starts_block(word) ? text.data : NULL;
            fence.open_line = start ? number : 0;
        } else if (slice_is(word, "```")) {
            if (fence.blocks++ == 0)
                fence.command = command_between(start, line.data);
            start = NULL;
            fence.open_line = 0;
        }
    }
    return fence;
}

bool code_block_submits(struct slice output, struct slice *ret_answer)
{
    struct slice line = {0};
    while (output.len > 0 && (line = line_trim(line_take(&output))).len == 0)
        ;
    *ret_answer = output;
    return slice_is(line, FENCE_SUBMIT);
}
