/* base64.h - RFC 4648's base64, padded, no line breaks: how a task's JSON holds bytes. */
#ifndef SLUICE_SCHEMAS_TASK_BASE64_H
#define SLUICE_SCHEMAS_TASK_BASE64_H

#include "common/base/slice.h"

/* Bytes enough for the decoding of `len` digits. */
static inline size_t base64_room(size_t len) { return len / 4 * 3; }
/* Fills ret (base64_room bytes) and says how many; false: not base64. */
bool base64_decode(struct slice text, uint8_t *ret, size_t *ret_len);

#endif
