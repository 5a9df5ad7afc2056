#include "client/gateway/runs/run_base.h"

#include <stdio.h>
#include <sys/random.h>

#include "common/digest/digest.h"

enum { DIGITS = 32 };

/* Of one that nobody can take over: no other is of its name. */
static bool add_chance(struct digest *digest)
{
    uint8_t bits[16];
    const bool is_random = getrandom(bits, sizeof(bits), 0) == (ssize_t)sizeof(bits);
    digest_add(digest, slice_of(bits, sizeof(bits)));
    return is_random;
}

bool run_base(const struct run_plan *plan, char ret[HAD_NAME_SIZE])
{
    char text[DIGEST_SIZE];
    bool is_made = true;
    struct digest *digest = digest_begin();
    if (!digest)
        return false;
    digest_add_text(digest, caller_mark(plan->identity->caller));
    digest_add_number(digest, plan->id.len);
    digest_add(digest, plan->id);
    digest_add(digest, plan->content);
    if (!plan->takes_over)
        is_made = add_chance(digest);
    if (!digest_end(&digest, text) || !is_made)
        return false;
    snprintf(ret, HAD_NAME_SIZE, "%s-%.*s", plan->prefix, DIGITS, text + strlen("sha256:"));
    return true;
}
