#define PCRE2_CODE_UNIT_WIDTH 8
#include "workers/evaluators/swe/log_parser.h"

#include "common/base/text.h"

#include <pcre2.h>

#include "workers/evaluators/swe/log_line.h"
#include "workers/evaluators/swe/parse_django.h"
#include "workers/evaluators/swe/parse_pytest.h"
#include "workers/evaluators/swe/parse_suites.h"

/* Steps of a line, of which there are more where it is longer; so many lines of a log may need more than they have. */
enum { MATCH_STEPS = 1 << 14, MATCH_STEPS_PER_BYTE = 32, MATCH_HEAP_KIB = 1 << 10, HARD_LINES_MAX = 64 };

static const struct log_parser parsers[] = {
#define PYTEST(name_) {.name = #name_, .parse = parse_##name_, .is_pytest = true},
#define FUNCTION(name_, total_) {.name = #name_, .parse = parse_##name_, .total = total_},
#define LINES(name_, pattern_) {.name = #name_, .pattern = pattern_, .is_stripped = true},
#define WHOLE_LINES(name_, pattern_) {.name = #name_, .pattern = pattern_},
#include "workers/evaluators/swe/log_parsers.def"
#undef PYTEST
#undef FUNCTION
#undef LINES
#undef WHOLE_LINES
};

const struct log_parser *log_parser_find(const char *name)
{
    for (size_t i = 0; i < sizeof(parsers) / sizeof(*parsers); i++)
        if (strcmp(parsers[i].name, name) == 0)
            return &parsers[i];
    return NULL;
}

/* ---- lines by a pattern ------------------------------------------------------------------------- */

/* What runners say of a test. */
static enum log_status status_of(struct slice word)
{
    static const struct {
        const char *word;
        enum log_status status;
    } rows[] = {{"PASS", LOG_PASSED},  {"PASSED", LOG_PASSED}, {"pass", LOG_PASSED},    {"passed", LOG_PASSED},
                {"ok", LOG_PASSED},    {"OK", LOG_PASSED},     {"✓", LOG_PASSED},       {".", LOG_PASSED},
                {"SKIP", LOG_SKIPPED}, {"skip", LOG_SKIPPED},  {"ignore", LOG_SKIPPED}, {"○", LOG_SKIPPED},
                {"↓", LOG_SKIPPED},    {"O", LOG_SKIPPED}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (slice_is(word, rows[i].word))
            return rows[i].status;
    return LOG_FAILED;
}

struct matcher {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
};

static void matcher_finish(struct matcher *matcher)
{
    pcre2_match_context_free(matcher->limits);
    pcre2_match_data_free(matcher->match);
    pcre2_code_free(matcher->code);
}

static bool matcher_init(struct matcher *matcher, const char *pattern)
{
    int error;
    size_t at;
    const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_DUPNAMES;
    *matcher = (struct matcher){
        .code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &error, &at, NULL)};
    matcher->match = matcher->code ? pcre2_match_data_create_from_pattern(matcher->code, NULL) : NULL;
    matcher->limits = pcre2_match_context_create(NULL);
    if (!matcher->match || !matcher->limits)
        return false;
    pcre2_set_heap_limit(matcher->limits, MATCH_HEAP_KIB);
    return true;
}

/* As pcre2_match. */
static int match(const struct matcher *matcher, struct slice line)
{
    pcre2_set_match_limit(matcher->limits, (uint32_t)(MATCH_STEPS + MATCH_STEPS_PER_BYTE * line.len));
    return pcre2_match(matcher->code, line.data, line.len, 0, PCRE2_ANCHORED, matcher->match, matcher->limits);
}

static struct slice group(const struct matcher *matcher, struct slice line, const char *name)
{
    const int number = pcre2_substring_number_from_name(matcher->code, (PCRE2_SPTR)name);
    const size_t *ends = pcre2_get_ovector_pointer(matcher->match) + (number > 0 ? 2 * number : 0);
    return number > 0 && ends[0] != PCRE2_UNSET ? slice_of(line.data + ends[0], ends[1] - ends[0])
                                                : slice_of(line.data, 0);
}

static void read_lines(const struct log_parser *parser, struct slice text, struct test_log *ret)
{
    struct matcher matcher;
    size_t hard = 0;
    ret->has_overflown |= !matcher_init(&matcher, parser->pattern);
    for (struct slice line; !ret->has_overflown && log_line_next(&text, &line);) {
        line = parser->is_stripped ? text_strip(line) : line;
        const int found = line.len > 0 ? match(&matcher, line) : 0;
        if (found > 0)
            test_log_put(ret, group(&matcher, line, "n"), status_of(group(&matcher, line, "s")));
        hard += found == PCRE2_ERROR_MATCHLIMIT;
        ret->has_overflown |= hard > HARD_LINES_MAX;
    }
    matcher_finish(&matcher);
}

void log_parser_read(const struct log_parser *parser, struct slice text, struct test_log *ret)
{
    if (parser->parse)
        parser->parse(text, ret);
    else
        read_lines(parser, text, ret);
}
