#include "schemas/task/read/task_read.h"

#include <stdio.h>
#include <stdlib.h>

#include "schemas/task/json/base64.h"

bool place_check_list(const struct task_place *place, struct task_value value)
{
    if (!task_value_is(value, JSON_DOC_ARRAY))
        return place_wrong_type(place, "a list");
    return place_check_bounds(place, (double)task_value_count(value), " elements");
}

bool place_make_list(const struct task_place *place, size_t count, size_t size, void *ret)
{
    void *list = arena_zeroed(place->arena, count, size);
    *(void **)ret = list;
    return list || place_out_of_memory(place);
}

bool place_read_list(const struct task_place *place, struct task_value value, size_t size, element_reader read,
                     void *ret, size_t *count)
{
    if (!place_check_list(place, value) || !place_make_list(place, task_value_count(value), size, ret))
        return false;
    for (struct task_values each = task_values_of(value); task_values_next(&each);) {
        const struct task_place element = place_of_element(place, each.at);
        if (!read(&element, each.value, *(char **)ret + each.at * size))
            return false;
        ++*count;
    }
    return true;
}

struct task_place place_of_element(const struct task_place *list, size_t i)
{
    struct task_place element = *list;
    snprintf(element.shown, sizeof(element.shown), "%.100s[%zu]", list->shown, i);
    return element;
}

/* ---- messages ------------------------------------------------------------------------- */

bool task_read_prompt(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    const char *text = place_bounded_text(place, value);
    if (!text)
        return false;
    if (task->messages)
        return refuse(place->no, REFUSAL_AMBIGUOUS, place->shown, "only one of prompt and messages may be given");
    if (!place_make_list(place, 1, sizeof(*task->messages), &task->messages))
        return false;
    task->message_count = 1;
    task->messages[0].role = arena_text(place->arena, slice_from_str("user"));
    task->messages[0].content = (char *)(uintptr_t)text;
    return task->messages[0].role || place_out_of_memory(place);
}

static bool read_message(const struct task_place *place, struct task_value value, void *into)
{
    return task_read_object(place, "messages[]", value, into);
}

bool task_read_messages(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    if (!place_check_list(place, value))
        return false;
    if (task->messages)
        return refuse(place->no, REFUSAL_AMBIGUOUS, place->shown, "only one of prompt and messages may be given");
    return place_read_list(place, value, sizeof(*task->messages), read_message, &task->messages, &task->message_count);
}

/* ---- files ------------------------------------------------------------------------------ */

static bool refuse_second(const struct task_place *place)
{
    return refuse(place->no, REFUSAL_AMBIGUOUS, place->shown, "%s: only one of text, base64 and source may be given",
                  place->shown);
}

static bool set_content(const struct task_place *place, const uint8_t *content, size_t len)
{
    struct task_file *file = place->base;
    if (!content)
        return place_out_of_memory(place);
    if (file->content || file->source)
        return refuse_second(place);
    file->content = content;
    file->content_len = len;
    return true;
}

bool task_read_file_text(const struct task_place *place, struct task_value value)
{
    const char *text = place_bounded_text(place, value);
    return text && set_content(place, (const uint8_t *)text, strlen(text));
}

bool task_read_file_base64(const struct task_place *place, struct task_value value)
{
    const char *text = place_bounded_text(place, value);
    if (!text)
        return false;
    struct slice digits = slice_from_str(text);
    uint8_t *content = arena_alloc(place->arena, base64_room(digits.len) + 1);
    size_t len = 0;
    if (content && !base64_decode(digits, content, &len))
        return refuse(place->no, REFUSAL_BAD_TASK, place->shown, "%s is not padded base64", place->shown);
    return set_content(place, content, len);
}

bool task_read_file_source(const struct task_place *place, struct task_value value)
{
    struct task_file *file = place->base;
    const char *path = place_node_path(place, value);
    if (!path)
        return false;
    if (file->content || file->source)
        return refuse_second(place);
    file->source = path;
    return true;
}

bool task_read_file_mode(const struct task_place *place, struct task_value value)
{
    const char *text = place_bounded_text(place, value);
    if (!text)
        return false;
    if (strspn(text, "01234567") != strlen(text) || strtoul(text, NULL, 8) > 0777)
        return refuse(place->no, REFUSAL_BAD_TASK, place->shown,
                      "%s must be permission bits in octal, such as \"0755\"", place->shown);
    *(unsigned *)place_member(place) = (unsigned)strtoul(text, NULL, 8);
    return true;
}

static const char file_path[] = "files[]";

static bool check_file(const struct task_place *place, const struct task_file *file, bool has_mode)
{
    struct refusal *no = place->no;
    char field[sizeof(no->field)];
    snprintf(field, sizeof(field), "%.100s.%s", place->shown, file->source ? "mode" : file->content ? "path" : "text");
    if (file->source)
        return !has_mode ||
               refuse(no, REFUSAL_AMBIGUOUS, field, "%s goes with text and base64: a source has its own modes", field);
    if (!file->content)
        return refuse(no, REFUSAL_MISSING_FIELD, field, "%s is missing: give one of text, base64 and source", field);
    return path_names_a_file(file->path) ||
           refuse(no, REFUSAL_BAD_TASK, field, "%s must name a file, without \"..\"", field);
}

static bool read_file(const struct task_place *place, struct task_value value, void *into)
{
    task_read_defaults(file_path, into);
    return task_read_object(place, file_path, value, into) &&
           check_file(place, into, task_value_get(value, "mode").at != NULL);
}

/* {"path": "text"} is read as [{"path": "path", "text": "text"}]. */
static bool read_named_files(const struct task_place *place, struct task_value value, struct task_file **files,
                             size_t *count)
{
    if (!place_check_bounds(place, (double)task_value_count(value), " elements") ||
        !place_make_list(place, task_value_count(value), sizeof(**files), files))
        return false;
    for (struct task_values each = task_values_of(value); task_values_next(&each); ++*count) {
        const struct task_place element = place_of_element(place, each.at);
        struct task_file *file = &(*files)[each.at];
        task_read_defaults(file_path, file);
        if (!task_read_member(&element, file_path, "path", each.name, file) ||
            !task_read_member(&element, file_path, "text", each.value, file) || !check_file(&element, file, false))
            return false;
    }
    return true;
}

static bool read_file_set(const struct task_place *place, struct task_value value, struct task_file **files,
                          size_t *count)
{
    if (task_value_is(value, JSON_DOC_ARRAY))
        return place_read_list(place, value, sizeof(**files), read_file, files, count);
    return task_value_is(value, JSON_DOC_OBJECT)
               ? read_named_files(place, value, files, count)
               : place_wrong_type(place, "a list of files, or an object of path and text");
}

bool task_read_files(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    return read_file_set(place, value, &task->files, &task->file_count);
}

bool task_read_eval_files(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    return read_file_set(place, value, &task->eval_files, &task->eval_file_count);
}

bool task_read_solution_files(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    return read_file_set(place, value, &task->solution_files, &task->solution_file_count);
}

bool task_read_file_list(const struct task_place *place, struct task_value value)
{
    struct task_file_list *list = place_member(place);
    return read_file_set(place, value, &list->each, &list->count);
}

/* ---- texts --------------------------------------------------------------------------------- */

enum { TEXT_MAX = 65536 };

bool place_read_each(const struct task_place *place, struct task_value value, const struct task_row *row,
                     const char ***texts, size_t *count)
{
    if (!place_check_list(place, value) || !place_make_list(place, task_value_count(value), sizeof(**texts), texts))
        return false;
    for (struct task_values each = task_values_of(value); task_values_next(&each);) {
        struct task_place element = place_of_element(place, each.at);
        element.row = row;
        element.base = &(*texts)[each.at];
        ++*count;
        if (!task_read_value(&element, each.value))
            return false;
    }
    return true;
}

bool place_read_texts(const struct task_place *place, struct task_value value, double max, const char ***texts,
                      size_t *count)
{
    const struct task_row text_row = {.type = TASK_TEXT, .min = 1, .max = max};
    return place_read_each(place, value, &text_row, texts, count);
}

bool task_read_setup(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    return place_read_texts(place, value, TEXT_MAX, &task->setup, &task->setup_count);
}

bool task_read_commands(const struct task_place *place, struct task_value value)
{
    struct task_text_list *list = place_member(place);
    return place_read_texts(place, value, TEXT_MAX, &list->each, &list->count);
}

bool task_read_solution_commands(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    return place_read_texts(place, value, TEXT_MAX, &task->solution_commands, &task->solution_command_count);
}

bool task_read_answers(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    return place_read_texts(place, value, TEXT_MAX, &task->eval_answers, &task->eval_answer_count);
}

/* ---- options of a choice -------------------------------------------------------------------------- */

static bool read_option(const struct task_place *place, const char *letter, struct task_value value, struct task *task)
{
    static const struct task_row text_row = {.type = TASK_TEXT, .min = 1, .max = TEXT_MAX};
    struct task_place option = *place;
    if (letter[0] < 'A' || letter[0] > 'Z' || letter[1] != '\0')
        return refuse(place->no, REFUSAL_BAD_NAME, place->shown, "%s: an option is named by one letter, A to Z",
                      place->shown);
    snprintf(option.shown, sizeof(option.shown), "%.100s.%s", place->shown, letter);
    option.row = &text_row;
    option.base = &task->eval_options[letter[0] - 'A'];
    task->eval_option_count++;
    return task_read_value(&option, value);
}

bool task_read_options(const struct task_place *place, struct task_value value)
{
    if (!task_value_is(value, JSON_DOC_OBJECT))
        return place_wrong_type(place, "an object of letters and texts");
    if (!place_check_bounds(place, (double)task_value_count(value), " elements"))
        return false;
    for (struct task_values each = task_values_of(value); task_values_next(&each);) {
        const char *letter = place_text(place, each.name);
        if (!letter || !read_option(place, letter, each.value, place->base))
            return false;
    }
    return true;
}

/* ---- grants of the network ------------------------------------------------------------------- */

static bool read_grant(const struct task_place *place, struct task_value value, const char **ret)
{
    *ret = place_text(place, value);
    if (!*ret)
        return false;
    if (!task_grant_is_valid(*ret))
        return refuse(place->no, REFUSAL_BAD_NAME, place->shown,
                      "%s must be 1 to %d characters of a-z, 0-9 and -, beginning with a letter", place->shown,
                      TASK_GRANT_SIZE - 1);
    return true;
}

static bool read_grant_list(const struct task_place *place, struct task_value value, const char ***grants,
                            size_t *count)
{
    if (!place_check_list(place, value) || !place_make_list(place, task_value_count(value), sizeof(**grants), grants))
        return false;
    for (struct task_values each = task_values_of(value); task_values_next(&each);) {
        struct task_place element = place_of_element(place, each.at);
        ++*count;
        if (!read_grant(&element, each.value, &(*grants)[each.at]))
            return false;
        for (size_t k = 0; k < each.at; k++)
            if (strcmp((*grants)[k], (*grants)[each.at]) == 0)
                return refuse(place->no, REFUSAL_BAD_TASK, element.shown, "%s is given twice", element.shown);
    }
    return true;
}

bool task_read_grants(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    return read_grant_list(place, value, &task->grants, &task->grant_count);
}

bool task_read_init_grants(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    return read_grant_list(place, value, &task->init_grants, &task->init_grant_count);
}

bool task_read_build_grants(const struct task_place *place, struct task_value value)
{
    struct task_text_list *list = place_member(place);
    return read_grant_list(place, value, &list->each, &list->count);
}

bool task_read_eval_grants(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    return read_grant_list(place, value, &task->eval_grants, &task->eval_grant_count);
}

/* ---- exit statuses ------------------------------------------------------------------------------ */

static bool read_status(const struct task_place *place, struct task_value value, uint8_t *ret)
{
    static const struct task_row status_row = {.type = TASK_UINT, .min = 0, .max = 125};
    struct task_place element = *place;
    uint64_t status = 0;
    element.row = &status_row;
    element.base = &status;
    bool good = task_read_value(&element, value);
    *ret = (uint8_t)status;
    return good;
}

bool task_read_statuses(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    bool has_zero = false;
    if (!place_check_list(place, value))
        return false;
    for (struct task_values each = task_values_of(value); task_values_next(&each);) {
        struct task_place element = place_of_element(place, each.at);
        if (!read_status(&element, each.value, &task->eval_statuses[each.at]))
            return false;
        has_zero |= task->eval_statuses[each.at] == 0;
        for (size_t k = 0; k < each.at; k++)
            if (task->eval_statuses[k] == task->eval_statuses[each.at])
                return refuse(place->no, REFUSAL_BAD_TASK, element.shown, "%s is given twice", element.shown);
    }
    task->eval_status_count = task_value_count(value);
    return has_zero || refuse(place->no, REFUSAL_BAD_TASK, place->shown,
                              "%s must have 0: no other status gives a reward of 1", place->shown);
}
