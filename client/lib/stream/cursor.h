/* cursor.h - positions in streams, kept in files. */
#ifndef SLUICE_CLIENT_LIB_STREAM_CURSOR_H
#define SLUICE_CLIENT_LIB_STREAM_CURSOR_H

#include "client/lib/stream/stream.h"

/*
 * `next`, `last` and the broker's start (`epoch`, `start_id`) of a stream as a file of one JSON object. Written
 * whole, to a file beside it that then takes its name, so that there is always one that is good.
 */
int cursor_read(struct sluice_client *client, struct stream *stream); /* 0 too when there is none */
int cursor_write(struct sluice_client *client, struct stream *stream);

#endif
