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

/* What chooses something chooses options alone, and one where it does so by its text. */
static void check_choice(struct slice text, const char *option)
{
    const struct choice_options options = {{option, "b", "A) b", option}, 4};
    uint32_t letters;
    const enum choice_how how = choice_read(text, &options, &letters);
    must((letters != 0) == (how == CHOICE_BY_LETTERS || how == CHOICE_BY_TEXT));
    must(choice_is_known(&options, letters));
    must(how != CHOICE_BY_TEXT || (letters & (letters - 1)) == 0);
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
    snprintf(accepted, sizeof(accepted), "%.*s", (int)(a.len < 200 ? a.len : 200),
             (const char *)(a.len ? a.data : data));
    check_choice(b, size ? accepted : "");
    check_grade(b, size ? accepted : "");
    check_extract(slice_of(data, size));
    return 0;
}
