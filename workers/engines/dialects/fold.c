#include "workers/engines/dialects/fold.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>

#include "common/base/cleanup.h"
#include "common/json/json_doc_look.h"
#include "workers/engines/dialects/call.h"

/* ---- a node, written again ---------------------------------------------------------------------- */

static void write_inside(const struct json_doc *doc, const struct json_doc_node *node, const char *open,
                         const char *close, struct buffer *out)
{
    const struct slice raw = json_doc_raw(doc, node);
    buffer_append_str(out, open);
    buffer_append(out, raw.data, raw.len);
    buffer_append_str(out, close);
}

static void write_node(const struct json_doc *doc, const struct json_doc_node *node, struct buffer *out)
{
    static const char *const words[] = {[JSON_DOC_NULL] = "null", [JSON_DOC_FALSE] = "false", [JSON_DOC_TRUE] = "true"};
    switch (node->kind) {
    case JSON_DOC_INTEGER: buffer_printf(out, "%" PRId64, node->integer); break;
    case JSON_DOC_REAL: buffer_printf(out, "%.17g", node->real); break;
    case JSON_DOC_STRING: write_inside(doc, node, "\"", "\"", out); break;
    case JSON_DOC_ARRAY: write_inside(doc, node, "[", "]", out); break;
    case JSON_DOC_OBJECT: write_inside(doc, node, "{", "}", out); break;
    default: buffer_append_str(out, words[node->kind]);
    }
}

/* ---- an event ----------------------------------------------------------------------------------- */

/* NULL: it is not there, or null. */
static const struct json_doc_node *find(const struct json_doc *doc, const struct fold_row *row)
{
    const struct json_doc_node *node = json_doc_root(doc);
    for (size_t i = 0; i < FOLD_PATH_MAX && row->path[i]; i++) {
        node = json_doc_get(doc, node, row->path[i]);
        if (i + 1 < FOLD_PATH_MAX && row->path[i + 1] && json_doc_count(node) > 0)
            node = json_doc_first(node);
    }
    return node && node->kind != JSON_DOC_NULL ? node : NULL;
}

static int take_text(const struct json_doc *doc, const struct json_doc_node *node, struct buffer *part,
                     struct buffer *text, struct fail *fail)
{
    if (node->kind != JSON_DOC_STRING)
        return fail_set(fail, -EPROTO, "a text of the engine's stream is no string");
    const struct slice raw = json_doc_raw(doc, node);
    buffer_append(part, raw.data, raw.len);
    return json_doc_string(doc, node, text) ? 0 : fail_memory(fail);
}

static bool has_given_up(struct slice finish)
{
    static const char *const words[] = {"\"abort\"", "\"error\""};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (memmem(finish.data, finish.len, words[i], strlen(words[i])))
            return true;
    return false;
}

static int take_part(struct fold *fold, size_t i, const struct json_doc *doc, struct buffer *text, bool *is_end,
                     struct fail *fail)
{
    const struct fold_row *row = &fold->form->rows[i];
    const struct json_doc_node *node = row->kind == FOLD_WORDS ? NULL : find(doc, row);
    struct buffer *part = &fold->parts[i];
    if (!node || (row->kind == FOLD_FIRST && part->len > 0))
        return 0;
    if (row->kind == FOLD_TEXT)
        return take_text(doc, node, part, text, fail);
    *is_end |= row->kind == FOLD_FINISH;
    buffer_clear(part);
    write_node(doc, node, part);
    if (row->kind == FOLD_FINISH && has_given_up(buffer_peek(part))) {
        fold->is_given_up = true;
        buffer_clear(part);
    }
    return 0;
}

/* What it says instead of an answer: {"error": {"code", "message"}}. */
static int take_error(struct slice data, struct fail *fail)
{
    AUTO_JSON json_t *json = json_loadb((const char *)data.data, data.len, 0, NULL);
    const json_t *error = json_object_get(json, "error");
    const json_int_t code = json_integer_value(json_object_get(json_is_object(error) ? error : json, "code"));
    return call_refusal(code >= 400 && code < 600 ? (long)code : 500, json, fail);
}

static int take_document(struct fold *fold, const struct json_doc *doc, struct slice data, struct fold_event *event,
                         struct buffer *text, struct fail *fail)
{
    const struct fold_row error_row = {.path = {"error"}};
    if (find(doc, &error_row))
        return take_error(data, fail);
    const size_t before = fold->sampled.ids.count;
    int error = fold->form->take(doc, &fold->sampled, fail);
    for (size_t i = 0; error == 0 && fold->form->rows[i].before; i++)
        error = take_part(fold, i, doc, text, &event->is_end, fail);
    const struct tokens *ids = &fold->sampled.ids;
    event->ids = (struct tokens){.ids = ids->ids ? ids->ids + before : NULL, .count = ids->count - before};
    event->text = buffer_peek(text);
    fold->is_finished |= event->is_end;
    return error;
}

typedef void (*fold_told)(void *arg, const struct fold_event *event);

static int take_event(struct fold *fold, struct slice data, fold_told told, void *arg, struct fail *fail)
{
    struct json_doc doc = {0};
    struct fold_event event = {0};
    AUTO_BUFFER text = {0};
    if (slice_is(data, "[DONE]"))
        return 0;
    int error = json_doc_parse(data, &doc, fail);
    if (error == 0)
        error = take_document(fold, &doc, data, &event, &text, fail);
    const bool has_told = error == 0 && (event.ids.count > 0 || event.text.len > 0 || event.is_end);
    fold->events += has_told;
    if (has_told)
        told(arg, &event);
    json_doc_finish(&doc);
    return error;
}

/* ---- lines -------------------------------------------------------------------------------------- */

/* Comments, names and empty lines mean nothing here. */
static int take_line(struct fold *fold, struct slice line, fold_told told, void *arg, struct fail *fail)
{
    static const char data[] = "data:";
    const size_t name = sizeof(data) - 1;
    if (line.len < name || memcmp(line.data, data, name) != 0)
        return 0;
    line = slice_of(line.data + name, line.len - name);
    while (line.len > 0 && isspace(*line.data))
        line = slice_of(line.data + 1, line.len - 1);
    while (line.len > 0 && isspace(line.data[line.len - 1]))
        line.len--;
    return take_event(fold, line, told, arg, fail);
}

static int take_lines(struct fold *fold, struct slice bytes, fold_told told, void *arg, struct fail *fail)
{
    int error = 0;
    for (const uint8_t *end; error == 0 && bytes.len > 0 && (end = memchr(bytes.data, '\n', bytes.len));) {
        const size_t len = (size_t)(end - bytes.data);
        struct slice line = slice_of(bytes.data, len);
        if (fold->line.len > 0) {
            buffer_append(&fold->line, bytes.data, len);
            line = buffer_peek(&fold->line);
        }
        error = take_line(fold, line, told, arg, fail);
        buffer_clear(&fold->line);
        bytes = slice_of(end + 1, bytes.len - len - 1);
    }
    if (error == 0 && !buffer_append(&fold->line, bytes.data, bytes.len))
        error = fail_memory(fail);
    return error;
}

int fold_take(struct fold *fold, struct slice bytes, fold_told told, void *arg, struct fail *fail)
{
    if (bytes.len > 0 && !fold->has_begun)
        fold->is_whole = *bytes.data == '{';
    fold->has_begun |= bytes.len > 0;
    if (!fold->is_whole)
        return take_lines(fold, bytes, told, arg, fail);
    return buffer_append(&fold->line, bytes.data, bytes.len) ? 0 : fail_memory(fail);
}

/* ---- the document ------------------------------------------------------------------------------- */

static void write_row(const struct fold *fold, size_t i, struct buffer *out)
{
    const struct fold_row *row = &fold->form->rows[i];
    const struct slice part = buffer_peek(&fold->parts[i]);
    const bool is_cut = row->kind == FOLD_FINISH && part.len == 0;
    if (part.len == 0 && !is_cut && row->kind >= FOLD_FIRST)
        return;
    buffer_append_str(out, row->before);
    buffer_append(out, part.data, part.len);
    buffer_append_str(out, is_cut ? fold->form->cut : "");
    buffer_append_str(out, row->after ? row->after : "");
    out->failed |= fold->parts[i].failed;
}

void fold_write(const struct fold *fold, struct buffer *out)
{
    if (fold->is_whole)
        buffer_append(out, fold->line.data, fold->line.len);
    else
        buffer_append_str(out, "{");
    for (size_t i = 0; !fold->is_whole && fold->form->rows[i].before; i++)
        write_row(fold, i, out);
}

void fold_finish(struct fold *fold)
{
    for (size_t i = 0; i < FOLD_ROWS_MAX; i++)
        buffer_finish(&fold->parts[i]);
    buffer_finish(&fold->line);
    sampled_tokens_finish(&fold->sampled);
}
