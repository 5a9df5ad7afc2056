#include "schemas/task/read/task_read.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/nearest.h"
#include "common/base/text.h"
#include "schemas/task/image_name.h"

enum { KEY_SHOWN_MAX = 60 };

bool place_out_of_memory(const struct task_place *place)
{
    return refuse(place->no, REFUSAL_TOO_LARGE, place->shown, "no memory to hold %s", place->shown);
}

bool place_wrong_type(const struct task_place *place, const char *wanted)
{
    return refuse(place->no, REFUSAL_WRONG_TYPE, place->shown, "%s must be %s", place->shown, wanted);
}

bool place_check_bounds(const struct task_place *place, double value, const char *unit)
{
    bool small = value < place->row->min;
    if (!small && value <= place->row->max)
        return true;
    return refuse(place->no, small ? REFUSAL_TOO_SMALL : REFUSAL_TOO_LARGE, place->shown,
                  "%s is %.15g%s; the %s is %.15g", place->shown, value, unit, small ? "minimum" : "maximum",
                  small ? place->row->min : place->row->max);
}

/* ---- texts ----------------------------------------------------------------------- */

bool place_set_json(const struct task_place *place, const char **member, const json_t *json)
{
    AUTO_FREE char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    *member = text ? arena_text(place->arena, slice_from_str(text)) : NULL;
    return *member || place_out_of_memory(place);
}

const char *place_text(const struct task_place *place, struct task_value value)
{
    const bool is_string = task_value_is(value, JSON_DOC_STRING);
    const char *text = is_string ? task_value_text(value, place->arena) : NULL;
    if (!is_string)
        place_wrong_type(place, "a string");
    else if (!text)
        place_out_of_memory(place);
    return text;
}

const char *place_bounded_text(const struct task_place *place, struct task_value value)
{
    const char *text = place_text(place, value);
    return text && place_check_bounds(place, (double)strlen(text), " bytes") ? text : NULL;
}

bool place_set_text(const struct task_place *place, const char *text)
{
    *(const char **)place_member(place) = text;
    return true;
}

static bool read_text(const struct task_place *place, struct task_value value)
{
    const char *text = place_bounded_text(place, value);
    return text && place_set_text(place, text);
}

static bool read_name(const struct task_place *place, struct task_value value)
{
    const char *text = place_bounded_text(place, value);
    if (!text)
        return false;
    if (!name_is_valid(slice_from_str(text)))
        return refuse(place->no, REFUSAL_BAD_NAME, place->shown, "%s holds a '/', a blank or a control character",
                      place->shown);
    return place_set_text(place, text);
}

bool path_climbs(const char *path)
{
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += strspn(at, "/");
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return true;
    }
    return false;
}

const char *place_node_path(const struct task_place *place, struct task_value value)
{
    const char *path = place_bounded_text(place, value);
    if (path && (path[0] != '/' || path_climbs(path))) {
        refuse(place->no, REFUSAL_BAD_TASK, place->shown,
               "%s must be an absolute path on the workers' nodes, without \"..\"", place->shown);
        return NULL;
    }
    return path;
}

bool path_names_a_file(const char *path)
{
    const char *last = strrchr(path, '/');
    last = last ? last + 1 : path;
    return last[0] && strcmp(last, ".") != 0 && !path_climbs(path);
}

static bool read_path(const struct task_place *place, struct task_value value)
{
    const char *path = place_bounded_text(place, value);
    if (!path)
        return false;
    if (!path_names_a_file(path))
        return refuse(place->no, REFUSAL_BAD_TASK, place->shown, "%s must name a file, without \"..\"", place->shown);
    return place_set_text(place, path);
}

static bool read_place(const struct task_place *place, struct task_value value)
{
    const char *path = place_bounded_text(place, value);
    if (!path)
        return false;
    if (path_climbs(path))
        return refuse(place->no, REFUSAL_BAD_TASK, place->shown, "%s must name a file, without \"..\"", place->shown);
    return place_set_text(place, path);
}

static bool read_image(const struct task_place *place, struct task_value value)
{
    const char *image = place_bounded_text(place, value);
    if (!image)
        return false;
    char words[IMAGE_NAME_WORDS];
    if (image_name_explain(image, words, sizeof(words)))
        return refuse(place->no, REFUSAL_BAD_TASK, place->shown, "%s: %s", place->shown, words);
    if (strcmp(image, "host") != 0 && (image[0] != '/' || path_climbs(image)))
        return refuse(place->no, REFUSAL_BAD_TASK, place->shown,
                      "%s must be \"host\" or an absolute path, without \"..\"", place->shown);
    return place_set_text(place, image);
}

static bool read_word(const struct task_place *place, struct task_value value)
{
    const char *text = place_text(place, value);
    if (!text)
        return false;
    if (!text_is_one_of(text, place->row->words))
        return refuse(place->no, REFUSAL_BAD_TASK, place->shown, "%s must be one of %s", place->shown,
                      place->row->words);
    return place_set_text(place, text);
}

bool place_set_handler_name(const struct task_place *place, const char **member, const char *name)
{
    if (!place_check_bounds(place, (double)strlen(name), " bytes"))
        return false;
    if (!handler_name_is_valid(slice_from_str(name)))
        return refuse(place->no, REFUSAL_BAD_NAME, place->shown,
                      "%s must be letters, digits, '_', '.' and '-', beginning with a letter", place->shown);
    *member = name;
    return true;
}

static bool read_handler_name(const struct task_place *place, struct task_value value)
{
    const char *text = place_text(place, value);
    return text && place_set_handler_name(place, place_member(place), text);
}

/* ---- numbers ------------------------------------------------------------------------ */

static bool read_integer(const struct task_place *place, struct task_value value)
{
    if (!task_value_is(value, JSON_DOC_INTEGER))
        return place_wrong_type(place, "a whole number");
    const int64_t n = value.at->integer;
    if (!place_check_bounds(place, (double)n, ""))
        return false;
    if (place->row->type == TASK_UINT)
        *(uint64_t *)place_member(place) = (uint64_t)n;
    else
        *(int64_t *)place_member(place) = n;
    return true;
}

static bool read_real(const struct task_place *place, struct task_value value)
{
    double n;
    if (!json_doc_number(value.at, &n))
        return place_wrong_type(place, "a number");
    if (!place_check_bounds(place, n, ""))
        return false;
    *(double *)place_member(place) = n;
    return true;
}

/* ---- objects ----------------------------------------------------------------------------- */

/* Where `key` stands in the object at `shown`; a stranger's key is cut and cleaned. */
static void show_key(const char *shown, const char *key, char *out, size_t size)
{
    size_t len = strnlen(shown, size - 1);
    memcpy(out, shown, len);
    if (len > 0 && len + 1 < size)
        out[len++] = '.';
    for (size_t i = 0; i < KEY_SHOWN_MAX && key[i] && len + 1 < size; i++)
        out[len++] = key[i] > ' ' && key[i] < 0x7f ? key[i] : '?';
    out[len] = '\0';
}

static bool check_required(const char *parent, struct task_value object, const char *shown, struct refusal *no)
{
    for (const struct task_row *row = NULL; (row = task_row_next_required(row));) {
        const char *key = row->path + (parent[0] ? strlen(parent) + 1 : 0);
        if (!task_row_is_in(row, parent) || task_value_get(object, key).at)
            continue;
        char missing[sizeof(no->field)];
        show_key(shown, key, missing, sizeof(missing));
        return refuse(no, REFUSAL_MISSING_FIELD, missing, "%s is missing", missing);
    }
    return true;
}

/* The nearest field beside it; else one of that very name elsewhere in a task. */
static bool refuse_unknown(const char *parent, const char *key, const struct task_place *place)
{
    struct nearest nearest = {.wanted = slice_from_str(key)};
    const size_t parent_len = parent[0] ? strlen(parent) + 1 : 0;
    char hint[NEAREST_TEXT_SIZE];
    for (size_t i = 0; i < task_row_count; i++)
        if (task_row_is_in(&task_rows[i], parent))
            nearest_offer_str(&nearest, task_rows[i].path + parent_len);
    for (size_t i = 0; i < task_row_count && !nearest_is_likely(&nearest); i++) {
        const char *dot = strrchr(task_rows[i].path, '.');
        if (dot && strcmp(dot + 1, key) == 0)
            nearest = (struct nearest){nearest.wanted, slice_from_str(task_rows[i].path), 0};
    }
    return refuse(place->no, REFUSAL_UNKNOWN_FIELD, place->shown, "a task has no field '%s'%s", place->shown,
                  nearest_text(&nearest, "", hint));
}

bool task_read_member(const struct task_place *place, const char *parent, const char *key, struct task_value value,
                      void *base)
{
    struct task_place member = {
        .row = task_row_find(parent, key), .base = base, .arena = place->arena, .no = place->no};
    show_key(place->shown, key, member.shown, sizeof(member.shown));
    return member.row ? task_read_value(&member, value) : refuse_unknown(parent, key, &member);
}

bool task_read_object(const struct task_place *place, const char *parent, struct task_value object, void *base)
{
    if (!task_value_is(object, JSON_DOC_OBJECT))
        return refuse(place->no, REFUSAL_WRONG_TYPE, place->shown, "%s must be an object",
                      place->shown[0] ? place->shown : "a task");
    for (struct task_values each = task_values_of(object); task_values_next(&each);) {
        const char *key = place_text(place, each.name);
        if (!key || !task_read_member(place, parent, key, each.value, base))
            return false;
    }
    return check_required(parent, object, place->shown, place->no);
}

static bool read_object(const struct task_place *place, struct task_value value)
{
    return task_read_object(place, place->row->path, value, place->base);
}

static bool read_metadata(const struct task_place *place, struct task_value value)
{
    return task_value_is(value, JSON_DOC_OBJECT) || place_wrong_type(place, "an object");
}

bool task_read_value(const struct task_place *place, struct task_value value)
{
    static bool (*const readers[TASK_TYPE_COUNT])(const struct task_place *, struct task_value) = {
        [TASK_OBJECT] = read_object,
        [TASK_NAME] = read_name,
        [TASK_TEXT] = read_text,
        [TASK_PATH] = read_path,
        [TASK_PLACE] = read_place,
        [TASK_IMAGE] = read_image,
        [TASK_DIRECTORY] = task_read_directory,
        [TASK_USER] = task_read_user,
        [TASK_VARIABLES] = task_read_variables,
        [TASK_WORD] = read_word,
        [TASK_OPEN_WORD] = read_handler_name,
        [TASK_HANDLER_NAME] = read_handler_name,
        [TASK_UINT] = read_integer,
        [TASK_INT] = read_integer,
        [TASK_REAL] = read_real,
        [TASK_PROMPT] = task_read_prompt,
        [TASK_MESSAGES] = task_read_messages,
        [TASK_FILES] = task_read_files,
        [TASK_EVAL_FILES] = task_read_eval_files,
        [TASK_SOLUTION_FILES] = task_read_solution_files,
        [TASK_SOLUTION_COMMANDS] = task_read_solution_commands,
        [TASK_FILE_TEXT] = task_read_file_text,
        [TASK_FILE_BASE64] = task_read_file_base64,
        [TASK_SOURCE] = task_read_source,
        [TASK_FILE_SOURCE] = task_read_file_source,
        [TASK_FILE_MODE] = task_read_file_mode,
        [TASK_SETUP] = task_read_setup,
        [TASK_STEPS] = task_read_steps,
        [TASK_FILE_LIST] = task_read_file_list,
        [TASK_COMMANDS] = task_read_commands,
        [TASK_REWARDS] = task_read_rewards,
        [TASK_GRANTS] = task_read_grants,
        [TASK_INIT_GRANTS] = task_read_init_grants,
        [TASK_BUILD_GRANTS] = task_read_build_grants,
        [TASK_EVAL_GRANTS] = task_read_eval_grants,
        [TASK_STATUSES] = task_read_statuses,
        [TASK_ANSWERS] = task_read_answers,
        [TASK_OPTIONS] = task_read_options,
        [TASK_FAIL_TO_PASS] = task_read_fail_to_pass,
        [TASK_PASS_TO_PASS] = task_read_pass_to_pass,
        [TASK_PROTECTED] = task_read_protected,
        [TASK_EXPECTED_TESTS] = task_read_expected_tests,
        [TASK_HIDDEN] = task_read_hidden,
        [TASK_ARTIFACTS] = task_read_artifacts,
        [TASK_EXCLUDE] = task_read_exclude,
        [TASK_COLLECT] = task_read_collect,
        [TASK_HANDLERS] = task_read_handlers,
        [TASK_TESTS] = task_read_tests,
        [TASK_JUDGE_FILES] = task_read_judge_files,
        [TASK_CRITERIA] = task_read_criteria,
        [TASK_CHOICES] = task_read_choices,
        [TASK_TOOLS] = task_read_tools,
        [TASK_TRAIN] = task_read_train,
        [TASK_SCRIPT] = task_read_script,
        [TASK_RECORDED] = task_read_recorded,
        [TASK_ARGUMENTS] = task_read_arguments,
        [TASK_METADATA] = read_metadata,
    };
    return readers[place->row->type](place, value);
}

/* ---- defaults ------------------------------------------------------------------------------ */

/* That a default keeps its own row's bounds is tested, not asked for at every task. */
static void set_default(const struct task_row *row, void *base)
{
    void *member = (char *)base + row->offset;
    switch (row->type) {
    case TASK_UINT: *(uint64_t *)member = strtoull(row->default_value, NULL, 10); break;
    case TASK_INT: *(int64_t *)member = strtoll(row->default_value, NULL, 10); break;
    case TASK_REAL: *(double *)member = strtod(row->default_value, NULL); break;
    case TASK_FILE_MODE: *(unsigned *)member = (unsigned)strtoul(row->default_value, NULL, 8); break;
    default: *(const char **)member = row->default_value;
    }
}

void task_read_defaults(const char *parent, void *base)
{
    for (size_t i = 0; i < task_row_count; i++)
        if (task_rows[i].default_value && task_row_is_in(&task_rows[i], parent))
            set_default(&task_rows[i], base);
}

/* Whether it is a field of the task itself, not of a list's element, and has a default. */
static bool is_own_default(const struct task_row *row) { return row->default_value && !strchr(row->path, '['); }

/* Read from the table once: a task of which nothing is said. */
static struct task untold;
static pthread_once_t untold_is_read = PTHREAD_ONCE_INIT;

static void read_untold(void)
{
    for (size_t i = 0; i < task_row_count; i++)
        if (is_own_default(&task_rows[i]))
            set_default(&task_rows[i], &untold);
}

void task_read_own_defaults(struct task *task)
{
    pthread_once(&untold_is_read, read_untold);
    *task = untold;
}
