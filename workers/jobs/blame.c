#include "workers/jobs/blame.h"

#include <assert.h>
#include <errno.h>

#include "common/base/fail.h"
#include "workers/sandbox/sandbox.h"

#define OF(outcome, fault)                                                                                             \
    {                                                                                                                  \
        OUTCOME_##outcome, FAULT_##fault                                                                               \
    }

static const struct row {
    int code;
    struct blame by[BLAME_WHO_COUNT];
} rows[BLAME_WHAT_COUNT] = {
#define BLAME(what, code, doc, nobody, task, agent, evaluator)                                                         \
    [BLAME_##what] = {code, {OF nobody, OF task, OF agent, OF evaluator}},
#include "workers/jobs/blame.def"
#undef BLAME
};

enum blame_what blame_what(int code, const struct sandbox *sandbox)
{
    if (code != -ECANCELED && sandbox && sandbox_breach(sandbox))
        return BLAME_LIMIT;
    for (unsigned what = 0; what < BLAME_WHAT_COUNT; what++)
        if (code < 0 && rows[what].code == -code)
            return (enum blame_what)what;
    return BLAME_SYSTEM;
}

struct blame blame_get(enum blame_who who, enum blame_what what)
{
    assert(who < BLAME_WHO_COUNT && what < BLAME_WHAT_COUNT);
    return rows[what].by[who];
}

int blame_inside(int code, struct fail *fail)
{
    static const int kept[] = {-ECANCELED, -ETIMEDOUT, -ENOEXEC, -EOWNERDEAD, -ENOTRECOVERABLE};
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        if (code == kept[i])
            return code;
    return code < 0 ? fail->code = -EIO : code;
}

bool blame_is_file_fault(int code)
{
    static const int faults[] = {ENOENT, ENOTDIR, EISDIR, EACCES, EPERM,   EROFS,        ENOSPC, EDQUOT,
                                 ELOOP,  EINVAL,  EEXIST, EFBIG,  ETXTBSY, ENAMETOOLONG, EXDEV};
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        if (code == -faults[i])
            return true;
    return false;
}
