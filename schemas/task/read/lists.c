#include "schemas/task/read/task_read.h"

#include <stdio.h>
#include <stdlib.h>

#include "schemas/task/json/base64.h"

bool place_check_list(const struct task_place *place, const json_t *value)
{
    if (!json_is_array(value))
        return place_wrong_type(place, "a list");
    return place_check_bounds(place, (double)json_array_size(value), " elements");
}

bool place_make_list(const struct task_place *place, size_t count, size_t size, void *ret)
{
    void *list = arena_zeroed(place->arena, count, size);
    *(void **)ret = list;
    return list || place_out_of_memory(place);
}

bool place_read_list(const struct task_place *place, const json_t *value, size_t size, element_reader read, void *ret,
                     size_t *count)
{
    if (!place_check_list(place, value) || !place_make_list(place, json_array_size(value), size, ret))
        return false;
    for (size_t i = 0; i < json_array_size(value); i++) {
        const struct task_place element = place_of_element(place, i);
        if (!read(&element, json_array_get(value, i), *(char **)ret + i * size))
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

bool task_read_prompt(const struct task_place *place, const json_t *value)
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
    task->messages[0].content = arena_text(place->arena, slice_from_str(text));
    return (task->messages[0].role && task->messages[0].content) || place_out_of_memory(place);
}

static bool read_message(const struct task_place *place, const json_t *value, void *into)
{
    return task_read_object(place, "messages[]", value, into);
}

bool task_read_messages(const struct task_place *place, const json_t *value)
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

bool task_read_file_text(const struct task_place *place, const json_t *value)
{
    const char *text = place_bounded_text(place, value);
    const char *content = text ? arena_text(place->arena, slice_from_str(text)) : NULL;
    return text && set_content(place, (const uint8_t *)content, strlen(text));
}

bool task_read_file_base64(const struct task_place *place, const json_t *value)
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

bool task_read_file_source(const struct task_place *place, const json_t *value)
{
    struct task_file *file = place->base;
    const char *path = place_node_path(place, value);
    if (!path)
        return false;
    return file->content || file->source ? refuse_second(place) : place_set_text(place, &file->source, path);
}

bool task_read_file_mode(const struct task_place *place, const json_t *value)
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

static bool read_file(const struct task_place *place, const json_t *value, void *into)
{
    struct task_file *file = into;
    struct refusal *no = place->no;
    char field[sizeof(no->field)];
    task_read_defaults("files[]", file);
    if (!task_read_object(place, "files[]", value, file))
        return false;
    snprintf(field, sizeof(field), "%.100s.%s", place->shown, file->source ? "mode" : file->content ? "path" : "text");
    if (file->source)
        return !json_object_get(value, "mode") ||
               refuse(no, REFUSAL_AMBIGUOUS, field, "%s goes with text and base64: a source has its own modes", field);
    if (!file->content)
        return refuse(no, REFUSAL_MISSING_FIELD, field, "%s is missing: give one of text, base64 and source", field);
    return path_names_a_file(file->path) ||
           refuse(no, REFUSAL_BAD_TASK, field, "%s must name a file, without \"..\"", field);
}

/* {"path": "text"} is read as [{"path": "path", "text": "text"}]. */
static json_t *list_of_files(const json_t *object)
{
    const char *path;
    json_t *text, *list = json_array();
    json_object_foreach((json_t *)object, path,
                        text) if (json_array_append_new(list, json_pack("{s:s, s:O}", "path", path, "text", text)) < 0)
    {
        json_decref(list);
        return NULL;
    }
    return list;
}

static bool read_file_set(const struct task_place *place, const json_t *value, struct task_file **files, size_t *count)
{
    if (json_is_array(value))
        return place_read_list(place, value, sizeof(**files), read_file, files, count);
    if (!json_is_object(value))
        return place_wrong_type(place, "a list of files, or an object of path and text");
    json_t *list = list_of_files(value);
    bool good = list ? place_read_list(place, list, sizeof(**files), read_file, files, count)
                     : place_out_of_memory(place);
    json_decref(list);
    return good;
}

bool task_read_files(const struct task_place *place, const json_t *value)
{
    struct task *task = place->base;
    return read_file_set(place, value, &task->files, &task->file_count);
}

bool task_read_eval_files(const struct task_place *place, const json_t *value)
{
    struct task *task = place->base;
    return read_file_set(place, value, &task->eval_files, &task->eval_file_count);
}

bool task_read_solution_files(const struct task_place *place, const json_t *value)
{
    struct task *task = place->base;
    return read_file_set(place, value, &task->solution_files, &task->solution_file_count);
}

bool task_read_file_list(const struct task_place *place, const json_t *value)
{
    struct task_file_list *list = place_member(place);
    return read_file_set(place, value, &list->each, &list->count);
}

/* ---- texts --------------------------------------------------------------------------------- */

enum { TEXT_MAX = 65536 };

bool place_read_each(const struct task_place *place, const json_t *value, const struct task_row *row,
                     const char ***texts, size_t *count)
{
    if (!place_check_list(place, value) || !place_make_list(place, json_array_size(value), sizeof(**texts), texts))
        return false;
    for (size_t i = 0; i < json_array_size(value); i++) {
        struct task_place element = place_of_element(place, i);
        element.row = row;
        element.base = &(*texts)[i];
        ++*count;
        if (!task_read_value(&element, json_array_get(value, i)))
            return false;
    }
    return true;
}

bool place_read_texts(const struct task_place *place, const json_t *value, double max, const char ***texts,
                      size_t *count)
{
    const struct task_row text_row = {.type = TASK_TEXT, .min = 1, .max = max};
    return place_read_each(place, value, &text_row, texts, count);
}

bool task_read_setup(const struct task_place *place, const json_t *value)
{
    struct task *task = place->base;
    return place_read_texts(place, value, TEXT_MAX, &task->setup, &task->setup_count);
}

bool task_read_commands(const struct task_place *place, const json_t *value)
{
    struct task_text_list *list = place_member(place);
    return place_read_texts(place, value, TEXT_MAX, &list->each, &list->count);
}

bool task_read_solution_commands(const struct task_place *place, const json_t *value)
{
    struct task *task = place->base;
    return place_read_texts(place, value, TEXT_MAX, &task->solution_commands, &task->solution_command_count);
}

bool task_read_answers(const struct task_place *place, const json_t *value)
{
    struct task *task = place->base;
    return place_read_texts(place, value, TEXT_MAX, &task->eval_answers, &task->eval_answer_count);
}

/* ---- options of a choice -------------------------------------------------------------------------- */

static bool read_option(const struct task_place *place, const char *letter, const json_t *value, struct task *task)
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

bool task_read_options(const struct task_place *place, const json_t *value)
{
    const char *letter;
    json_t *text;
    if (!json_is_object(value))
        return place_wrong_type(place, "an object of letters and texts");
    if (!place_check_bounds(place, (double)json_object_size(value), " elements"))
        return false;
    json_object_foreach((json_t *)(uintptr_t)value, letter,
                        text) if (!read_option(place, letter, text, place->base)) return false;
    return true;
}

/* ---- grants of the network ------------------------------------------------------------------- */

static bool read_grant(const struct task_place *place, const json_t *value, const char **ret)
{
    if (!json_is_string(value))
        return place_wrong_type(place, "a string");
    if (!task_grant_is_valid(json_string_value(value)))
        return refuse(place->no, REFUSAL_BAD_NAME, place->shown,
                      "%s must be 1 to %d characters of a-z, 0-9 and -, beginning with a letter", place->shown,
                      TASK_GRANT_SIZE - 1);
    return place_set_text(place, ret, json_string_value(value));
}

static bool read_grant_list(const struct task_place *place, const json_t *value, const char ***grants, size_t *count)
{
    if (!place_check_list(place, value) || !place_make_list(place, json_array_size(value), sizeof(**grants), grants))
        return false;
    for (size_t i = 0; i < json_array_size(value); i++) {
        struct task_place element = place_of_element(place, i);
        ++*count;
        if (!read_grant(&element, json_array_get(value, i), &(*grants)[i]))
            return false;
        for (size_t k = 0; k < i; k++)
            if (strcmp((*grants)[k], (*grants)[i]) == 0)
                return refuse(place->no, REFUSAL_BAD_TASK, element.shown, "%s is given twice", element.shown);
    }
    return true;
}

bool task_read_grants(const struct task_place *place, const json_t *value)
{
    struct task *task = place->base;
    return read_grant_list(place, value, &task->grants, &task->grant_count);
}

bool task_read_init_grants(const struct task_place *place, const json_t *value)
{
    struct task *task = place->base;
    return read_grant_list(place, value, &task->init_grants, &task->init_grant_count);
}

bool task_read_build_grants(const struct task_place *place, const json_t *value)
{
    struct task_text_list *list = place_member(place);
    return read_grant_list(place, value, &list->each, &list->count);
}

bool task_read_eval_grants(const struct task_place *place, const json_t *value)
{
    struct task *task = place->base;
    return read_grant_list(place, value, &task->eval_grants, &task->eval_grant_count);
}

/* ---- exit statuses ------------------------------------------------------------------------------ */

static bool read_status(const struct task_place *place, const json_t *value, uint8_t *ret)
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

bool task_read_statuses(const struct task_place *place, const json_t *value)
{
    struct task *task = place->base;
    bool has_zero = false;
    if (!place_check_list(place, value))
        return false;
    for (size_t i = 0; i < json_array_size(value); i++) {
        struct task_place element = place_of_element(place, i);
        if (!read_status(&element, json_array_get(value, i), &task->eval_statuses[i]))
            return false;
        has_zero |= task->eval_statuses[i] == 0;
        for (size_t k = 0; k < i; k++)
            if (task->eval_statuses[k] == task->eval_statuses[i])
                return refuse(place->no, REFUSAL_BAD_TASK, element.shown, "%s is given twice", element.shown);
    }
    task->eval_status_count = json_array_size(value);
    return has_zero || refuse(place->no, REFUSAL_BAD_TASK, place->shown,
                              "%s must have 0: no other status gives a reward of 1", place->shown);
}
