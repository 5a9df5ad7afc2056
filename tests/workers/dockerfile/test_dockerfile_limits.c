/* Dockerfiles and patterns made to be too much: each is refused by its line, and soon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/buffer.h"
#include "common/base/cleanup.h"
#include "workers/dockerfile/glob.h"
#include "workers/dockerfile/stages.h"

enum { SOON_MS = 5000 }; /* of processor time, with sanitizers; without limits each would take minutes, or all memory */

static int64_t spent_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void repeat(struct buffer *out, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        buffer_append_str(out, text);
}

static int find_base(void *arg, const char *name, struct image_config *ret, struct fail *fail)
{
    (void)arg, (void)name, (void)ret, (void)fail;
    return 0;
}

static int work_out(struct slice text, struct fail *fail)
{
    const struct build_sources sources = {.find_base = find_base};
    AUTO_FREE struct build_stages *stages = calloc(1, sizeof(*stages));
    struct dockerfile dockerfile;
    int code = dockerfile_parse(text, &dockerfile, fail);
    if (code == 0)
        code = build_stages_make(&dockerfile, &sources, stages, fail);
    build_stages_finish(stages);
    dockerfile_finish(&dockerfile);
    return code;
}

/* Takes the text. `words` NULL: it is not refused. */
static void expect(struct buffer *text, const char *words)
{
    struct fail fail = {0};
    const int64_t began_ms = spent_ms();
    int code = work_out(buffer_peek(text), &fail);
    if (code != (words ? -EINVAL : 0) || !strstr(fail.text, words ? words : ""))
        fail_msg("%d: %s", code, fail.text);
    const int64_t took_ms = spent_ms() - began_ms;
    if (took_ms > SOON_MS)
        fail_msg("%zu bytes took %d ms", text->len, (int)took_ms);
    buffer_finish(text);
}

/* Each: what comes before, what is repeated how often, what comes behind. */
static void expect_of(const char *before, size_t count, const char *repeated, const char *behind, const char *words)
{
    struct buffer text = {0};
    buffer_append_str(&text, before);
    repeat(&text, count, repeated);
    buffer_append_str(&text, behind);
    expect(&text, words);
}

static void a_megabyte_of_anything_is_read_or_refused_soon(void **state)
{
    (void)state;
    expect_of("", 100000, "# comment\n", "FROM a\n", NULL);
    expect_of("FROM a\nRUN x \\\n", 500000, "#\n", "y\n", NULL);
    expect_of("FROM a\nRUN ", 1 << 20, "x", "", "line 2: RUN of more than 131071 bytes");
    expect_of("FROM a\nRUN \\\n", 60000, "some words and \\\n", "", "line 2: more than 512 words");
    expect_of("FROM a\nRUN [\"", 1 << 20, "x", "\"]\n", "line 2: RUN of more than 131071 bytes");
    expect_of("FROM a\nRUN <<E\n", 20000, "a line of the heredoc, which is long enough to have all come to a MiB\n",
              "E\n", "line 2: RUN of more than 131071 bytes");
    expect_of("FROM a\nRUN <<E\n", 1 << 20, "\n", "", "line 2: the heredoc E has no end");
    expect_of("FROM ", 1 << 20, "x", "", "line 1: FROM: it is longer than 65536 bytes when expanded");
    expect_of("", 1 << 20, "X", " x", "line 1: there is no instruction XXXX");
    expect_of("", 1 << 20, " ", "", "it has no instructions");
    expect_of("# escape=", 1 << 20, "x", "", "line 1: escape must be");
    expect_of("", 60000, "# syntax=docker\n", "FROM a", NULL);
}

static void too_many_of_anything_are_refused_by_their_line(void **state)
{
    (void)state;
    expect_of("", 10000, "FROM a\n", "", "line 1025: more than 1024 instructions");
    expect_of("", 65, "FROM a\n", "", "line 65: more than 64 stages");
    expect_of("FROM a\n", 10000, "RUN x\n", "", "line 1025: more than 1024 instructions");
    expect_of("FROM a\nCOPY", 100000, " x", " /y/", "line 2: more than 512 words");
    expect_of("FROM a\nRUN", 100000, " --x", " y", "line 2: more than 512 words");
    expect_of("FROM a\nRUN [\"x\"", 100000, ",\"x\"", "]", "line 2: more than 512 words");
    expect_of("FROM a\nCOPY", 300, " x", " /y/", "line 2: more than 256 sources");
    expect_of("FROM a\nCOPY", 9, " <<E", " /y/\nE\nE\nE\nE\nE\nE\nE\nE\nE\n", "line 2: more than 8 heredocs");
    expect_of("FROM a\nENV", 200, " A=", "\n", NULL);
}

static void variables_within_variables_come_to_an_end(void **state)
{
    (void)state;
    struct buffer closed = {0};
    buffer_append_str(&closed, "FROM a\n\nENV A=");
    repeat(&closed, 100000, "${X:-");
    repeat(&closed, 100000, "}");
    expect(&closed, "line 3: ENV: more than 8 levels of ${}");
    expect_of("FROM a\nENV A=", 200000, "${X:-", "\n", "line 2: ENV: ${ without its }");
    expect_of("FROM a\nENV A=", 200000, "${X:+$", "\n", "line 2: ENV: ${ without its }");
    expect_of("FROM a\nENV A=", 400000, "$X", "\n", NULL);
    expect_of("FROM a\nENV A=", 100000, "${", "\n", "line 2: ENV: ${ without its }");
}

#define A_THOUSAND_AND_24                                                                                              \
    "FROM a\nENV A=0123456789012345678901234567890123456789012345678901234567890123\n"                                 \
    "ENV B=$A$A$A$A$A$A$A$A$A$A$A$A$A$A$A$A\n"

/* 35 bytes come to 56 KiB. */
static void what_variables_come_to_has_a_limit(void **state)
{
    (void)state;
    expect_of(A_THOUSAND_AND_24 "ENV C=", 6, "$B", "\n", NULL);
    expect_of(A_THOUSAND_AND_24 "ENV C=", 6, "$B", "\nENV D=$B\n",
              "line 5: ENV: more than 128 variables or 8192 bytes");
    expect_of(A_THOUSAND_AND_24 "USER ", 65, "$B", "\n", "line 4: USER: it is longer than 65536 bytes when expanded");
    expect_of(A_THOUSAND_AND_24 "ENV C=$B$B$B$B$B$B\n", 900, "COPY <<E /x\n$C$C$C$C$C$C$C$C$C$C\nE\n", "",
              "line 821: with its variables, the Dockerfile is longer than 16777216 bytes");
    expect_of(A_THOUSAND_AND_24 "COPY x /y/", 4, "$B", "\n", "line 4: COPY: a path of more than 4095 bytes");
    expect_of(A_THOUSAND_AND_24 "COPY ", 4, "$B", " /y\n", "line 4: COPY: a path of more than 4095 bytes");
    expect_of(A_THOUSAND_AND_24, 1000, "WORKDIR $B$B$B\n", "", "line 5: WORKDIR: a path of more than 4095 bytes");
    expect_of("FROM a\n", 1000, "WORKDIR 0123456789\n", "", "line 374: WORKDIR: a path of more than 4095 bytes");
}

/* A line of many words for each of many lines, as large as a task's Dockerfile may be. */
static void what_is_quadratic_ends_soon(void **state)
{
    (void)state;
    struct buffer flags = {0};
    for (int i = 0; i < 60; i++)
        buffer_printf(&flags, "FROM a AS stage%d\n", i);
    for (int i = 0; i < 60; i++) {
        buffer_append_str(&flags, "COPY");
        repeat(&flags, 500, " --from=63");
        buffer_append_str(&flags, " /x /x\n");
    }
    expect(&flags, "line 61: COPY --from=63: one stage or image");
    struct buffer words = {0};
    buffer_append_str(&words, "FROM a\n");
    for (int i = 0; i < 128; i++)
        buffer_printf(&words, "ENV variable_%d=\n", i);
    for (int i = 0; i < 100; i++) {
        buffer_append_str(&words, "ENV");
        repeat(&words, 120, " variable_127=$variable_127$x");
        buffer_append_str(&words, "\n");
    }
    expect(&words, NULL);
}

/* ---- patterns ------------------------------------------------------------------------------------------ */

static void patterns_that_match_in_many_ways_are_decided_soon(void **state)
{
    AUTO_BUFFER text = {0};
    AUTO_BUFFER path = {0};
    struct ignore ignore;
    (void)state;
    for (int i = 0; i < 16; i++) { /* 64 KiB, which is all that a .dockerignore may have */
        repeat(&text, i % 2 ? 1000 : 750, i % 2 ? "**/a" : "*a*/*");
        buffer_append_str(&text, "b\n");
    }
    for (int i = 0; i < 128; i++) { /* what a context may have */
        repeat(&path, 255, "a");
        buffer_append_str(&path, "/");
    }
    buffer_append_str(&path, "c");
    buffer_append(&path, "", 1);
    assert_int_equal(ignore_parse(buffer_peek(&text), &ignore), 0);
    assert_int_equal(ignore.count, 16);
    const int64_t began_ms = spent_ms();
    assert_int_equal(ignore_decide(&ignore, (const char *)path.data, IGNORE_NOTHING), IGNORE_NOTHING);
    assert_true(spent_ms() - began_ms <= SOON_MS);
    ignore_finish(&ignore);
}

static void patterns_that_are_too_many_or_too_long_are_refused(void **state)
{
    AUTO_BUFFER many = {0};
    AUTO_BUFFER longer = {0};
    struct ignore ignore;
    (void)state;
    repeat(&many, 10000, "*a\n");
    assert_int_equal(ignore_parse(buffer_peek(&many), &ignore), -E2BIG);
    ignore_finish(&ignore);
    repeat(&longer, PATH_MAX, "*");
    assert_int_equal(ignore_parse(buffer_peek(&longer), &ignore), -E2BIG);
    ignore_finish(&ignore);
    assert_int_equal(ignore_parse(slice_of(longer.data, PATH_MAX - 1), &ignore), 0);
    ignore_finish(&ignore);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_megabyte_of_anything_is_read_or_refused_soon),
        cmocka_unit_test(too_many_of_anything_are_refused_by_their_line),
        cmocka_unit_test(variables_within_variables_come_to_an_end),
        cmocka_unit_test(what_variables_come_to_has_a_limit),
        cmocka_unit_test(what_is_quadratic_ends_soon),
        cmocka_unit_test(patterns_that_match_in_many_ways_are_decided_soon),
        cmocka_unit_test(patterns_that_are_too_many_or_too_long_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
