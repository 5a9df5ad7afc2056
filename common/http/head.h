/*
 * head.h - what must be true of a request's head, beside what libmicrohttpd demands: that whoever stands between a
 * client and this server reads it as this server does. What could be read otherwise, so that the end of a request would
 * lie elsewhere or it would be for somebody else, is refused.
 */
#ifndef SLUICE_COMMON_HTTP_HEAD_H
#define SLUICE_COMMON_HTTP_HEAD_H

#include <stdbool.h>

#include "common/http/exchange_inside.h"

/* What is wrong with it, in words; NULL: nothing. `method` is where MHD has it. Values lose the spaces behind them. */
const char *head_check(const struct exchange *exchange, const char *method);
/*
 * Likewise, of what stands behind a body that came in chunks, where nobody sends any more lines. Of an end that arrives
 * in pieces MHD makes the head's last line once more, and it cannot be told whether there was another: *ret_is_last,
 * nothing that follows may be read.
 */
const char *head_check_trailer(const struct exchange *exchange, bool *ret_is_last);
/* Bytes that its body has: by Content-Length; 0: none; UINT64_MAX: it comes in chunks. */
uint64_t head_body_size(const struct exchange *exchange);
/* It awaits leave to send its body. */
bool head_expects(const struct exchange *exchange);

/* Whether it may be a header's value: it has no control character but tabs. */
bool head_is_text(const char *text);

#endif
