#include "schemas/task/read/task_read.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/text.h"
#include "schemas/task/evaluators.h"
#include "schemas/task/json/task_json.h"

bool task_grant_is_valid(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    size_t len = strnlen(name, TASK_GRANT_SIZE);
    return len > 0 && len < TASK_GRANT_SIZE && strspn(name, allowed) == len && name[0] >= 'a';
}

static bool samples_nothing(const struct task *task)
{
    return strcmp(task->kind, "noop") == 0 || strcmp(task->agent_kind, "none") == 0 ||
           strcmp(task->agent_kind, "replay") == 0 || strcmp(task->agent_kind, "oracle") == 0 ||
           strcmp(task->agent_engine, "none") == 0;
}

bool task_needs_engine(const struct task *task) { return !samples_nothing(task); }

bool task_is_shaped(const struct task *task)
{
    return task->shaping.max_tokens > 0 || strcmp(task->shaping.truncated, "filter") == 0;
}

/* ---- what several fields say together ------------------------------------------------ */

static bool check_messages(const struct task *task, struct refusal *no)
{
    if (task->message_count == 0)
        return task->step_count > 0 || samples_nothing(task) || strcmp(task->agent_kind, TASK_SESSION) == 0 ||
               refuse(no, REFUSAL_MISSING_FIELD, "prompt", "prompt is missing: give one of prompt, messages and steps");
    if (strcmp(task->messages[task->message_count - 1].role, "user") != 0)
        return refuse(no, REFUSAL_BAD_TASK, "messages", "the last of messages must be the user's");
    return true;
}

static bool check_shaping(const struct task *task, struct refusal *no)
{
    const struct task_shaping *shaping = &task->shaping;
    static const char buffer[] = "shaping.buffer_tokens";
    if (shaping->max_tokens == 0)
        return shaping->buffer_tokens == 0 ||
               refuse(no, REFUSAL_BAD_TASK, buffer, "%s goes with shaping.max_tokens, and this task has none", buffer);
    if (shaping->buffer_tokens == 0)
        return refuse(no, REFUSAL_MISSING_FIELD, buffer, "%s is missing; shaping.max_tokens requires it", buffer);
    if (shaping->buffer_tokens > shaping->max_tokens)
        return refuse(no, REFUSAL_TOO_LARGE, buffer, "%s must be at most shaping.max_tokens, %llu", buffer,
                      (unsigned long long)shaping->max_tokens);
    return strcmp(task->eval_kind, "none") != 0 || strcmp(task->kind, "noop") == 0 ||
           refuse(no, REFUSAL_BAD_TASK, "shaping.max_tokens",
                  "shaping.max_tokens changes a reward, and eval.kind none gives none");
}

static bool step_has_solution(const struct task_step *step)
{
    return step->solution.answer || step->solution.commands.count > 0 || step->solution.files.count > 0;
}

bool task_has_solution(const struct task *task)
{
    for (size_t i = 0; i < task->step_count; i++)
        if (step_has_solution(&task->steps[i]))
            return true;
    return task->solution_answer || task->solution_command_count > 0 || task->solution_file_count > 0 ||
           (task_evaluator_has(task, TASK_EVALUATOR_HAS_ANSWER) && (task->eval_answer || task->eval_answer_count > 0));
}

static bool check_solution(const struct task *task, struct refusal *no)
{
    return strcmp(task->agent_kind, "oracle") != 0 || strcmp(task->kind, "noop") == 0 || task_has_solution(task) ||
           refuse(no, REFUSAL_MISSING_FIELD, "solution",
                  "solution is missing; agent.kind oracle requires it, unless eval.kind is math, choice or exact");
}

/* ---- the whole ------------------------------------------------------------------------- */

static bool refuse_json(const json_error_t *error, struct refusal *no)
{
    enum refusal_reason reason = REFUSAL_MALFORMED;
    if (!error->text[0]) /* what jansson says when a container cannot be allocated */
        return refuse(no, REFUSAL_TOO_LARGE, "", "no memory to read the task's JSON");
    switch (json_error_code(error)) {
    case json_error_invalid_utf8:
    case json_error_null_character:
    case json_error_null_byte_in_key: reason = REFUSAL_NOT_UTF8; break;
    case json_error_duplicate_key: reason = REFUSAL_DUPLICATE_FIELD; break;
    case json_error_numeric_overflow:
    case json_error_stack_overflow:
    case json_error_out_of_memory: reason = REFUSAL_TOO_LARGE; break;
    default: break;
    }
    return refuse(no, reason, "", "the task's JSON cannot be read at byte %d: %s", error->position, error->text);
}

/*
 * What jansson's reading costs goes by values and names, of which there is at most one more than there are of these
 * marks outside of texts.
 */
static size_t count_marks(struct slice json)
{
    size_t count = 0;
    bool is_text = false;
    for (size_t i = 0; i < json.len; i++) {
        uint8_t c = json.data[i];
        if (c == '"')
            is_text = !is_text;
        else if (is_text)
            i += c == '\\';
        else
            count += c == ',' || c == ':' || c == '[' || c == '{';
    }
    return count;
}

static bool refuse_values(struct refusal *no)
{
    return refuse(no, REFUSAL_TOO_LARGE, "", "a task's JSON has more than %d values and names", TASK_VALUES_MAX);
}

/* A task's JSON as it is read; `again` holds that of an uncommon form. */
struct loaded {
    struct json_doc doc;
    char *again;
};

static void unload(struct loaded *loaded)
{
    json_doc_finish(&loaded->doc);
    free(loaded->again);
}

_Static_assert((int)TASK_LEVELS_MAX == (int)JSON_DOC_LEVELS_MAX, "what is read and what is said");

/* Jansson says why it is no JSON, or writes it in the common form. In a worker this happens on a small stack. */
static bool load_uncommon(struct slice json, struct loaded *ret, struct refusal *no)
{
    json_error_t error;
    if (count_marks(json) >= TASK_VALUES_MAX)
        return refuse_values(no);
    if (!text_is_shallow(json, TASK_LEVELS_MAX))
        return refuse(no, REFUSAL_TOO_LARGE, "", "a task's JSON has more than %d levels", TASK_LEVELS_MAX);
    json_t *read = json_loadb(json.data ? (const char *)json.data : "", json.len, JSON_REJECT_DUPLICATES, &error);
    if (!read)
        return refuse_json(&error, no);
    ret->again = json_dumps(read, JSON_COMPACT);
    json_decref(read);
    json_doc_finish(&ret->doc);
    return (ret->again && json_doc_parse(slice_from_str(ret->again), &ret->doc, NULL) == 0) ||
           refuse(no, REFUSAL_TOO_LARGE, "", "no memory to read the task's JSON");
}

static bool load(struct slice json, struct loaded *ret, struct refusal *no)
{
    if (json.len > TASK_BYTES_MAX)
        return refuse(no, REFUSAL_TOO_LARGE, "", "a task is %zu bytes; the maximum is %d", json.len, TASK_BYTES_MAX);
    const int error = task_json_read(json, TASK_VALUES_MAX, &ret->doc);
    if (error == -E2BIG)
        return refuse_values(no);
    return error == 0 || load_uncommon(json, ret, no);
}

static bool read_task(struct task *task, struct task_value json, struct refusal *no)
{
    const struct task_place place = {.arena = &task->arena, .no = no};
    return task_read_object(&place, "", json, task) && task_settle_agent(task, no) && check_messages(task, no) &&
           task_check_evaluator(task, no) && task_check_judge(task, task_value_get(json, "limits"), no) &&
           task_check_swe(task, no) && task_check_steps(task, no) && check_solution(task, no) &&
           check_shaping(task, no) && task_check_build(task, json, no) &&
           task_check_score(task, task_value_get(json, "score"), no);
}

/* The room that a task of this many bytes usually takes: its texts, and the lists of them. A long text gets its own. */
static size_t guess_room(size_t json_len)
{
    enum { SHORT = 4096 };
    return sizeof(struct task) + (json_len < SHORT ? json_len + json_len / 4 : SHORT) + 256;
}

static struct task *make_task(size_t json_len)
{
    struct arena arena = {0};
    struct task *task = arena_reserve(&arena, guess_room(json_len)) ? arena_alloc(&arena, sizeof(*task)) : NULL;
    if (!task)
        return NULL;
    task_read_own_defaults(task);
    task->arena = arena;
    return task;
}

struct task *task_parse(struct slice json, struct refusal *no)
{
    struct loaded loaded = {0};
    const bool is_loaded = load(json, &loaded, no);
    struct task *task = is_loaded ? make_task(json.len) : NULL;
    if (is_loaded && !task)
        refuse(no, REFUSAL_TOO_LARGE, "", "no memory to hold the task");
    if (task && !read_task(task, task_json_root(&loaded.doc), no)) {
        task_destroy(task);
        task = NULL;
    }
    unload(&loaded);
    return task;
}

void task_destroy(const struct task *task)
{
    if (!task)
        return;
    struct arena arena = task->arena; /* the task itself lies in it */
    arena_finish(&arena);
}
