/*
 * program_tests.h - the ways in which rows hold a program's tests, by the rules of the importer of rows
 * (client/python/sluice/importers/code_tests.py):
 *
 *   {"inputs": [...], "outputs": [...], "fn_name": NAME}
 *   {"assert_case": [...]}
 *   [{"input": ..., "output": ..., "fn_name" or "testtype": ...}], or {"test_cases": that}
 *
 * each as it is, or as JSON in a text.
 */
#ifndef SLUICE_CLIENT_GATEWAY_BODIES_PROGRAM_TESTS_H
#define SLUICE_CLIENT_GATEWAY_BODIES_PROGRAM_TESTS_H

#include <jansson.h>
#include <stdbool.h>

#include "common/base/fail.h"

/* The task is judged by them, in the time that they may take. False with a sentence; `place` is the column's name. */
bool program_tests_judge(const json_t *value, const char *place, json_t *task, struct fail *fail);

#endif
