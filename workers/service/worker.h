/*
 * worker.h - the shell all stages share: takes jobs from the lane, runs each in a fiber, keeps
 * results until they are acknowledged, and beats. One thread; it keeps nothing between jobs and
 * outlives the broker.
 *
 *     working --SIGTERM, lane.drain--> draining --grace--> leaving --> stopped
 * draining: takes no new job, ends what it has; stops early once nothing is left and every result
 *     is acknowledged. Told again, it keeps the earlier end.
 * leaving: what still runs is cancelled and given back (a result with outcome cancelled, so that
 *     it is handed out elsewhere at once); stops when that is done and acknowledged, or 5 s later.
 *     A second signal leaves at once: 0.5 s.
 * It leaves also when its cache (cache_watch.h) is not what it was, and then begins anew.
 * What is not acknowledged by then is not lost: the broker hands those jobs out again.
 */
#ifndef SLUICE_WORKERS_SERVICE_WORKER_H
#define SLUICE_WORKERS_SERVICE_WORKER_H

#include "common/cmdline/option.h"
#include "common/net/keys.h"
#include "schemas/messages/message.h"
#include "workers/agents/harnesses/harness_dirs.h"
#include "workers/engines/models/model_dir.h"
#include "workers/engines/template/encoding.h"
#include "workers/images/list.h"
#include "workers/images/names.h"
#include "workers/network/grants.h"
#include "workers/sandbox/sandbox.h"
#include "workers/sources/task_dirs.h"

/* Its command line, a field for each row of the table. */
struct worker_options {
#define OPTION OPTION_FIELD
#include "workers/service/options.def"
#undef OPTION
};

/* What it is to do: as it was told, and what follows from that. */
struct worker_plan {
    struct worker_options given; /* `broker` and `slots`, too, where nothing was given */
    enum stage stage;
    const struct key *key;
    unsigned port_first, port_last;
    const char *store, *cache; /* existing directories, absolute */
    const char *mount_point;   /* in the cache; NULL: none */
    const char *node_error;    /* what ended the one whose place this one took, to be told for a while; NULL: nothing */
    uint64_t cache_bytes;      /* what unpacked layers may take; 0: no limit */
    struct image_list images;  /* which ones tasks may name */
    struct image_names image_names;
    struct task_dirs task_dirs;       /* where they may take files from */
    struct harness_dirs harness_dirs; /* what works on tasks */
    struct grants grants;             /* what tasks may reach */
    struct tokenizers tokenizers;     /* for engines that they agree with */
    struct model_dirs model_dirs;     /* for engines that know ids alone */
    const char *sandbox;              /* the tier's word, or "none" */
    char sandbox_why[256];            /* in a sentence, why it is not the best; or "" */
    const char *search_key;           /* as in search_create */
};

struct worker;

/*
 * Takes the spawner (also when it fails), opens the sockets, takes over SIGTERM and SIGINT. Strings
 * of the plan must live as long. NULL with fail.
 */
struct worker *worker_open(const struct worker_plan *plan, struct spawner *spawner, struct fail *fail);
/*
 * Stops the spawner and all sandboxes. NULL-safe. False when a job's fiber would not end: the
 * worker's memory stays because that fiber points into it, and the process should end.
 */
bool worker_close(struct worker **worker);

const char *worker_get_id(const struct worker *worker);
const char *worker_get_lane(const struct worker *worker);

/*
 * How it came to an end: stopped by a signal or the broker; it can do no more work, as the spawner died; or the cache
 * is not what it was, all jobs were given back, and a new worker is to make one anew (worker_node_error says what
 * happened).
 */
enum worker_end { WORKER_STOPPED, WORKER_BROKEN, WORKER_TO_BEGIN_ANEW };
enum worker_end worker_run(struct worker *worker);
const char *worker_node_error(const struct worker *worker);

#endif
