/*
 * trajectory_view.h - a trajectory message as struct sluice_trajectory: texts end in NUL, the
 * record is decoded, and the view owns all of it. A view is used again and again.
 */
#ifndef SLUICE_CLIENT_LIB_STREAM_TRAJECTORY_VIEW_H
#define SLUICE_CLIENT_LIB_STREAM_TRAJECTORY_VIEW_H

#include "client/sluice.h"
#include "client/lib/stream/verdict_view.h"
#include "schemas/trajectory/trajectory.h"

struct trajectory_view {
    struct sluice_trajectory out;
    struct record record;
    bool has_record;
    char *texts; /* of the message; the record's are in the record */
    struct sluice_trace *traces;
    struct sluice_turn *turns;         /* of all traces, one after the other */
    struct sluice_sampling *samplings; /* of all turns, likewise */
    struct sluice_span *spans;         /* likewise */
    struct sluice_column *columns;     /* of all traces, likewise */
    struct sluice_stretch *stretches;  /* likewise */
    struct sluice_message *messages;
    struct sluice_sandbox sandbox;
    struct sluice_breach *breaches;
    struct sluice_tamper tamper;
    struct sluice_touched *touched;
    struct sluice_metric *metrics; /* the verdict's and those noted; NULL where none were */
    struct verdict_view verdict;
};

/* What the view held before is gone. False with a refusal (MALFORMED also when out of memory). */
bool trajectory_view_read(struct trajectory_view *view, const struct msg_trajectory *message, struct refusal *no);
void trajectory_view_finish(struct trajectory_view *view);

#endif
