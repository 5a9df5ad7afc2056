/*
 * row.h - a row of NeMo Gym's as a task. What it asks stands in responses_create_params; what it holds beside says how
 * the reply is judged:
 *
 *   task                                  a task of ours, an object or its JSON text, by itself or in extra_info,
 *                                         metadata or env_extras
 *   verifier_metadata.unit_tests          code
 *   options and expected_answer           choice; grading_mode and template_metadata say where the letter stands
 *   expected_answer                       math
 *
 * The last three are those of the importer (client/python/sluice/importers/nemo_gym.py). Of responses_create_params
 * temperature, top_p and max_output_tokens count, also for a task that says others; its input is the prompt where a
 * task has none, and its tools are the agent's where a task names none.
 */
#ifndef SLUICE_CLIENT_GATEWAY_GYM_ROW_H
#define SLUICE_CLIENT_GATEWAY_GYM_ROW_H

#include <jansson.h>

#include "common/base/fail.h"

/* The task, the caller's; NULL with a sentence that begins with the column's name. */
json_t *row_task(const json_t *row, struct fail *fail);
/* The same of a request alone, which nothing judges. `name` is the task's. */
json_t *row_request_task(const json_t *params, const char *name, struct fail *fail);
/* One turn of a loop of the caller's, for a session. */
json_t *row_session_task(const json_t *params, struct fail *fail);

#endif
