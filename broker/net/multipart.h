/*
 * multipart.h - messages to the broker are one frame: whoever sends more and more is cut off as it is read.
 *
 * libzmq keeps the frames of a message until its last one has come, 64 bytes for each, and neither ZMQ_MAXMSGSIZE
 * nor a high-water mark counts them: two bytes of an empty frame on the wire cost 64 of memory, faster than anybody
 * who looks now and then could notice. So accept and recv of this program stand before the C library's. They follow
 * the frames of each connection that came in by a listening socket, while libzmq reads them, and end it where a message
 * has more than MULTIPART_MAX frames, or those before its last hold MULTIPART_BYTES_MAX, or the peer speaks a ZMTP
 * older than 3. Fewer are let through, to be refused in words.
 *
 * Those that the broker makes itself, its lanes, are followed once multipart_follow_own was called, but for what a
 * thread connects to that has called multipart_pass_over: name services have protocols of their own.
 *
 * Under CURVE frames are sealed, and their number is bounded by their bytes (conn_limit.h).
 */
#ifndef SLUICE_BROKER_NET_MULTIPART_H
#define SLUICE_BROKER_NET_MULTIPART_H

#include <stdint.h>

enum { MULTIPART_MAX = 16, MULTIPART_BYTES_MAX = 1 << 20 };

/* Before the first connection is made. */
void multipart_follow_own(void);
void multipart_pass_over(void);
/* How many connections were cut off since the start. Any thread. */
uint64_t multipart_cuts(void);

#endif
