#include "workers/sandbox/proto/tier.h"

#include <string.h>

#define NEED(name) (1u << CHECK_##name)

static const struct {
    const char *word, *what, *holds, *lacks, *warning;
    uint32_t needs;
} tiers[] = {
#define TIER(name, word, needs, what, holds, lacks, warning) {word, what, holds, lacks, warning, needs},
#include "workers/sandbox/proto/tiers.def"
#undef TIER
};

const char *tier_word(enum tier tier) { return tier < TIER_COUNT ? tiers[tier].word : "none"; }
uint32_t tier_needs(enum tier tier) { return tiers[tier].needs; }

const char *tier_warning(enum tier tier) { return tier < TIER_COUNT ? tiers[tier].warning : ""; }
bool tier_has_namespaces(enum tier tier) { return tiers[tier].needs & NEED(namespaces); }
bool tier_has_root(enum tier tier) { return tier != TIER_landlock; }

bool tier_is_on_disk(enum tier tier)
{
    return tier == TIER_overlay_disk || tier == TIER_apptainer || tier == TIER_landlock;
}

bool tier_parse(const char *word, enum tier *ret)
{
    for (int i = 0; i < TIER_COUNT; i++)
        if (strcmp(tiers[i].word, word) == 0) {
            *ret = (enum tier)i;
            return true;
        }
    return false;
}

void tier_print_help(FILE *out)
{
    for (int i = 0; i < TIER_COUNT; i++)
        fprintf(out, "  %-23s %s\n", tiers[i].word, tiers[i].what);
}

void tier_print_markdown(FILE *out)
{
    fputs("| tier | what it is | what holds | what does not |\n|---|---|---|---|\n", out);
    for (int i = 0; i < TIER_COUNT; i++)
        fprintf(out, "| `%s` | %s | %s | %s |\n", tiers[i].word, tiers[i].what, tiers[i].holds, tiers[i].lacks);
}
