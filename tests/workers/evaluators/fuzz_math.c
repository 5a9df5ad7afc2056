/*
 * Two answers, apart by the first newline: each equals itself, equality is the same twice, what is found in a text is
 * no longer than it, and nothing takes more than a bounded amount of work. A bound on time is the fuzzer's own.
 */
#include "tests/fuzz.h"
#include "workers/evaluators/answers/choice.h"
#include "workers/evaluators/answers/grade.h"
#include "workers/evaluators/math/answer.h"

static void check_grade(struct slice text, const char *accepted)
{
    for (int kind = GRADE_MATH; kind <= GRADE_EXACT; kind++) {
        struct grade_options options = {.kind = (enum grade_kind)kind, .normalize = NORMALIZE_PUNCTUATION};
        struct grade grade;
        grade_text(&options, text, &accepted, 1, &grade);
        must(!grade.is_right || grade.answer);
        must(grade.why[0]);
        must(!grade.answer || strlen(grade.answer) <= 2 * text.len + 16);
        grade_finish(&grade);
    }
}

static void check_extract(struct slice text)
{
    for (int how = EXTRACT_BOX; how <= EXTRACT_ALL; how++) {
        struct buffer found = {0};
        const char *why = NULL;
        if (!extract_answer(text, (enum extract)how, &found, &why))
            must(why);
        must(found.len <= 2 * text.len);
        buffer_finish(&found);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *cut = size ? memchr(data, '\n', size) : NULL;
    struct slice a = slice_of(data, cut ? (size_t)(cut - data) : size);
    struct slice b = cut ? slice_of(cut + 1, size - a.len - 1) : a;
    struct math_options exact = {0}, near = {0.01, 0.1};
    char accepted[256];
    enum math_verdict verdict = math_compare(a, b, &exact);
    must(verdict == math_compare(a, b, &exact));
    must(verdict != MATH_EQUAL || math_compare(a, b, &near) == MATH_EQUAL);
    math_compare(b, a, &near);
    must(choice_equal(a, b) == choice_equal(b, a));
    snprintf(accepted, sizeof(accepted), "%.*s", (int)(a.len < 200 ? a.len : 200),
             (const char *)(a.len ? a.data : data));
    check_grade(b, size ? accepted : "");
    check_extract(slice_of(data, size));
    return 0;
}
