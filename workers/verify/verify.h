/*
 * verify.h - `sluice-verify`: are the tokens of trajectories what an engine says they are? Each sampled
 * token is scored anew by the engine, after exactly the ids before it, and compared with the recorded
 * log-probability; what was given is made again; masks, counts and the joints between turns are checked beside that.
 *
 * One thread, one loop; `parallel` fibers (lanes) each take the file's next line until none is left.
 */
#ifndef SLUICE_WORKERS_VERIFY_VERIFY_H
#define SLUICE_WORKERS_VERIFY_VERIFY_H

#include <stdio.h>

#include "common/cmdline/option.h"
#include "schemas/trajectory/trajectory.h"
#include "workers/engines/engine.h"

enum verify_status {
    VERIFY_GOOD = 0,
    VERIFY_WRONG = 1, /* an error was found, or the mean difference is beyond the tolerance */
    VERIFY_USAGE = 2,
    VERIFY_UNSCORED = 3 /* not everything could be scored: no engine, no file, a trace too long */
};

struct verify_options {
#define OPTION OPTION_FIELD
#include "workers/verify/options.def"
#undef OPTION
    const char *path; /* "-": stdin */
};

enum verify_status verify_run(const struct verify_options *options, FILE *out);

#endif
