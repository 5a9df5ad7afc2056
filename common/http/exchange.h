/*
 * exchange.h - one request, as it came; how it is answered is exchange_answer.h's. It is the server's, and is there
 * from `heard` to the end of `gone` (http_server.h); so is whatever its functions return. While it waits for its answer
 * its connection sleeps, and costs no more than its head.
 */
#ifndef SLUICE_COMMON_HTTP_EXCHANGE_H
#define SLUICE_COMMON_HTTP_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buffer.h"

struct exchange;

enum { EXCHANGE_ADDRESS_SIZE = 64 };

/* As it came, but GET for HEAD: that is answered as GET is, and its body is left out. */
const char *exchange_method(const struct exchange *exchange);
bool exchange_is_head(const struct exchange *exchange);
/*
 * Decoded once, and UTF-8. It begins with a slash; no part of it is `.` or `..`, nor is any byte a control character.
 * An encoded slash is refused, or stands as a slash where the plan says so.
 */
const char *exchange_path(const struct exchange *exchange);
/* Path and query as they came: printable ASCII. */
const char *exchange_target(const struct exchange *exchange);
/* The value of the first of that name, decoded: UTF-8 without control characters but tabs and line ends; "" where it
 * has none. NULL: there is no such name. */
const char *exchange_query(const struct exchange *exchange, const char *name);
size_t exchange_query_count(const struct exchange *exchange, const char *name);

/* The value of the first header of that name, in any case of letters, without spaces around it; NULL: there is none. */
const char *exchange_header(const struct exchange *exchange, const char *name);
/* How many there are: of Host and Content-Length never two; of Authorization whoever reads it should ask. */
size_t exchange_header_count(const struct exchange *exchange, const char *name);
/* "192.0.2.1:5040", "[2001:db8::1]:5040", or "unix". */
void exchange_peer_address(const struct exchange *exchange, char ret[EXCHANGE_ADDRESS_SIZE]);

/* All of it, without its Content-Encoding (gzip and deflate; others are refused). Empty before `asked`. */
struct slice exchange_body(const struct exchange *exchange);
/* The caller's now, and no longer counted against the plan's held_max. */
struct buffer exchange_take_body(struct exchange *exchange);

/* The owner's own; NULL at first. */
void exchange_set_user(struct exchange *exchange, void *user);
void *exchange_user(const struct exchange *exchange);
/* Of its answer: 0 when there is none. */
int exchange_status(const struct exchange *exchange);
/* Bytes of the answer's body that went to the connection. */
uint64_t exchange_sent(const struct exchange *exchange);

#endif
