#include "workers/tools/ipython/jupyter_text.h"

#include <string.h>

static void append(struct output *output, const char *text)
{
    output_append(output, text, text ? strlen(text) : 0);
}

/* Without the sequences that colour terminals: ESC [ ... letter. */
static void append_plain(struct output *output, const char *text)
{
    while (text && *text) {
        size_t plain = strcspn(text, "\033");
        output_append(output, text, plain);
        text += plain;
        if (*text && text[1] == '[')
            text += 2 + strspn(text + 2, "0123456789;?");
        if (*text)
            text++;
    }
}

static void append_error(struct output *output, const json_t *content)
{
    const json_t *line;
    size_t i;
    json_array_foreach(json_object_get(content, "traceback"), i, line) {
        append_plain(output, json_string_value(line));
        append(output, "\n");
    }
}

/* A MIME bundle: its text, unless that only names the class of the picture, and the picture. */
static size_t append_bundle(struct output *output, struct jupyter_pictures *pictures,
                            const json_t *data)
{
    static const char placeholder[] = "<IPython.core.display.";
    const char *text = json_string_value(json_object_get(data, "text/plain"));
    if (text && strncmp(text, placeholder, sizeof(placeholder) - 1) != 0) {
        append_plain(output, text);
        append(output, "\n");
    }
    return jupyter_pictures_take(pictures, data, output);
}

size_t jupyter_text_append(struct output *output, struct jupyter_pictures *pictures,
                           const char *type, const json_t *content)
{
    if (strcmp(type, "stream") == 0)
        append_plain(output, json_string_value(json_object_get(content, "text")));
    else if (strcmp(type, "error") == 0)
        append_error(output, content);
    else if (strcmp(type, "execute_result") == 0 || strcmp(type, "display_data") == 0)
        return append_bundle(output, pictures, json_object_get(content, "data"));
    return 0;
}
