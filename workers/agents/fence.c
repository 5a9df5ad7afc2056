#include "workers/agents/fence.h"

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

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

struct fence fence_read(const char *reply)
{
    struct fence fence = {0};
    struct slice text = slice_from_str(reply);
    const uint8_t *start = NULL;
    while (text.len > 0) {
        struct slice line = line_take(&text), word = line_trim(line);
        if (!start) {
            fence.is_done |= slice_is(word, FENCE_DONE);
            if (slice_is(word, "```bash") || slice_is(word, "```sh"))
                start = text.data;
        } else if (slice_is(word, "```")) {
            if (fence.blocks++ == 0)
                fence.command = command_between(start, line.data);
            start = NULL;
        }
    }
    fence.is_open = start != NULL;
    return fence;
}
