/*
 * exchange_answer.h - what is said to a request, once: a whole answer, a stream that is pushed, or a source that is
 * read. In a callback of the server or at any time later, until `gone`.
 */
#ifndef SLUICE_COMMON_HTTP_EXCHANGE_ANSWER_H
#define SLUICE_COMMON_HTTP_EXCHANGE_ANSWER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/buffer.h"

struct exchange;

/* Has it been answered, be it by the server itself? */
bool exchange_is_answered(const struct exchange *exchange);
/* Before it is answered. False: out of memory, or the name or value cannot stand in a header. */
bool exchange_set_header(struct exchange *exchange, const char *name, const char *value);

/*
 * The whole answer, whose bytes are taken: *body is empty then. One whose `failed` is set is 500. A content type of
 * NULL is none. 503 and 429 get a Retry-After of 2 s where none was set.
 */
void exchange_answer(struct exchange *exchange, int status, const char *content_type, struct buffer *body);
/* An error in the owner's form (write_error of the plan). */
void exchange_refuse(struct exchange *exchange, int status, const char *words);

/* Begins an answer whose bytes come as they are sent: chunks, or up to the end of an HTTP/1.0 connection. */
void exchange_stream(struct exchange *exchange, int status, const char *content_type);
/*
 * One more piece. False: nothing of it is sent, since the client is unsent_max behind, held_max is reached, or there
 * is no memory; the caller drops the client or leaves the piece out.
 */
bool exchange_send(struct exchange *exchange, struct slice piece);
size_t exchange_unsent(const struct exchange *exchange);
/* What was sent is all. */
void exchange_end(struct exchange *exchange);

/*
 * An answer that lies elsewhere and is read as the client takes it. `read` puts up to `max` bytes from `at` on into
 * `into`, and returns how many: 0 when there are none yet, whereupon it is asked again after exchange_more;
 * EXCHANGE_READ_END; or EXCHANGE_READ_FAILED, which cuts the connection. `size` is of the whole, where it is known:
 * else EXCHANGE_SIZE_UNKNOWN.
 */
enum { EXCHANGE_READ_END = -1, EXCHANGE_READ_FAILED = -2 };
#define EXCHANGE_SIZE_UNKNOWN UINT64_MAX
void exchange_source(struct exchange *exchange, int status, const char *content_type, uint64_t size,
                     ssize_t (*read)(void *arg, uint64_t at, char *into, size_t max), void *arg);
void exchange_more(struct exchange *exchange);

/* Its client is sent away: the connection ends, and `gone` is called soon. */
void exchange_drop(struct exchange *exchange);

#endif
