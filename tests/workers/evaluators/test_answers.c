/* Answers found in a model's last words, and judged: evaluators math, choice and exact,
 * without a worker around them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/evaluators/answers/choice.h"
#include "workers/evaluators/answers/grade.h"

/* ---- finding -------------------------------------------------------------------------------------- */

/* wanted NULL: there is none. */
static void assert_found(enum extract how, const char *text, const char *wanted)
{
    AUTO_BUFFER found = {0};
    const char *why = "";
    bool any = extract_answer(slice_from_str(text), how, &found, &why);
    if (any != (wanted != NULL) || (any && !slice_is(buffer_peek(&found), wanted)))
        fail_msg("in %s: %s %.*s (%s)", text, any ? "found" : "nothing,", SLICE_ARG(buffer_peek(&found)), why);
}

static void the_last_box_is_the_answer(void **state)
{
    (void)state;
    assert_found(EXTRACT_BOX, "so \\boxed{4}", "4");
    assert_found(EXTRACT_BOX, "\\boxed{1} no, that was wrong: \\boxed{2}.", "2");
    assert_found(EXTRACT_BOX, "\\boxed{\\frac{1}{2}}", "\\frac{1}{2}");
    assert_found(EXTRACT_BOX, "\\boxed{\\boxed{3}}", "\\boxed{3}");
    assert_found(EXTRACT_BOX, "\\boxed {7}", "7");
    assert_found(EXTRACT_BOX, "\\fbox{7}", "7");
    assert_found(EXTRACT_BOX, "\\boxed{\\{1,2\\}}", "\\{1,2\\}");
    assert_found(EXTRACT_BOX, "\\boxed{\\}}", "\\}");
    assert_found(EXTRACT_BOX, "\\boxed{}", "");
    assert_found(EXTRACT_BOX, "\\boxed 5.", "5");
    assert_found(EXTRACT_BOX, "I use \\boxed for it: \\boxed{6}. That is \\boxed.", "6");
    assert_found(EXTRACT_BOX, "the answer is 5", NULL);
    assert_found(EXTRACT_BOX, "", NULL);
}

static void a_box_that_is_never_closed_does_not_fall_back_to_another(void **state)
{
    (void)state;
    assert_found(EXTRACT_BOX, "\\boxed{5} and then \\boxed{6", NULL);
    assert_found(EXTRACT_BOX, "\\boxed{5", NULL);
    assert_found(EXTRACT_BOX, "\\boxed{5\\", NULL);
    assert_found(EXTRACT_BOX, "\\boxed{1 \\boxed{2}", NULL);
}

static void boxes_that_stand_together_are_one_list(void **state)
{
    (void)state;
    assert_found(EXTRACT_BOX, "\\boxed{1}, \\boxed{2}", "1, 2");
    assert_found(EXTRACT_BOX, "$\\boxed{1}$ and $\\boxed{2}$.", "1, 2");
    assert_found(EXTRACT_BOX, "\\boxed{1} \\quad \\text{and} \\quad \\boxed{2}", "1, 2");
    assert_found(EXTRACT_BOX, "it is \\boxed{0}. Wait: \\boxed{1} or \\boxed{2}", "1, 2");
    assert_found(EXTRACT_BOX, "\\boxed{3}\n\n\\boxed{3}", "3");
    assert_found(EXTRACT_BOX, "\\boxed{1} no no no \\boxed{2}", "2");
}

static void hashes_and_answer_lines_are_found(void **state)
{
    (void)state;
    assert_found(EXTRACT_HASHES, "2+2 is 4\n#### 4", "4");
    assert_found(EXTRACT_HASHES, "#### 3\n#### 1,234\nbye", "1,234");
    assert_found(EXTRACT_HASHES, "### 3", NULL);
    assert_found(EXTRACT_HASHES, "####  \nx", NULL);
    assert_found(EXTRACT_ANSWER, "Thus.\nAnswer: 12", "12");
    assert_found(EXTRACT_ANSWER, "answer: 1\nANSWER: 2 \nbye", "2");
    assert_found(EXTRACT_ANSWER, "**Answer:** 42", "42");
    assert_found(EXTRACT_ANSWER, "**Answer**: **42**", "42");
    assert_found(EXTRACT_ANSWER, "The final answer is $\\frac12$.", "$\\frac12$.");
    assert_found(EXTRACT_ANSWER, "the answer isn't here", NULL);
    assert_found(EXTRACT_ANSWER, "Answer:", NULL);
    assert_found(EXTRACT_ANSWER, "I wanswer: 5", NULL);
}

static void the_last_number_is_found(void **state)
{
    (void)state;
    assert_found(EXTRACT_NUMBER, "from 3 to 4, so 7 apples.", "7");
    assert_found(EXTRACT_NUMBER, "it costs $1,234.50.", "1,234.50");
    assert_found(EXTRACT_NUMBER, "minus: -12", "-12");
    assert_found(EXTRACT_NUMBER, "1998-12", "12");
    assert_found(EXTRACT_NUMBER, "no number", NULL);
}

/* ---- judging ----------------------------------------------------------------------------------------- */

static bool is_right(enum grade_kind kind, const char *accepted, const char *text)
{
    struct grade_options options = {.kind = kind, .normalize = NORMALIZE_BLANKS};
    struct grade grade;
    grade_text(&options, slice_from_str(text), &accepted, 1, &grade);
    bool right = grade.is_right;
    assert_true(grade.why[0] && !strchr(grade.why, '\n'));
    grade_finish(&grade);
    return right;
}

static void what_is_thought_is_no_answer(void **state)
{
    (void)state;
    assert_false(is_right(GRADE_MATH, "5", "<think>an example: \\boxed{5}"));
    assert_false(is_right(GRADE_MATH, "5", "<think>\\boxed{5}</think> I do not know."));
    assert_false(is_right(GRADE_MATH, "5", "\\boxed{5}</think> I do not know."));
    assert_true(is_right(GRADE_MATH, "5", "<think>\\boxed{4}</think> \\boxed{5}"));
    assert_false(is_right(GRADE_MATH, "5", "<think>a</think> \\boxed{5} <think> \\boxed{6}"));
    assert_true(is_right(GRADE_CHOICE, "B", "<think>A, perhaps</think>B"));
}

static void math_takes_a_box_else_hashes_else_an_answer_line(void **state)
{
    (void)state;
    assert_true(is_right(GRADE_MATH, "1/2", "so $\\boxed{0.5}$."));
    assert_true(is_right(GRADE_MATH, "72", "48+24=72\n#### 72"));
    assert_true(is_right(GRADE_MATH, "\\boxed{72}", "Answer: $72$."));
    assert_false(is_right(GRADE_MATH, "72", "it is 72"));
    assert_false(is_right(GRADE_MATH, "72", "Answer: 72, so \\boxed{71}"));
    assert_false(is_right(GRADE_MATH, "72", "#### 72\nso \\boxed{"));
}

static void letters_of_a_choice_are_read_in_all_their_forms(void **state)
{
    (void)state;
    static const char *const forms[] = {"B",
                                        "(B)",
                                        "B.",
                                        "B)",
                                        "**B**",
                                        "\\boxed{B}",
                                        "\\boxed{\\text{(B)}}",
                                        "\\boxed{\\textbf{(B)}}",
                                        "\\boxed{B. 12}",
                                        "Answer: B",
                                        "The answer is (B).",
                                        "**Answer:** B) twelve",
                                        "\\boxed{\\mathrm{B}}",
                                        "b",
                                        "Option B",
                                        "Answer: B: the third",
                                        "$B$"};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (!is_right(GRADE_CHOICE, "B", forms[i]))
            fail_msg("%s is B", forms[i]);
        assert_false(is_right(GRADE_CHOICE, "C", forms[i]));
    }
    assert_false(is_right(GRADE_CHOICE, "B", "Because it is so"));
    assert_false(is_right(GRADE_CHOICE, "B", "Bananas"));
    assert_false(is_right(GRADE_CHOICE, "B", ""));
}

static void a_set_of_letters_is_taken_as_a_whole_and_in_any_order(void **state)
{
    (void)state;
    assert_true(is_right(GRADE_CHOICE, "A, C", "\\boxed{C, A}"));
    assert_true(is_right(GRADE_CHOICE, "AC", "Answer: A and C"));
    assert_true(is_right(GRADE_CHOICE, "A,C", "(A), (C)"));
    assert_false(is_right(GRADE_CHOICE, "A,C", "A"));
    assert_false(is_right(GRADE_CHOICE, "A,C", "A, B, C"));
    assert_false(is_right(GRADE_CHOICE, "A,C", "A, A"));
}

static void exact_is_the_text_but_for_what_is_let_pass(void **state)
{
    (void)state;
    static const struct {
        const char *accepted, *text;
        enum normalize from; /* right from this on */
    } rows[] = {{"Paris", "Paris", NORMALIZE_NONE},
                {"New York", " New\n York ", NORMALIZE_BLANKS},
                {"Paris", "paris", NORMALIZE_CASE},
                {"Paris", "Paris.", NORMALIZE_PUNCTUATION},
                {"don't", "DONT!", NORMALIZE_PUNCTUATION}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int level = NORMALIZE_NONE; level <= NORMALIZE_PUNCTUATION; level++) {
            struct grade_options options = {
                .kind = GRADE_EXACT, .extract = EXTRACT_ALL, .normalize = (enum normalize)level};
            struct grade grade;
            grade_text(&options, slice_from_str(rows[i].text), &rows[i].accepted, 1, &grade);
            assert_int_equal(grade.is_right, level >= (int)rows[i].from);
            grade_finish(&grade);
        }
    assert_false(is_right(GRADE_EXACT, "New York", "NewYork"));
    assert_false(is_right(GRADE_EXACT, "a", ""));
}

static void any_of_the_accepted_answers_will_do(void **state)
{
    (void)state;
    const char *const accepted[] = {"Paris", "City of Paris", "Lutetia"};
    struct grade_options options = {.kind = GRADE_EXACT, .normalize = NORMALIZE_CASE};
    struct grade grade;
    grade_text(&options, slice_from_str("Answer: lutetia"), accepted, 3, &grade);
    assert_true(grade.is_right);
    assert_string_equal(grade.answer, "lutetia");
    assert_string_equal(grade.why, "lutetia is Lutetia");
    grade_finish(&grade);
    grade_text(&options, slice_from_str("London"), accepted, 3, &grade);
    assert_string_equal(grade.why, "London is not Paris, or any other accepted");
    grade_finish(&grade);
}

static void an_accepted_answer_that_cannot_be_one_is_refused(void **state)
{
    (void)state;
    const char *const letters[] = {"B", "\\boxed{A, C}"}, *const words[] = {"B", "Paris"};
    struct grade_options choice = {.kind = GRADE_CHOICE}, exact = {.kind = GRADE_EXACT};
    assert_null(grade_refuse(&choice, letters, 2));
    assert_non_null(grade_refuse(&choice, words, 2));
    assert_non_null(grade_refuse(&choice, words, 0));
    assert_null(grade_refuse(&exact, words, 2));
}

/* ---- options by their texts ----------------------------------------------------------------------------- */

static const struct choice_options cities = {{"Paris", "Lyon", "Paris, France", "Both A and B", "I"}, 5};

/* Why, as the caller's to free; `*ret_right` whether the letter is chosen. */
static char *chosen(const struct choice_options *options, const char *letter, const char *text, bool *ret_right)
{
    struct grade_options choice = {.kind = GRADE_CHOICE, .options = *options};
    struct grade grade;
    grade_text(&choice, slice_from_str(text), &letter, 1, &grade);
    *ret_right = grade.is_right;
    char *why = strdup(grade.why);
    grade_finish(&grade);
    assert_non_null(why);
    return why;
}

/* Of A to E, the one that `text` chooses, or '-'. */
static char choice_of(const struct choice_options *options, const char *text)
{
    char found = '-';
    for (char letter[2] = "A"; letter[0] <= 'E'; letter[0]++) {
        bool is_right;
        free(chosen(options, letter, text, &is_right));
        if (is_right && found != '-')
            fail_msg("%s is %c and %c", text, found, letter[0]);
        found = is_right ? letter[0] : found;
    }
    return found;
}

static void assert_chooses(const struct choice_options *options, const char *text, char wanted)
{
    const char found = choice_of(options, text);
    if (found != wanted)
        fail_msg("%s chooses %c, not %c", text, found, wanted);
}

static void the_whole_text_of_an_option_is_as_good_as_its_letter(void **state)
{
    (void)state;
    static const char *const texts[] = {"Paris",
                                        " paris. ",
                                        "\\boxed{Paris}",
                                        "\\boxed{\\text{Paris}}",
                                        "Answer: Paris",
                                        "**Answer:** PARIS",
                                        "so the answer is Paris.",
                                        "\"Paris\"",
                                        "\\boxed{Paris.}",
                                        "A) Paris",
                                        "A: paris",
                                        "A"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_chooses(&cities, texts[i], 'A');
    assert_chooses(&cities, "Answer: Paris,\tfrance", 'C');
    assert_chooses(&cities, "\\boxed{both A and B}", 'D');
    assert_chooses(&cities, "I", 'E'); /* no option has the letter I */
    assert_chooses(&cities, "B", 'B');
}

static void what_is_more_or_less_than_an_options_text_is_none(void **state)
{
    (void)state;
    static const char *const texts[] = {"Paris, of course",
                                        "It is Paris",
                                        "Paris or Lyon",
                                        "\\boxed{Paris, Lyon}",
                                        "\\boxed{Paris}, \\boxed{Lyon}",
                                        "Par",
                                        "Z",
                                        "Paris\nLyon",
                                        "not Paris",
                                        "A) Paris B) Lyon",
                                        "Answer: A, B",
                                        "F"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_chooses(&cities, texts[i], '-');
}

static void cheating_with_the_letter_of_one_option_and_the_text_of_another_chooses_neither(void **state)
{
    (void)state;
    bool is_right;
    assert_chooses(&cities, "Answer: B) Paris", '-');
    assert_chooses(&cities, "\\boxed{A: Lyon}", '-');
    AUTO_FREE char *why = chosen(&cities, "B", "Answer: B) Paris", &is_right);
    assert_string_equal(why, "B) Paris has a letter and the text of another option, and so is not B");
}

static void cheating_with_several_options_and_their_texts_chooses_none(void **state)
{
    bool is_right;
    (void)state;
    assert_chooses(&cities, "Answer: A. Paris or B. Lyon", '-');
    assert_chooses(&cities, "\\boxed{A. Paris B. Lyon C. Paris, France}", '-');
    assert_chooses(&cities, "Answer: B: lyon / a: PARIS", '-');
    assert_chooses(&cities, "Answer: B. Lyon. C. Paris, France.", '-');
    assert_chooses(&cities, "Answer: C. Paris, France", 'C'); /* its own text, whatever else lies in that */
    assert_chooses(&cities, "Answer: B. Lyon B. Lyon", 'B');
    assert_chooses(&cities, "Answer: B. Lyon, as A. Parisian said", 'B');
    assert_chooses(&cities, "Answer: A. It is Paris", 'A');
    AUTO_FREE char *why = chosen(&cities, "A", "A. Paris or B. Lyon", &is_right);
    assert_string_equal(why, "A. Paris or B. Lyon is several options with their texts, and so is not A");
}

static void a_text_that_several_options_have_chooses_none_and_says_so(void **state)
{
    (void)state;
    const struct choice_options twins = {{"yes", "no", "Yes", "no"}, 4};
    bool is_right;
    assert_chooses(&twins, "no", '-');
    assert_chooses(&twins, "YES", '-');
    assert_chooses(&twins, "yes", 'A'); /* as it stands, one alone */
    assert_chooses(&twins, "D", 'D');
    AUTO_FREE char *why = chosen(&twins, "B", "no", &is_right);
    assert_string_equal(why, "no is the text of several options, and so is not B");
    AUTO_FREE char *text = chosen(&twins, "A", "yes", &is_right);
    assert_string_equal(text, "yes is the text of A");
    AUTO_FREE char *wrong = chosen(&twins, "B", "yes", &is_right);
    assert_string_equal(wrong, "yes is not the text of B");
}

static void texts_that_look_like_letters_or_differ_by_brackets_are_told_apart(void **state)
{
    (void)state;
    const struct choice_options letters = {{"C", "A", "B"}, 3}, spans = {{"(1,2)", "[1,2]", "$x^2$", "A-level"}, 4};
    assert_chooses(&letters, "C", 'C');
    assert_chooses(&letters, "Answer: A", 'A');
    assert_chooses(&spans, "(1,2)", 'A');
    assert_chooses(&spans, "\\boxed{[1,2]}", 'B');
    assert_chooses(&spans, "1,2", '-');
    assert_chooses(&spans, "\\boxed{x^2}", 'C');
    assert_chooses(&spans, "A-level", 'D'); /* and not A with the text "level" */
}

static void an_accepted_letter_must_be_an_options(void **state)
{
    (void)state;
    const struct grade_options choice = {.kind = GRADE_CHOICE, .options = cities};
    const char *const good = "\\boxed{A, E}", *const beyond = "F";
    assert_null(grade_refuse(&choice, &good, 1));
    assert_string_equal(grade_refuse(&choice, &beyond, 1),
                        "an accepted answer is a letter that none of the options has");
}

/* ---- cheating -------------------------------------------------------------------------------------------- */

static void cheating_with_several_boxes_is_one_answer_that_is_wrong(void **state)
{
    (void)state;
    assert_false(is_right(GRADE_MATH, "2", "\\boxed{1}, \\boxed{2}, \\boxed{3}"));
    assert_false(is_right(GRADE_MATH, "2", "\\boxed{2} or \\boxed{3}"));
    assert_false(is_right(GRADE_MATH, "2", "\\boxed{2}. Or else, if I misread the question, \\boxed{3}"));
    assert_false(is_right(GRADE_CHOICE, "B", "\\boxed{A} \\boxed{B} \\boxed{C} \\boxed{D}"));
}

static void cheating_by_listing_all_choices_chooses_none(void **state)
{
    (void)state;
    assert_false(is_right(GRADE_CHOICE, "B", "A, B, C, D"));
    assert_false(is_right(GRADE_CHOICE, "B", "ABCD"));
    assert_false(is_right(GRADE_CHOICE, "B", "Answer: A) 1 B) 2 C) 3 D) 4"));
    assert_false(is_right(GRADE_CHOICE, "A", "Answer: A) 1 B) 2 C) 3 D) 4"));
    assert_false(is_right(GRADE_CHOICE, "A", "A. B. C. D."));
}

static void cheating_with_one_choice_or_another_chooses_neither(void **state)
{
    (void)state;
    static const char *const texts[] = {"A or B", "\\boxed{A or B}", "Answer: A or B", "(A) or (B)",
                                        "A/B",    "A. or B.",        "B, if not A"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (is_right(GRADE_CHOICE, "A", texts[i]) || is_right(GRADE_CHOICE, "B", texts[i]))
            fail_msg("%s chooses", texts[i]);
    }
}

static void cheating_with_one_number_or_another_is_neither(void **state)
{
    (void)state;
    static const char *const texts[] = {"Answer: 1, 2, 3 or 4",
                                        "the answer is 1, 2, 3 or 4",
                                        "\\boxed{1, 2, 3 \\text{ or } 4}",
                                        "\\boxed{1 \\text{ or } 4}",
                                        "#### 1 2 3 4",
                                        "\\boxed{1=2=3=4=0}",
                                        "\\boxed{\\{1,2,3,4\\}}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        for (int n = 1; n <= 4; n++) {
            char accepted[8];
            snprintf(accepted, sizeof(accepted), "%d", n);
            if (is_right(GRADE_MATH, accepted, texts[i]))
                fail_msg("%s is %d", texts[i], n);
        }
}

static void cheating_with_an_answer_that_is_a_program_runs_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"\\boxed{__import__('os').system('touch /tmp/sluice_ran')}",
                                        "\\boxed{$(touch /tmp/sluice_ran)}",
                                        "\\boxed{`touch /tmp/sluice_ran`}",
                                        "\\boxed{\\input{|touch /tmp/sluice_ran}}",
                                        "\\boxed{\\write18{touch /tmp/sluice_ran}}",
                                        "\\boxed{eval(\"open('/tmp/sluice_ran','w')\")}",
                                        "\\boxed{%n%n%n%n%s%s%s}",
                                        "\\boxed{sympify('5')}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(is_right(GRADE_MATH, "5", texts[i]));
    assert_int_not_equal(access("/tmp/sluice_ran", F_OK), 0);
}

static void cheating_by_repeating_the_question_is_unfinished(void **state)
{
    (void)state;
    assert_false(is_right(GRADE_MATH, "83810205", "\\boxed{12345 \\times 6789}"));
    assert_false(is_right(GRADE_MATH, "x=5", "\\boxed{2x=10}"));
    assert_false(is_right(GRADE_MATH, "10", "\\boxed{\\sum_{k=1}^{4} k}"));
}

static void a_megabyte_of_words_costs_little(void **state)
{
    (void)state;
    static const char *const parts[] = {"\\boxed{", "\\boxed", "answer: ",    "Answer ** ", "<think>",
                                        "#### ",    "A, ",     "\\boxed{1} ", "(",          "1"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        AUTO_BUFFER text = {0};
        while (text.len < 1048576)
            buffer_append_str(&text, parts[i]);
        buffer_append(&text, "", 1);
        int64_t start_ms = clock_ms();
        for (int kind = GRADE_MATH; kind <= GRADE_EXACT; kind++)
            is_right((enum grade_kind)kind, "B", (const char *)text.data);
        if (clock_ms() - start_ms > 20000) /* with sanitizers, on a busy machine; what is not linear takes hours */
            fail_msg("%s took %lld ms", parts[i], (long long)(clock_ms() - start_ms));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_box_is_the_answer),
        cmocka_unit_test(a_box_that_is_never_closed_does_not_fall_back_to_another),
        cmocka_unit_test(boxes_that_stand_together_are_one_list),
        cmocka_unit_test(hashes_and_answer_lines_are_found),
        cmocka_unit_test(the_last_number_is_found),
        cmocka_unit_test(what_is_thought_is_no_answer),
        cmocka_unit_test(math_takes_a_box_else_hashes_else_an_answer_line),
        cmocka_unit_test(letters_of_a_choice_are_read_in_all_their_forms),
        cmocka_unit_test(the_whole_text_of_an_option_is_as_good_as_its_letter),
        cmocka_unit_test(what_is_more_or_less_than_an_options_text_is_none),
        cmocka_unit_test(cheating_with_the_letter_of_one_option_and_the_text_of_another_chooses_neither),
        cmocka_unit_test(cheating_with_several_options_and_their_texts_chooses_none),
        cmocka_unit_test(a_text_that_several_options_have_chooses_none_and_says_so),
        cmocka_unit_test(texts_that_look_like_letters_or_differ_by_brackets_are_told_apart),
        cmocka_unit_test(an_accepted_letter_must_be_an_options),
        cmocka_unit_test(a_set_of_letters_is_taken_as_a_whole_and_in_any_order),
        cmocka_unit_test(exact_is_the_text_but_for_what_is_let_pass),
        cmocka_unit_test(any_of_the_accepted_answers_will_do),
        cmocka_unit_test(an_accepted_answer_that_cannot_be_one_is_refused),
        cmocka_unit_test(cheating_with_several_boxes_is_one_answer_that_is_wrong),
        cmocka_unit_test(cheating_by_listing_all_choices_chooses_none),
        cmocka_unit_test(cheating_with_one_choice_or_another_chooses_neither),
        cmocka_unit_test(cheating_with_one_number_or_another_is_neither),
        cmocka_unit_test(cheating_with_an_answer_that_is_a_program_runs_nothing),
        cmocka_unit_test(cheating_by_repeating_the_question_is_unfinished),
        cmocka_unit_test(a_megabyte_of_words_costs_little),
    };
    return cmocka_run_group_tests_name("answers", tests, NULL, NULL);
}
