#include "workers/engines/server/turn.h"

#include <stdlib.h>

const char *tell_role_word(enum tell_role role)
{
    static const char *const words[TELL_ROLES] = {"user", "tool"};
    return words[role];
}

struct token_scores token_scores_from(const struct token_scores *scores, size_t row)
{
    struct token_scores ret = *scores;
    if (ret.wanted)
        ret.wanted += row;
    ret.logprobs += row;
    if (ret.top_k) {
        ret.top_ids += row * ret.top_k;
        ret.top_logprobs += row * ret.top_k;
    }
    return ret;
}

bool token_scores_want(const struct token_scores *scores, size_t from, size_t i)
{
    return i >= from && (!scores->wanted || scores->wanted[i - from]);
}

void generation_finish(struct generation *generation)
{
    tokens_finish(&generation->sampled);
    free(generation->logprobs);
    free(generation->text);
    free(generation->spans);
    *generation = (struct generation){0};
}
