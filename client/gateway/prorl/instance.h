/*
 * instance.h - what ProRL's instances hold, whatever form it has: columns of data frames, JSON in texts, numbers as
 * floats.
 */
#ifndef SLUICE_CLIENT_GATEWAY_PRORL_INSTANCE_H
#define SLUICE_CLIENT_GATEWAY_PRORL_INSTANCE_H

#include <jansson.h>
#include <stdbool.h>

#include "common/base/buffer.h"

enum { WHY_SIZE = 320 };

/* Why an instance can be no task: a sentence. Always false. */
bool why_not(char why[WHY_SIZE], const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A text that is not empty; NULL: there is none. */
const char *instance_text(const json_t *instance, const char *name);
/* The same, or a number as text, on the caller's memory; NULL: neither. */
const char *instance_word(const json_t *value, char *room, size_t size);
/* An object or list, also as JSON in a text; the caller's. NULL: there is none. */
json_t *instance_part(const json_t *instance, const char *name);
/* {"prompt": ...} or {"messages": [...]} into the task: of prompt, problem_statement, problem or question. */
bool instance_ask(const json_t *instance, json_t *task, char why[WHY_SIZE]);
/* reward_model.ground_truth, or ground_truth or answer; the caller's. NULL: none. */
json_t *instance_truth(const json_t *instance);
/* A task's id of what the instance calls itself, as ProRL names those without instance_id. */
void instance_name(const json_t *instance, const char *source, struct buffer *ret);

#endif
