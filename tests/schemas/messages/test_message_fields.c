#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/schemas/messages/message_craft.h"
#include "schemas/messages/message_max.h"

/* One field at fault, for every field of every message: it is named, and so is why. */

static void assert_refused(enum message_id id, const struct flaw *fault, enum refusal_reason reason)
{
    AUTO_BUFFER bytes = {0};
    union any_message any;
    struct refusal no = {0};
    pack_faulty(message_get(id), fault, 0, &bytes);
    assert_false(message_decode(id, buffer_peek(&bytes), &any, &no));
    if (no.reason != reason)
        fail_msg("%s is refused as %s, not %s: %s", fault->field->name, refusal_wire(no.reason), refusal_wire(reason),
                 no.text);
    assert_string_equal(no.field, fault->field->name);
    assert_true(strlen(no.text) > strlen(no.field));
}

static void every_required_field_that_is_missing_is_named(void **state)
{
    (void)state;
    for
        EACH_MESSAGE(id)
            for (size_t i = 0; i < message_get(id)->field_count; i++) {
                struct flaw fault = {.field = &message_get(id)->fields[i], .times = 0};
                AUTO_BUFFER bytes = {0};
                union any_message any;
                pack_faulty(message_get(id), &fault, 0, &bytes);
                if (fault.field->need == FIELD_REQUIRED)
                    assert_refused(id, &fault, REFUSAL_MISSING_FIELD);
                else
                    assert_true(message_decode(id, buffer_peek(&bytes), &any, NULL));
            }
}

static void every_field_given_twice_is_named(void **state)
{
    (void)state;
    for
        EACH_MESSAGE(id)
            for (size_t i = 0; i < message_get(id)->field_count; i++)
                assert_refused(id, &(struct flaw){.field = &message_get(id)->fields[i], .times = 2},
                               REFUSAL_DUPLICATE_FIELD);
}

static void every_field_of_another_type_is_named(void **state)
{
    (void)state;
    static const struct {
        enum field_type is;
        struct slice bytes;
    } values[] = {
        {FIELD_STR,
         {(const uint8_t *)"\xa3"
                           "abc",
          4}},
        {FIELD_BIN, {(const uint8_t *)"\xc4\x01x", 3}},
        {FIELD_UINT, {(const uint8_t *)"\x01", 1}},
        {FIELD_REAL, {(const uint8_t *)"\xcb\x3f\xf0\0\0\0\0\0\0", 9}},
        {FIELD_BOOL, {(const uint8_t *)"\xc3", 1}},
        {FIELD_JOBS, {(const uint8_t *)"\x90", 1}},
        {-1, {(const uint8_t *)"\xc0", 1}},             /* nil */
        {-1, {(const uint8_t *)"\xff", 1}},             /* -1 */
        {-1, {(const uint8_t *)"\x80", 1}},             /* a map */
        {-1, {(const uint8_t *)"\x91\x01", 2}},         /* an array that holds no job */
        {-1, {(const uint8_t *)"\x91\x92\x01\x01", 4}}, /* a job without a name */
        {-1, {(const uint8_t *)"\xd4\x01\x00", 3}},     /* ext */
    };
    for
        EACH_MESSAGE(id)
            for (size_t i = 0; i < message_get(id)->field_count; i++)
                for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
                    const struct field *field = &message_get(id)->fields[i];
                    if (values[v].is != field->type)
                        assert_refused(id, &(struct flaw){field, 1, values[v].bytes}, REFUSAL_WRONG_TYPE);
                }
}

/* `n` as the value, the length or the number of elements of this field. */
static void pack_measure(const struct field *field, uint64_t n, struct buffer *out)
{
    msgpack_packer packer;
    packer_init(&packer, out);
    AUTO_FREE char *body = NULL;
    if (field->type == FIELD_UINT) {
        msgpack_pack_uint64(&packer, n);
    } else if (field->type == FIELD_JOBS) {
        msgpack_pack_array(&packer, n);
        for (uint64_t i = 0; i < n; i++)
            assert_true(jobs_append(out, slice_from_str("j"), i));
    } else {
        body = malloc(n + 1);
        assert_non_null(body);
        memset(body, 'a', n);
        field->type == FIELD_STR ? packer_str(&packer, slice_of(body, n)) : packer_bin(&packer, slice_of(body, n));
    }
}

static void assert_bound(enum message_id id, const struct field *field, uint64_t n, enum refusal_reason reason)
{
    AUTO_BUFFER value = {0};
    pack_measure(field, n, &value);
    struct flaw fault = {field, 1, buffer_peek(&value)};
    if (reason != REFUSAL_NONE) {
        assert_refused(id, &fault, reason);
        return;
    }
    AUTO_BUFFER bytes = {0};
    union any_message any;
    pack_faulty(message_get(id), &fault, 0, &bytes);
    assert_true(message_decode(id, buffer_peek(&bytes), &any, NULL));
}

static void every_bound_holds_to_the_last_byte(void **state)
{
    (void)state;
    for
        EACH_MESSAGE(id)
            for (size_t i = 0; i < message_get(id)->field_count; i++) {
                const struct field *field = &message_get(id)->fields[i];
                if (field->type == FIELD_REAL || field->type == FIELD_BOOL)
                    continue;
                assert_bound(id, field, field->min, REFUSAL_NONE);
                if (field->min > 0)
                    assert_bound(id, field, field->min - 1, REFUSAL_TOO_SMALL);
                if (field->max == UINT64_MAX)
                    continue;
                assert_bound(id, field, field->max, REFUSAL_NONE);
                assert_bound(id, field, field->max + 1, REFUSAL_TOO_LARGE);
            }
}

static void every_string_that_is_not_utf8_is_named(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\xa8"
        "abc\0defg", /* NUL */
        "\xa8"
        "abcdefg\xff", /* no such byte */
        "\xa8"
        "abcdef\xc3\x28", /* half a sequence, and another letter */
        "\xa8"
        "abcdefg\xe2", /* cut short */
        "\xa8"
        "abcdef\xc0\xaf", /* overlong */
        "\xa8"
        "abcde\xe0\x80\xaf", /* overlong */
        "\xa8"
        "abcde\xed\xa0\x80", /* a surrogate */
        "\xa8"
        "abcd\xf0\x80\x80\xaf", /* overlong */
        "\xa8"
        "abcd\xf4\x90\x80\x80", /* beyond U+10FFFF */
    };
    for
        EACH_MESSAGE(id)
            for (size_t i = 0; i < message_get(id)->field_count; i++)
                for (size_t b = 0; b < sizeof(bad) / sizeof(bad[0]); b++)
                    if (message_get(id)->fields[i].type == FIELD_STR)
                        assert_refused(id, &(struct flaw){&message_get(id)->fields[i], 1, slice_of(bad[b], 9)},
                                       REFUSAL_NOT_UTF8);
}

static void a_number_that_is_not_finite_is_named(void **state)
{
    (void)state;
    static const char *const bad[] = {"\xcb\x7f\xf0\0\0\0\0\0\0", "\xcb\xff\xf0\0\0\0\0\0\0",
                                      "\xcb\x7f\xf8\0\0\0\0\0\0"};
    size_t seen = 0;
    for
        EACH_MESSAGE(id)
            for (size_t i = 0; i < message_get(id)->field_count; i++)
                for (size_t b = 0; b < 3 && message_get(id)->fields[i].type == FIELD_REAL; b++, seen++)
                    assert_refused(id, &(struct flaw){&message_get(id)->fields[i], 1, slice_of(bad[b], 9)},
                                   REFUSAL_NOT_FINITE);
    assert_true(seen > 0);
}

static void a_field_of_no_name_here_is_refused_by_its_name_cleaned(void **state)
{
    (void)state;
    static const struct {
        const char *given, *shown;
    } names[] = {{"toolz", "toolz"}, {"", ""}, {"a\nb \x1b[31m\xff", "a?b??[31m?"}};
    for
        EACH_MESSAGE(id)
            for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
                AUTO_BUFFER bytes = {0};
                union any_message any;
                struct refusal no;
                msgpack_packer packer;
                pack_faulty(message_get(id), &(struct flaw){.times = 1}, 1, &bytes);
                packer_init(&packer, &bytes);
                packer_str(&packer, slice_from_str(names[n].given));
                msgpack_pack_nil(&packer);
                assert_false(message_decode(id, buffer_peek(&bytes), &any, &no));
                assert_int_equal(no.reason, REFUSAL_UNKNOWN_FIELD);
                assert_string_equal(no.field, names[n].shown);
            }
}

static uint64_t bound_of(enum message_id id, const char *name)
{
    const struct message *message = message_get(id);
    for (size_t i = 0; i < message->field_count; i++)
        if (strcmp(message->fields[i].name, name) == 0)
            return message->fields[i].max;
    fail_msg("no field %s", name);
    return 0;
}

static void a_bound_is_a_constant_that_sizes_may_be_made_of(void **state)
{
    (void)state;
    char stream[MESSAGE_MAX(group_submit, stream) + 1];
    enum { PAUSE_MAX = MESSAGE_MAX(lane_engine, resume_ms) };
    assert_int_equal(sizeof(stream) - 1, bound_of(MSG_group_submit, "stream"));
    assert_int_equal(PAUSE_MAX, bound_of(MSG_lane_engine, "resume_ms"));
    assert_int_equal(MESSAGE_MAX(trajectory, record), bound_of(MSG_trajectory, "record"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_required_field_that_is_missing_is_named),
        cmocka_unit_test(every_field_given_twice_is_named),
        cmocka_unit_test(every_field_of_another_type_is_named),
        cmocka_unit_test(every_bound_holds_to_the_last_byte),
        cmocka_unit_test(a_bound_is_a_constant_that_sizes_may_be_made_of),
        cmocka_unit_test(every_string_that_is_not_utf8_is_named),
        cmocka_unit_test(a_number_that_is_not_finite_is_named),
        cmocka_unit_test(a_field_of_no_name_here_is_refused_by_its_name_cleaned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
