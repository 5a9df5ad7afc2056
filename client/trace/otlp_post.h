/* otlp_post.h - one request to a collector, and what is to be done after it. */
#ifndef SLUICE_CLIENT_TRACE_OTLP_POST_H
#define SLUICE_CLIENT_TRACE_OTLP_POST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/fail.h"
#include "common/base/slice.h"

struct otlp_post; /* a connection that is kept; of one thread */

enum otlp_result { OTLP_SENT, OTLP_AGAIN, OTLP_FAILED };

/* `ends`: once true, a request is broken off. NULL with a sentence. */
struct otlp_post *otlp_post_create(const char *url, const atomic_bool *ends, struct fail *fail);
void otlp_post_destroy(struct otlp_post **post);
/* fail: why not, in words. *ret_retry_ms of OTLP_AGAIN: as the collector said; -1: it did not. */
enum otlp_result otlp_post_send(struct otlp_post *post, struct slice body, int64_t *ret_retry_ms, struct fail *fail);

#endif
