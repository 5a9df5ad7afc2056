/*
 * json_body.h - a request's bytes as JSON, whatever a harness lets through: what no text here can hold (bytes that are
 * no UTF-8, halves of surrogate pairs, which JavaScript leaves where it cuts a string) becomes U+FFFD. Pure.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_JSON_BODY_H
#define SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_JSON_BODY_H

#include <jansson.h>

#include "common/base/fail.h"
#include "common/base/slice.h"

/* The caller's; NULL with -EINVAL and a sentence: it is no JSON or deeper than SAID_DEPTH_MAX; or -ENOMEM. */
json_t *json_body_parse(struct slice text, struct fail *fail);

#endif
