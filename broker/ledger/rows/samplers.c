/*
 * Rows of samplers and of their groups. A sampler's rule and counts are texts, "name=number" with blanks between, so
 * that another rule or count is no change of the tables: what is not there is 0, what nobody knows is left out.
 */
#include "broker/ledger/inner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- texts -------------------------------------------------------------------------------- */

struct number {
    char name[40];
    uint64_t *value;
};

enum { NUMBERS_MAX = 3 * SAMPLER_COUNTS + 16, TEXT_MAX = 64 * NUMBERS_MAX };

static void add(struct number *numbers, size_t *count, const char *kind, const char *name, uint64_t *value)
{
    struct number *number = &numbers[(*count)++];
    snprintf(number->name, sizeof(number->name), "%s%s", kind, name);
    number->value = value;
}

/* Every count of a row, by its name. */
static size_t counts_of(struct core_sampler *row, struct number numbers[NUMBERS_MAX])
{
    size_t count = 0;
    add(numbers, &count, "", "batched", &row->batched);
    add(numbers, &count, "", "unlisted", &row->unlisted);
    add(numbers, &count, "", "close_count", &row->close_count);
#define EACH(name, word)                                                                                               \
    add(numbers, &count, "since.", word, &row->since[SAMPLER_##name]);                                                 \
    add(numbers, &count, "total.", word, &row->total[SAMPLER_##name]);
#define VERDICT(name, word, doc)                                                                                       \
    EACH(name, word)                                                                                                   \
        add(numbers, &count, "recent.", word, &row->recent[SAMPLER_##name]);
#define COUNT(name, word, doc) EACH(name, word)
#include "broker/core/state/sampler.def"
#undef VERDICT
#undef COUNT
#undef EACH
    return count;
}

/* What of a row are flags goes through `flags`. */
enum { FLAGS = 6 };

static size_t rule_of(struct core_sampler *row, uint64_t flags[FLAGS], struct number numbers[NUMBERS_MAX])
{
    struct sampler_rule *rule = &row->rule;
    const struct number all[] = {{"groups", &rule->groups},
                                 {"staleness", &rule->staleness},
                                 {"window", &rule->window},
                                 {"ahead", &rule->ahead},
                                 {"over_sample", &rule->over_sample},
                                 {"early", &rule->early},
                                 {"replace_max", &rule->replace_max},
                                 {"has_staleness", &flags[0]},
                                 {"has_replace_max", &flags[1]},
                                 {"keeps_uniform", &flags[2]},
                                 {"cancels_surplus", &flags[3]},
                                 {"is_closing", &flags[4]},
                                 {"cancels", &flags[5]}};
    memcpy(numbers, all, sizeof(all));
    return sizeof(all) / sizeof(*all);
}

static void print(const struct number *numbers, size_t count, char text[TEXT_MAX])
{
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        if (*numbers[i].value)
            len += (size_t)snprintf(text + len, TEXT_MAX - len, "%s%s=%llu", len ? " " : "", numbers[i].name,
                                    (unsigned long long)*numbers[i].value);
}

/* "name=number" into the number of that name. */
static void read_one(const struct number *numbers, size_t count, const char *word, size_t len)
{
    for (size_t i = 0; i < count; i++) {
        const size_t name = strlen(numbers[i].name);
        if (name < len && word[name] == '=' && memcmp(word, numbers[i].name, name) == 0)
            *numbers[i].value = strtoull(word + name + 1, NULL, 10);
    }
}

static void read_all(const struct number *numbers, size_t count, struct slice text)
{
    char words[TEXT_MAX + 1];
    if (text.len > TEXT_MAX)
        return;
    snprintf(words, sizeof(words), "%.*s", SLICE_ARG(text));
    for (const char *at = words; *at;) {
        const size_t len = strcspn(at, " ");
        read_one(numbers, count, at, len);
        at += len + (at[len] == ' ');
    }
}

/* ---- writing ------------------------------------------------------------------------------- */

int ledger_apply_sampler(struct ledger *ledger, const struct effect *effect, int64_t stream, struct fail *fail)
{
    struct number numbers[NUMBERS_MAX];
    char rule[TEXT_MAX], counts[TEXT_MAX];
    if (!effect->present) {
        int code = ledger_do(ledger, LEDGER_DROP_ALL_SAMPLED, fail, NUMBER(stream));
        return code ? code : ledger_do(ledger, LEDGER_DROP_SAMPLER, fail, NUMBER(stream));
    }
    struct core_sampler row = *effect->sampler;
    uint64_t flags[FLAGS] = {row.rule.has_staleness,   row.rule.has_replace_max, row.rule.keeps_uniform,
                             row.rule.cancels_surplus, row.is_closing,           row.cancels};
    print(numbers, rule_of(&row, flags, numbers), rule);
    print(numbers, counts_of(&row, numbers), counts);
    return ledger_do(ledger, LEDGER_SET_SAMPLER, fail, NUMBER(stream), TEXT(row.trainer), NUMBER(row.submitted),
                     NUMBER(row.batch), TEXT(slice_from_str(rule)), TEXT(slice_from_str(counts)));
}

int ledger_apply_batch(struct ledger *ledger, const struct effect *effect, int64_t stream, struct fail *fail)
{
    return ledger_do(ledger, LEDGER_SET_BATCH, fail, NUMBER(stream), TEXT(effect->detail));
}

int ledger_apply_sampled(struct ledger *ledger, const struct effect *effect, int64_t stream, struct fail *fail)
{
    const struct core_sampled *row = effect->sampled;
    if (!effect->present)
        return ledger_do(ledger, LEDGER_DROP_SAMPLED, fail, NUMBER(stream), NUMBER(effect->seq));
    return ledger_do(ledger, LEDGER_SET_SAMPLED, fail, NUMBER(stream), NUMBER(row->number), TEXT(row->group),
                     NUMBER(row->state), NUMBER(row->verdict), NUMBER(row->first_seq), NUMBER(row->tokens),
                     NUMBER(row->oldest_version), NUMBER(row->released_ms), NUMBER(row->samples), NUMBER(row->ended),
                     NUMBER(row->scored), NUMBER(row->cancelled), NUMBER(row->replaced), REAL(row->least),
                     REAL(row->most), REAL(row->sum), NUMBER(row->is_low), NUMBER(row->is_forgotten));
}

/* ---- reading -------------------------------------------------------------------------------- */

static int no_sense(struct fail *fail)
{
    return fail_set(
        fail, -ENOMEM,
        "out of memory while reading the samplers of the ledger, or a row of one makes no sense: try it with "
        "more memory, then see docs/operations.md, a damaged ledger");
}

static bool tell_sampler(struct ledger *ledger, const struct ledger_reader *reader)
{
    enum ledger_statement all = LEDGER_ALL_SAMPLERS;
    struct number numbers[NUMBERS_MAX];
    uint64_t flags[FLAGS] = {0};
    struct core_sampler row = {.stream = ledger_slice(ledger, all, 0),
                               .trainer = ledger_slice(ledger, all, 1),
                               .submitted = (uint64_t)ledger_number(ledger, all, 2),
                               .batch = (uint64_t)ledger_number(ledger, all, 3)};
    read_all(numbers, rule_of(&row, flags, numbers), ledger_slice(ledger, all, 4));
    read_all(numbers, counts_of(&row, numbers), ledger_slice(ledger, all, 5));
    row.rule.has_staleness = flags[0];
    row.rule.has_replace_max = flags[1];
    row.rule.keeps_uniform = flags[2];
    row.rule.cancels_surplus = flags[3];
    row.is_closing = flags[4];
    row.cancels = flags[5];
    return reader->sampler(reader->context, &row, ledger_slice(ledger, all, 6));
}

static uint64_t number_at(struct ledger *ledger, int column)
{
    return (uint64_t)ledger_number(ledger, LEDGER_ALL_SAMPLED, column);
}

static bool tell_sampled(struct ledger *ledger, const struct ledger_reader *reader)
{
    enum ledger_statement all = LEDGER_ALL_SAMPLED;
    struct core_sampled row = {.stream = ledger_slice(ledger, all, 0),
                               .number = number_at(ledger, 1),
                               .group = ledger_slice(ledger, all, 2),
                               .state = number_at(ledger, 3),
                               .verdict = number_at(ledger, 4),
                               .first_seq = number_at(ledger, 5),
                               .tokens = number_at(ledger, 6),
                               .oldest_version = number_at(ledger, 7),
                               .released_ms = number_at(ledger, 8),
                               .samples = number_at(ledger, 9),
                               .ended = number_at(ledger, 10),
                               .scored = number_at(ledger, 11),
                               .cancelled = number_at(ledger, 12),
                               .replaced = number_at(ledger, 13),
                               .least = ledger_real(ledger, all, 14),
                               .most = ledger_real(ledger, all, 15),
                               .sum = ledger_real(ledger, all, 16),
                               .is_low = number_at(ledger, 17),
                               .is_forgotten = number_at(ledger, 18)};
    return reader->sampled(reader->context, &row);
}

static int tell_each(struct ledger *ledger, const struct ledger_reader *reader, enum ledger_statement all,
                     bool (*tell)(struct ledger *, const struct ledger_reader *), struct fail *fail)
{
    int code = ledger_ask(ledger, all, NULL, 0, fail);
    for (; code > 0; code = ledger_next(ledger, all, fail))
        if (!tell(ledger, reader))
            return no_sense(fail);
    return code;
}

int ledger_tell_samplers(struct ledger *ledger, const struct ledger_reader *reader, struct fail *fail)
{
    if (!reader->sampler)
        return 0;
    int code = tell_each(ledger, reader, LEDGER_ALL_SAMPLERS, tell_sampler, fail);
    return code ? code : tell_each(ledger, reader, LEDGER_ALL_SAMPLED, tell_sampled, fail);
}
