#include "client/cli/submit/tasks_file.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "client/cli/connect.h"
#include "client/json/json.h"
#include "common/base/cleanup.h"
#include "common/digest/digest.h"
#include "common/base/sanitize.h"
#include "common/base/text.h"
#include "schemas/task/task.h"

#define BOM "\xef\xbb\xbf" /* which some editors put before the first line */
enum { BOM_LEN = 3, HASH_DIGITS = 10, PREFIX_MAX = 24, ID_MAX = 56, READ_BYTES = 65536 };

static bool add_line(struct tasks_file *tasks, const struct task_line *line)
{
    if (tasks->count == tasks->capacity) {
        size_t capacity = tasks->capacity ? tasks->capacity * 2 : 64;
        struct task_line *lines = realloc(tasks->lines, capacity * sizeof(*lines));
        if (!lines)
            return false;
        tasks->lines = lines;
        tasks->capacity = capacity;
    }
    tasks->lines[tasks->count++] = *line;
    return true;
}

/* FILE:LINE: FIELD: REASON, where a sentence that begins with the field loses it;
 * without FIELD where none is at fault. */
static void say_bad(struct tasks_file *tasks, size_t line, const struct refusal *no)
{
    size_t len = strlen(no->field);
    const char *rest = no->text + len;
    bool says_field = len > 0 && strncmp(no->text, no->field, len) == 0 && (*rest == ' ' || *rest == ':');
    rest += says_field ? strspn(rest, ": ") : 0;
    tasks->bad++;
    sanitize_print(stderr, "%s:%zu: %s%s%s\n", tasks->path, line, no->field, len ? ": " : "",
                   says_field ? rest : no->text);
}

/* False when out of memory; a bad line is said and counted. */
static bool take_line(struct tasks_file *tasks, struct slice text, size_t line, unsigned samples)
{
    struct refusal no = {0};
    struct task *task = NULL;
    if (text.len > TASK_LINE_BYTES_MAX)
        refuse(&no, REFUSAL_TOO_LARGE, "", "the line is %zu bytes; the maximum is %d", text.len, TASK_LINE_BYTES_MAX);
    else
        task = task_parse(text, &no);
    if (!task) {
        say_bad(tasks, line, &no);
        return true;
    }
    struct task_line one = {.json = strndup((const char *)text.data, text.len),
                            .id = strdup(task->id),
                            .line = line,
                            .samples = samples ? samples : (unsigned)task->samples};
    task_destroy(task);
    if (one.json && one.id && add_line(tasks, &one))
        return true;
    free(one.json);
    free(one.id);
    return false;
}

static bool read_all(FILE *file, struct buffer *ret)
{
    size_t got;
    do {
        uint8_t *room = buffer_reserve(ret, READ_BYTES);
        got = room ? fread(room, 1, READ_BYTES, file) : 0;
        ret->len += got;
    } while (got > 0);
    return !ferror(file) && !ret->failed;
}

static struct slice without_mark(struct slice text)
{
    const size_t len = text.len >= BOM_LEN && memcmp(text.data, BOM, BOM_LEN) == 0 ? BOM_LEN : 0;
    return slice_of(text.data + len, text.len - len);
}

/* Whether the text is one object, written over several lines. */
static bool is_one_object(struct slice text)
{
    const struct slice whole = text_trim(text);
    if (whole.len > TASK_LINE_BYTES_MAX || !memchr(whole.data, '\n', whole.len))
        return false;
    json_t *object = json_loadb((const char *)whole.data, whole.len, JSON_ALLOW_NUL, NULL);
    const bool is_one = json_is_object(object);
    json_decref(object);
    return is_one;
}

static bool take_lines(struct tasks_file *tasks, struct slice text, unsigned samples)
{
    for (size_t nr = 1; text.len; nr++) {
        const uint8_t *end = memchr(text.data, '\n', text.len);
        const size_t len = end ? (size_t)(end - text.data) + 1 : text.len;
        const struct slice line = text_trim_right(slice_of(text.data, len));
        text = slice_of(text.data + len, text.len - len);
        if (line.len && !take_line(tasks, line, nr, samples))
            return false;
    }
    return true;
}

static bool read_lines(struct tasks_file *tasks, FILE *file, unsigned samples)
{
    AUTO_BUFFER all = {0};
    errno = 0;
    if (!read_all(file, &all)) {
        cli_say("cannot read %s: %s", tasks->path, all.failed ? "out of memory" : strerror(errno));
        return false;
    }
    const struct slice text = without_mark(buffer_peek(&all));
    if (is_one_object(text) ? take_line(tasks, text_trim(text), 1, samples) : take_lines(tasks, text, samples))
        return true;
    cli_say("out of memory");
    return false;
}

bool tasks_read(struct tasks_file *tasks, const char *path, unsigned samples)
{
    *tasks = (struct tasks_file){.path = path};
    bool is_stdin = strcmp(path, "-") == 0;
    AUTO_FCLOSE FILE *opened = is_stdin ? NULL : fopen(path, "r");
    FILE *file = is_stdin ? stdin : opened;
    if (!file) {
        cli_say("cannot read %s: %s", path, strerror(errno));
        return false;
    }
    return read_lines(tasks, file, samples);
}

bool tasks_are_folders(const char *path)
{
    struct stat about;
    const char *slash = strrchr(path, '/');
    return (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) || strcmp(slash ? slash + 1 : path, "dataset.toml") == 0;
}

bool tasks_import(struct tasks_file *tasks, const char *path, struct python_call *importer, unsigned samples)
{
    *tasks = (struct tasks_file){.path = path};
    if (!python_add(importer, "--") || !python_add(importer, path))
        return false;
    FILE *file = python_open(importer);
    if (!file)
        return false;
    bool good = read_lines(tasks, file, samples);
    fclose(file);
    if (python_end(importer))
        return good;
    cli_say("not all of %s are tasks; nothing was submitted", path);
    return false;
}

/* ---- names ---------------------------------------------------------------------------------- */

static int compare_lines(const void *a, const void *b)
{
    const struct task_line *left = *(struct task_line *const *)a;
    const struct task_line *right = *(struct task_line *const *)b;
    int order = strcmp(left->json, right->json);
    return order ? order : left->line < right->line ? -1 : 1;
}

/* At most `max` bytes, whole UTF-8 sequences, '_' for what a name may not hold. */
static void append_clean(char *name, const char *text, size_t text_len, size_t max)
{
    const size_t len = text_cut_slice(slice_of(text, text_len), max).len;
    char *at = name + strlen(name);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        *at++ = c <= ' ' || c == '/' || c == 0x7f ? '_' : (char)c;
    }
    *at = '\0';
}

static bool name_group(struct task_line *line, const char *prefix, size_t prefix_len, const char *stream, size_t repeat)
{
    AUTO_BUFFER content = {0};
    char digest[DIGEST_SIZE];
    buffer_printf(&content, "%s %u %zu %s", stream, line->samples, repeat, line->json);
    if (content.failed || !digest_of(buffer_peek(&content), digest))
        return false;
    append_clean(line->name, prefix, prefix_len, PREFIX_MAX);
    strcat(line->name, "-");
    append_clean(line->name, line->id, strlen(line->id), ID_MAX);
    strcat(line->name, "-");
    append_clean(line->name, digest + strlen("sha256:"), HASH_DIGITS, HASH_DIGITS);
    return true;
}

bool tasks_name_groups(struct tasks_file *tasks, const char *prefix, const char *stream)
{
    const char *slash = strrchr(tasks->path, '/');
    const char *stem = prefix ? prefix : slash ? slash + 1 : tasks->path;
    if (strcmp(stem, "-") == 0)
        stem = "stdin";
    size_t stem_len = prefix ? strlen(prefix) : strcspn(stem, ".");
    AUTO_FREE struct task_line **sorted = calloc(tasks->count + 1, sizeof(struct task_line *));
    if (!sorted)
        return false;
    for (size_t i = 0; i < tasks->count; i++)
        sorted[i] = &tasks->lines[i];
    qsort(sorted, tasks->count, sizeof(*sorted), compare_lines);
    size_t repeat = 0;
    for (size_t i = 0; i < tasks->count; i++) {
        repeat = i && strcmp(sorted[i]->json, sorted[i - 1]->json) == 0 ? repeat + 1 : 0;
        if (!name_group(sorted[i], stem, stem_len, stream, repeat))
            return false;
    }
    return true;
}

/* ---- changes ------------------------------------------------------------------------------- */

struct change {
    const char *agent;
    uint64_t versions_behind;
    const char *on_stale;
};

static void set_age(json_t *task, const struct change *change)
{
    json_t *limits = json_object_get(task, "limits");
    if (!limits) {
        json_object_set_new(task, "limits", json_object());
        limits = json_object_get(task, "limits");
    }
    json_object_set_new(limits, "versions_behind", json_integer((json_int_t)change->versions_behind));
    if (change->on_stale)
        json_object_set_new(limits, "on_stale", json_string(change->on_stale));
}

static void set_agent(json_t *task, const struct change *change)
{
    json_object_set_new(task, "agent", json_pack("{s:s}", "kind", change->agent));
}

static char *changed_text(const char *text, void (*set)(json_t *task, const struct change *change),
                          const struct change *change)
{
    json_t *task = json_loads(text, JSON_ALLOW_NUL, NULL);
    set(task, change);
    char *changed = json_dumps(task, JSON_COMPACT);
    json_decref(task);
    return changed;
}

static bool change_all(struct tasks_file *tasks, void (*set)(json_t *task, const struct change *change),
                       const struct change *change)
{
    for (size_t i = 0; i < tasks->count; i++) {
        struct task_line *line = &tasks->lines[i];
        struct refusal no = {0};
        char *changed = changed_text(line->json, set, change);
        if (!changed)
            return false;
        free(line->json);
        line->json = changed;
        struct task *task = task_parse(slice_from_str(changed), &no);
        if (!task)
            say_bad(tasks, line->line, &no);
        task_destroy(task);
    }
    return true;
}

bool tasks_set_age(struct tasks_file *tasks, uint64_t versions_behind, const char *on_stale)
{
    return change_all(tasks, set_age, &(struct change){.versions_behind = versions_behind, .on_stale = on_stale});
}

bool tasks_set_agent(struct tasks_file *tasks, const char *kind)
{
    return change_all(tasks, set_agent, &(struct change){.agent = kind});
}

void tasks_finish(struct tasks_file *tasks)
{
    for (size_t i = 0; i < tasks->count; i++) {
        free(tasks->lines[i].json);
        free(tasks->lines[i].id);
    }
    free(tasks->lines);
    *tasks = (struct tasks_file){0};
}

void tasks_line_json(FILE *out, const struct task_line *line, const char *stream)
{
    fputs("\"group\": ", out);
    json_text(out, line->name);
    fputs(", \"stream\": ", out);
    json_text(out, stream);
    fputs(", \"task\": ", out);
    json_text(out, line->id);
    fprintf(out, ", \"line\": %zu, \"samples\": %u", line->line, line->samples);
}
