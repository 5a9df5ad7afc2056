#include "broker/simulate/shape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/prng.h"

enum unit { COUNT, SECONDS };
enum { KIND_GROUP, KIND_ROLLOUT, NAME_SIZE = 32 };

static const struct {
    const char *name;
    enum unit unit;
    double least, most;
} quantities[] = {
#define QUANTITY(name, unit, least, most, doc) {#name, unit, least, most},
#include "broker/simulate/quantities.def"
#undef QUANTITY
};

static const struct {
    const char *name, *text;
} presets[] = {
#define PRESET(name, text, doc) {#name, text},
#include "broker/simulate/presets.def"
#undef PRESET
};

/* ---- reading --------------------------------------------------------------------------- */

static bool read_unit(const char **at, double *factor)
{
    static const struct {
        const char *name;
        double factor;
    } units[] = {{"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}};
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (strncmp(*at, units[i].name, strlen(units[i].name)) == 0) {
            *at += strlen(units[i].name);
            *factor = units[i].factor;
            return true;
        }
    return false;
}

/* Digits and a dot, as strtod knows more; "8..30" begins with 8. */
static bool read_plain(const char **at, double *ret)
{
    char digits[24];
    size_t len = strspn(*at, "0123456789");
    if ((*at)[len] == '.' && (*at)[len + 1] != '.')
        len += 1 + strspn(*at + len + 1, "0123456789");
    if (!len || len >= sizeof(digits) || **at == '.')
        return false;
    memcpy(digits, *at, len);
    digits[len] = '\0';
    *ret = strtod(digits, NULL);
    *at += len;
    return true;
}

static int out_of_range(enum quantity q, struct fail *fail)
{
    return fail_set(fail, -EINVAL, "%s: must be from %g to %g%s", quantities[q].name, quantities[q].least,
                    quantities[q].most, quantities[q].unit == SECONDS ? " seconds" : "");
}

static int read_range(enum quantity q, const char *text, struct range *ret, struct fail *fail)
{
    const char *at = text, *name = quantities[q].name;
    const bool in_seconds = quantities[q].unit == SECONDS, is_lognormal = *at == '~';
    double low, high, low_unit = 1, high_unit = 1;
    at += is_lognormal;
    if (!read_plain(&at, &low))
        return fail_set(fail, -EINVAL, "%s: '%s' is neither N, A..B nor ~A..B", name, text);
    bool has_unit = in_seconds && read_unit(&at, &low_unit);
    bool is_pair = strncmp(at, "..", 2) == 0;
    high = low;
    high_unit = low_unit;
    if (is_pair && (at += 2, !read_plain(&at, &high)))
        return fail_set(fail, -EINVAL, "%s: '%s' is neither N, A..B nor ~A..B", name, text);
    if (is_pair && in_seconds && !read_unit(&at, &high_unit))
        high_unit = low_unit;
    else if (!has_unit)
        low_unit = high_unit;
    if (*at || (is_lognormal && !is_pair))
        return fail_set(fail, -EINVAL, "%s: '%s' is neither N, A..B nor ~A..B", name, text);
    *ret = (struct range){low * low_unit, high * high_unit, is_lognormal};
    if (ret->low < quantities[q].least || ret->high > quantities[q].most)
        return out_of_range(q, fail);
    if (ret->low > ret->high)
        return fail_set(fail, -EINVAL, "%s: '%s' begins above its end", name, text);
    if (is_lognormal && ret->low <= 0)
        return fail_set(fail, -EINVAL, "%s: '%s': a lognormal begins above 0", name, text);
    return 0;
}

static const char *expand(const char *text)
{
    for (size_t i = 0; i < sizeof(presets) / sizeof(*presets); i++)
        if (strcmp(text, presets[i].name) == 0)
            return presets[i].text;
    return text;
}

static int read_pair(struct shape *shape, bool *named, char *pair, struct fail *fail)
{
    char *value = strchr(pair, '=');
    if (!value)
        return fail_set(fail, -EINVAL, "'%s' is neither a file, a known distribution nor KEY=RANGE", pair);
    *value++ = '\0';
    for (enum quantity q = 0; q < QUANTITY_COUNT; q++) {
        if (strcmp(pair, quantities[q].name) != 0)
            continue;
        if (named[q])
            return fail_set(fail, -EINVAL, "%s: named twice", pair);
        named[q] = true;
        return read_range(q, value, &shape->ranges[q], fail);
    }
    return fail_set(fail, -EINVAL, "there is no quantity '%s'", pair);
}

int shape_parse(struct shape *shape, const char *text, struct fail *fail)
{
    bool named[QUANTITY_COUNT] = {0};
    int code = 0;
    *shape = (struct shape){0};
    for (enum quantity q = 0; q < QUANTITY_COUNT; q++)
        shape->ranges[q].low = shape->ranges[q].high = quantities[q].least;
    for (const char *at = expand(text); code == 0 && at; at = *at ? at + 1 : NULL) {
        char pair[128];
        size_t len = strcspn(at, ",");
        if (len >= sizeof(pair))
            return fail_set(fail, -EINVAL, "'%.40s...' is too long for KEY=RANGE", at);
        memcpy(pair, at, len);
        pair[len] = '\0';
        code = read_pair(shape, named, pair, fail);
        at += len;
    }
    if (code == 0 && !named[QUANTITY_sampled])
        code = fail_set(fail, -EINVAL, "sampled is missing: say how many tokens a call samples");
    return code;
}

/* ---- drawing ------------------------------------------------------------------------------ */

static double draw(const struct shape *shape, enum quantity q, uint64_t *prng)
{
    static const double z95 = 1.6448536269514722;
    const struct range *range = &shape->ranges[q];
    double value = range->low;
    if (range->is_lognormal && range->high > range->low)
        value = prng_lognormal(prng, sqrt(range->low * range->high), log(range->high / range->low) / (2 * z95));
    else if (range->high > range->low && quantities[q].unit == COUNT)
        value = range->low + floor(prng_uniform(prng) * (range->high - range->low + 1));
    else if (range->high > range->low)
        value = range->low + prng_uniform(prng) * (range->high - range->low);
    if (quantities[q].unit == COUNT)
        value = round(value);
    return value < quantities[q].least ? quantities[q].least : value > quantities[q].most ? quantities[q].most : value;
}

/* One that was recorded, of the group that this one is like; `rollout` is its number in the group. */
static const struct recorded *recorded_of(const struct shape *shape, uint64_t seed, uint64_t group, uint64_t rollout)
{
    uint64_t like = prng_of(seed, KIND_GROUP, group) % shape->group_count;
    size_t first = shape->groups[like];
    size_t end = like + 1 < shape->group_count ? shape->groups[like + 1] : shape->recorded_count;
    return &shape->recorded[first + rollout % (end - first)];
}

double shape_init_s(const struct shape *shape, uint64_t seed, uint64_t group)
{
    uint64_t prng = prng_of(seed, KIND_GROUP, group);
    return shape->recorded_count ? recorded_of(shape, seed, group, 0)->init_s : draw(shape, QUANTITY_init, &prng);
}

uint64_t shape_prompt(const struct shape *shape, uint64_t seed, uint64_t group)
{
    uint64_t prng = prng_mix(prng_of(seed, KIND_GROUP, group));
    return shape->recorded_count ? recorded_of(shape, seed, group, 0)->turns[0].context
                                 : (uint64_t)draw(shape, QUANTITY_prompt, &prng);
}

struct walk shape_walk(const struct shape *shape, uint64_t seed, uint64_t group, uint64_t rollout)
{
    struct walk walk = {.prng = prng_of(seed, KIND_ROLLOUT, group * 1024 + rollout)};
    if (shape->recorded_count) {
        walk.recorded = recorded_of(shape, seed, group, rollout);
        walk.turns = (uint32_t)walk.recorded->turn_count;
        walk.setup_s = walk.recorded->setup_s;
        walk.eval_s = walk.recorded->eval_s;
        return walk;
    }
    walk.context = shape_prompt(shape, seed, group);
    walk.turns = (uint32_t)draw(shape, QUANTITY_turns, &walk.prng);
    walk.setup_s = draw(shape, QUANTITY_setup, &walk.prng);
    walk.eval_s = draw(shape, QUANTITY_eval, &walk.prng);
    return walk;
}

bool shape_turn(const struct shape *shape, struct walk *walk, struct turn *ret)
{
    if (walk->turn == walk->turns)
        return false;
    if (walk->recorded) {
        const struct recorded_turn *turn = &walk->recorded->turns[walk->turn++];
        *ret = (struct turn){turn->context, turn->sampled, (double)turn->tool_s};
        return true;
    }
    *ret = (struct turn){.context = walk->context, .sampled = (uint64_t)draw(shape, QUANTITY_sampled, &walk->prng)};
    walk->context += ret->sampled;
    if (++walk->turn < walk->turns) {
        ret->tool_s = draw(shape, QUANTITY_tool, &walk->prng);
        walk->context += (uint64_t)draw(shape, QUANTITY_said, &walk->prng);
    }
    return true;
}
