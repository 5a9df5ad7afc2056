/*
 * program_tests.h - `eval.tests` of the ways in which rows hold a program's tests (verifier_metadata.unit_tests), by
 * the rules of the importer of rows (client/python/sluice/importers/code_tests.py):
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

#include "common/base/fail.h"

/* The tests, the caller's; NULL with a sentence. *count: how many. `place` is the column's name. */
json_t *program_tests(const json_t *value, const char *place, size_t *count, struct fail *fail);

#endif
