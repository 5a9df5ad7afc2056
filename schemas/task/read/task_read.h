/*
 * task_read.h - from JSON values to the members of struct task, by the rows of
 * task.def. What a value alone can break is refused here; what several fields
 * break together is task.c's. Lists and files are in task/read/lists.c.
 *
 * What a task holds lies in its arena, and the texts of defaults in the table: a reader
 * may meet its member set already, to a default, and sets it. A text is copied to the arena
 * first and looked at there, so that it is copied once.
 */
#ifndef SLUICE_SCHEMAS_TASK_TASK_READ_H
#define SLUICE_SCHEMAS_TASK_TASK_READ_H

#include "schemas/task/json/task_table.h"
#include "schemas/task/json/task_value.h"

/* A value on its way in: where it stands in the JSON, and whose member it becomes. */
struct task_place {
    const struct task_row *row;
    char shown[128]; /* "files[2].path" */
    void *base;      /* the struct that holds the row's member */
    struct arena *arena;
    struct refusal *no;
};

static inline void *place_member(const struct task_place *place) { return (char *)place->base + place->row->offset; }

/* Refusals; all return false. */
bool place_out_of_memory(const struct task_place *place);
bool place_wrong_type(const struct task_place *place, const char *wanted);

/* Against the row's min and max; `unit` is a word for the sentence, or "". */
bool place_check_bounds(const struct task_place *place, double value, const char *unit);
/* A string, in the arena; NULL with a refusal. */
const char *place_text(const struct task_place *place, struct task_value value);
/* So, within the row's bounds. */
const char *place_bounded_text(const struct task_place *place, struct task_value value);
/* Such a string that is an absolute path on the workers' nodes. */
const char *place_node_path(const struct task_place *place, struct task_value value);
/* The member becomes this text of the arena; true. */
bool place_set_text(const struct task_place *place, const char *text);
/* The member becomes the value's JSON, written as densely as possible. */
bool place_set_json(const struct task_place *place, const char **member, const json_t *json);
/* A text that must be a handler's name, within the row's bounds. */
bool place_set_handler_name(const struct task_place *place, const char **member, const char *name);

/* The object at `parent` (a path of task.def), which stands at `place`, into `base`. */
bool task_read_object(const struct task_place *place, const char *parent, struct task_value object, void *base);
/* One member of it. */
bool task_read_member(const struct task_place *place, const char *parent, const char *key, struct task_value value,
                      void *base);
bool task_read_value(const struct task_place *place, struct task_value value);
/* The defaults of all of a task's own fields, of which nothing is said. */
void task_read_own_defaults(struct task *task);
/* The defaults of the fields directly in `parent`, such as a list's element. */
void task_read_defaults(const char *parent, void *base);

bool task_read_prompt(const struct task_place *place, struct task_value value);
bool task_read_messages(const struct task_place *place, struct task_value value);
bool task_read_files(const struct task_place *place, struct task_value value);
bool task_read_eval_files(const struct task_place *place, struct task_value value);
bool task_read_solution_files(const struct task_place *place, struct task_value value);
bool task_read_solution_commands(const struct task_place *place, struct task_value value);
bool task_read_file_text(const struct task_place *place, struct task_value value);
bool task_read_file_base64(const struct task_place *place, struct task_value value);
bool task_read_file_source(const struct task_place *place, struct task_value value);
bool task_read_file_mode(const struct task_place *place, struct task_value value);
bool task_read_user(const struct task_place *place, struct task_value value);
bool task_read_directory(const struct task_place *place, struct task_value value);
bool task_read_variables(const struct task_place *place, struct task_value value);
bool task_read_setup(const struct task_place *place, struct task_value value);
bool task_read_steps(const struct task_place *place, struct task_value value);
bool task_read_file_list(const struct task_place *place, struct task_value value);
bool task_read_commands(const struct task_place *place, struct task_value value);
bool task_read_rewards(const struct task_place *place, struct task_value value);
bool task_read_grants(const struct task_place *place, struct task_value value);
bool task_read_build_grants(const struct task_place *place, struct task_value value);
bool task_read_source(const struct task_place *place, struct task_value value);
bool task_read_init_grants(const struct task_place *place, struct task_value value);
bool task_read_eval_grants(const struct task_place *place, struct task_value value);
bool task_read_tests(const struct task_place *place, struct task_value value);
bool task_read_judge_files(const struct task_place *place, struct task_value value);
bool task_read_criteria(const struct task_place *place, struct task_value value);
bool task_read_choices(const struct task_place *place, struct task_value value);
bool task_read_handlers(const struct task_place *place, struct task_value value);
bool task_read_options(const struct task_place *place, struct task_value value);
bool task_read_answers(const struct task_place *place, struct task_value value);
bool task_read_fail_to_pass(const struct task_place *place, struct task_value value);
bool task_read_pass_to_pass(const struct task_place *place, struct task_value value);
bool task_read_protected(const struct task_place *place, struct task_value value);
bool task_read_expected_tests(const struct task_place *place, struct task_value value);
bool task_read_hidden(const struct task_place *place, struct task_value value);
bool task_read_artifacts(const struct task_place *place, struct task_value value);
bool task_read_exclude(const struct task_place *place, struct task_value value);
bool task_read_collect(const struct task_place *place, struct task_value value);
bool task_read_statuses(const struct task_place *place, struct task_value value);
bool task_read_tools(const struct task_place *place, struct task_value value);
bool task_read_train(const struct task_place *place, struct task_value value);
bool task_read_script(const struct task_place *place, struct task_value value);
bool task_read_recorded(const struct task_place *place, struct task_value value);
bool task_read_arguments(const struct task_place *place, struct task_value value);

/* The n-th tool that is built in; NULL behind the last. */
const char *task_tool_built_in(size_t n);

/* For lists: checks type and count; zeroed room for `count` elements, never NULL on success; the
 * place of the i-th element. */
bool place_check_list(const struct task_place *place, struct task_value value);
bool place_make_list(const struct task_place *place, size_t count, size_t size, void *ret);
struct task_place place_of_element(const struct task_place *list, size_t i);

/* Reads what stands at `element` into the zeroed `into`. */
typedef bool (*element_reader)(const struct task_place *element, struct task_value value, void *into);
/* A list of elements of `size` bytes, each by `read`: *ret is the array, *count how many of them are read already. */
bool place_read_list(const struct task_place *place, struct task_value value, size_t size, element_reader read,
                     void *ret, size_t *count);

/* A list of texts of 1 to max bytes; of texts as `row` says. */
bool place_read_texts(const struct task_place *place, struct task_value value, double max, const char ***texts,
                      size_t *count);
bool place_read_each(const struct task_place *place, struct task_value value, const struct task_row *row,
                     const char ***texts, size_t *count);

/* What the fields of eval.swe, of eval.judge, of steps, of build and of score say together, each in its file. */
bool task_check_swe(const struct task *task, struct refusal *no);
bool task_check_judge(struct task *task, struct task_value limits, struct refusal *no);
bool task_check_steps(const struct task *task, struct refusal *no);
/* `json`: the whole task. */
bool task_check_build(struct task *task, struct task_value json, struct refusal *no);
bool task_check_score(const struct task *task, struct task_value score, struct refusal *no);

/* agent.kind, agent.tools and agent.script must agree; what is absent follows from what is given
 * (task/read/agent.c). */
bool task_settle_agent(struct task *task, struct refusal *no);

#endif
