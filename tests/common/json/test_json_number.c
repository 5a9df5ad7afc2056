/* Numbers of JSON: worth what strtod makes of them, bit for bit, millions of them; and what is none is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/prng.h"
#include "common/json/json_number.h"

enum { MANY = 500000 };

static uint64_t state_of_chance = 21;

static uint64_t chance(void) { return prng_next(&state_of_chance); }

/* In memory of its own, of exactly its length. */
static void assert_as_strtod(const char *text)
{
    const size_t len = strlen(text);
    AUTO_FREE uint8_t *exact = malloc(len);
    const double wanted = strtod(text, NULL);
    struct json_number got;
    memcpy(exact, text, len);
    if (json_number_read(exact, exact + len, &got) != exact + len)
        fail_msg("%s is not read to its end", text);
    const double value = got.is_integer ? (double)got.integer : got.real;
    if (memcmp(&value, &wanted, sizeof(value)) != 0 && !(got.is_integer && value == wanted)) /* -0 has no sign there */
        fail_msg("%s is read as %.17g, and is %.17g", text, value, wanted);
}

static void what_prints_a_double_is_read_as_that_double(void **state)
{
    (void)state;
    static const char *const formats[] = {"%.17g", "%.16g", "%.15g", "%.18e", "%.20f", "%.9g"};
    for (int i = 0; i < MANY; i++) {
        char text[64];
        const double logprob = -(double)(chance() >> 11) / 9007199254740992.0 * pow(10, (int)(chance() % 14) - 10);
        snprintf(text, sizeof(text), formats[i % 6], logprob);
        assert_as_strtod(text);
    }
}

/* As engines have them: a float's value with the digits of a double. */
static void what_prints_a_float_is_read_as_that_float(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++) {
        char text[64];
        const uint32_t bits = (uint32_t)(chance() % (0x41c00000u - 0x2d000000u) + 0x2d000000u); /* 7e-12 to 24 */
        float value;
        memcpy(&value, &bits, sizeof(value));
        snprintf(text, sizeof(text), i % 2 ? "%.17g" : "%.16g", -(double)value);
        assert_as_strtod(text);
    }
}

static void every_size_of_double_is_read_as_itself(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++) {
        char text[64];
        const uint64_t bits = chance();
        double value;
        memcpy(&value, &bits, sizeof(value));
        if (!isfinite(value))
            continue;
        snprintf(text, sizeof(text), "%.*e", (int)(chance() % 20), value);
        if (isfinite(strtod(text, NULL)))
            assert_as_strtod(text);
    }
}

/* Any digits, with a point and an exponent anywhere: more digits than are counted, and powers beyond the quick ones. */
static void any_digits_with_a_point_anywhere_are_read_alike(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++) {
        char text[64], *at = text;
        const size_t before = 1 + chance() % 12, behind = chance() % 14;
        for (size_t k = 0; k < before; k++)
            *at++ = (char)('0' + (k == 0 && before > 1 ? 1 + chance() % 9 : chance() % 10));
        *at++ = '.';
        for (size_t k = 0; k <= behind; k++)
            *at++ = (char)(chance() % 4 ? '0' + chance() % 10 : '0');
        if (i % 3 == 0)
            at += sprintf(at, "e%d", (int)(chance() % 61) - 30);
        *at = '\0';
        assert_as_strtod(text);
    }
}

/* Whole numbers and fractions that lie just between two doubles, and beside. */
static void what_lies_between_two_doubles_goes_to_the_even_one(void **state)
{
    (void)state;
    static const uint64_t fives[] = {1, 5, 25, 125};
    for (int i = 0; i < MANY; i++) {
        char digits[32], text[64];
        const int places = i % 4;
        const uint64_t middle = (UINT64_C(1) << 53 | (chance() >> 11)) | 1; /* 54 bits, the last of them too many */
        const uint64_t value = middle * fives[places] + chance() % 3 - 1;
        const int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
        snprintf(text, sizeof(text), "%.*s.%s", len - places, digits, places ? digits + len - places : "0");
        assert_as_strtod(text);
    }
}

static void bounds_are_read_alike(void **state)
{
    (void)state;
    static const char *const texts[] = {"0",
                                        "-0",
                                        "0.0",
                                        "-0.0",
                                        "0e5",
                                        "0.000000000000000000000000000000000000000000000000000001",
                                        "-0.0e-400",
                                        "1e-400",
                                        "4.9406564584124654e-324",
                                        "2.4703282292062327e-324",
                                        "2.2250738585072014e-308",
                                        "1.7976931348623157e308",
                                        "123456789012345678",
                                        "1234567890123456789",
                                        "-123456789012345678",
                                        "9999999999999999999",
                                        "9223372036854775807",
                                        "9223372036854775808",
                                        "18446744073709551615",
                                        "18446744073709551616.0",
                                        "9999999999999999999e-27",
                                        "9999999999999999999e-28",
                                        "1e-27",
                                        "1e-28",
                                        "1e0",
                                        "1e1",
                                        "1e22",
                                        "1e23",
                                        "1e99999999999999999999",
                                        "1e-99999999999999999999",
                                        "9007199254740993",
                                        "9007199254740993.0",
                                        "9007199254740993.00000000000000000000000000000000000001",
                                        "-1.1920928955078125e-07",
                                        "-2.3841855067985307e-07",
                                        "12345678",
                                        "1234567.8",
                                        "123456",
                                        "1234567"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        if (isfinite(strtod(texts[i], NULL)))
            assert_as_strtod(texts[i]);
}

static void a_number_ends_where_its_digits_do(void **state)
{
    (void)state;
    static const char *const rests[] = {"", ",", "]", "}", " ", "x", "-", "+1", "/", ":"};
    static const char *const numbers[] = {"0",
                                          "7",
                                          "-12",
                                          "123456",
                                          "1234567890",
                                          "1.5",
                                          "-0.25",
                                          "1e5",
                                          "2.5E-3",
                                          "9223372036854775807",
                                          "-9223372036854775808"};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        for (size_t k = 0; k < sizeof(rests) / sizeof(*rests); k++) {
            char text[64];
            struct json_number got;
            snprintf(text, sizeof(text), "%s%s", numbers[i], rests[k]);
            const uint8_t *at = (uint8_t *)text;
            assert_ptr_equal(json_number_read(at, at + strlen(text), &got), at + strlen(numbers[i]));
            assert_true((got.is_integer ? (double)got.integer : got.real) == strtod(numbers[i], NULL));
            assert_int_equal(got.is_integer, strpbrk(numbers[i], ".eE") == NULL);
        }
}

static void a_whole_number_that_fits_is_exact(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool fits;
        int64_t value;
    } rows[] = {{"9223372036854775807", true, INT64_MAX},
                {"9223372036854775808", false, 0},
                {"-9223372036854775808", true, INT64_MIN},
                {"-9223372036854775809", false, 0},
                {"1234567890123456789", true, 1234567890123456789},
                {"10000000000000000000", false, 0},
                {"99999999999999999999", false, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct json_number got;
        const uint8_t *at = (const uint8_t *)rows[i].text;
        assert_non_null(json_number_read(at, at + strlen(rows[i].text), &got));
        assert_int_equal(got.is_integer, rows[i].fits);
        assert_true(!rows[i].fits || got.integer == rows[i].value);
    }
}

static void what_is_no_number_is_none(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",     "-",        "+1",    ".5",
        "1.",   "1.,",      "1e",    "1e+",
        "1e-,", "-.5",      "00",    "01",
        "-01",  "01.5",     "a",     "e5",
        "-e5",  "1.e5",     "1e999", "-1e999",
        "NaN",  "Infinity", "--1",   "1.00000000000000000000000000000000000000000000000000000000000000001"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        const size_t len = strlen(texts[i]);
        AUTO_FREE uint8_t *exact = malloc(len);
        struct json_number got;
        memcpy(exact, texts[i], len);
        if (json_number_read(exact, exact + len, &got))
            fail_msg("%s is a number", texts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_prints_a_double_is_read_as_that_double),
        cmocka_unit_test(what_prints_a_float_is_read_as_that_float),
        cmocka_unit_test(every_size_of_double_is_read_as_itself),
        cmocka_unit_test(any_digits_with_a_point_anywhere_are_read_alike),
        cmocka_unit_test(what_lies_between_two_doubles_goes_to_the_even_one),
        cmocka_unit_test(bounds_are_read_alike),
        cmocka_unit_test(a_number_ends_where_its_digits_do),
        cmocka_unit_test(a_whole_number_that_fits_is_exact),
        cmocka_unit_test(what_is_no_number_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
