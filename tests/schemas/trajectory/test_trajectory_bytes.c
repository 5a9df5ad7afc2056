#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "schemas/messages/reader.h"
#include "tests/schemas/trajectory/sample_record.h"

/* Bytes that are no record, or lie about what follows. */

static bool decodes(struct slice bytes, struct refusal *no)
{
    AUTO_RECORD record;
    AUTO_FREE uint8_t *copy = malloc(bytes.len ? bytes.len : 1); /* for the sanitizer */
    assert_non_null(copy);
    memcpy(copy, bytes.len ? bytes.data : (const uint8_t *)"", bytes.len);
    *no = (struct refusal){0};
    bool good = record_decode(slice_of(copy, bytes.len), &record, no);
    assert_true(good == (no->reason == REFUSAL_NONE));
    return good;
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    AUTO_BUFFER bytes = {0};
    struct refusal no;
    make_bytes(&bytes);
    for (size_t len = 0; len < bytes.len; len++) {
        assert_false(decodes(slice_of(bytes.data, len), &no));
        assert_true(no.reason == REFUSAL_MALFORMED || no.reason == REFUSAL_WRONG_TYPE);
    }
}

static void any_one_byte_damaged_is_refused_or_read(void **state)
{
    (void)state;
    AUTO_BUFFER bytes = {0};
    struct refusal no;
    size_t refused = 0, taken = 0;
    make_bytes(&bytes);
    for (size_t at = 0; at < bytes.len; at++)
        for (unsigned flip = 1; flip < 256; flip += flip < 32 ? 1 : 37) {
            bytes.data[at] ^= (uint8_t)flip;
            decodes(buffer_peek(&bytes), &no) ? taken++ : refused++;
            bytes.data[at] ^= (uint8_t)flip;
        }
    assert_true(refused > 10000 && taken > 1000);
}

static void take_file(const char *name, struct buffer *out)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/tests/schemas/fixtures/%s", getenv("SLUICE_SOURCE_DIR"), name);
    AUTO_FCLOSE FILE *file = fopen(path, "rb");
    assert_non_null(file);
    uint8_t *room = buffer_reserve(out, 65536);
    assert_non_null(room);
    out->len = fread(room, 1, 65536, file);
    assert_true(out->len > 0);
}

static void a_record_of_version_1_is_read_and_is_of_this_version_then(void **state)
{
    (void)state;
    AUTO_RECORD read, again;
    AUTO_BUFFER bytes = {0}, encoded = {0};
    struct refusal no;
    take_file("record_v1.bin", &bytes);
    assert_true(record_decode(buffer_peek(&bytes), &read, &no));
    assert_int_equal(read.version, RECORD_VERSION);
    assert_int_equal(read.trace_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(read.traces[i].template_digest, "sha256:9f86d081884c7d65");
        assert_string_equal(read.traces[i].tokenizer_digest, "");
    }
    const struct record_turn *said = &read.traces[0].turns[1];
    assert_string_equal(said->version, "step-7");
    assert_false(said->queue_seconds.is_known || said->prefill_seconds.is_known || said->decode_seconds.is_known);
    assert_int_equal(read.traces[0].token_ids[4], 4294967295u);
    assert_int_equal(read.sandbox->breaches[0].count, 2);
    assert_true(record_encode(&read, &encoded, &no));
    assert_true(record_decode(buffer_peek(&encoded), &again, &no));
    assert_string_equal(again.traces[1].template_digest, "sha256:9f86d081884c7d65");
}

static void records_of_versions_2_and_3_are_read_and_their_last_replies_count_as_sampled(void **state)
{
    (void)state;
    static const char *const names[] = {"record_v2.bin", "record_v3.bin"};
    for (size_t i = 0; i < 2; i++) {
        AUTO_RECORD read;
        AUTO_BUFFER bytes = {0};
        struct refusal no = {0};
        take_file(names[i], &bytes);
        if (!record_decode(buffer_peek(&bytes), &read, &no))
            fail_msg("%s: %s %s", names[i], no.field, no.text);
        assert_int_equal(read.version, RECORD_VERSION);
        assert_string_equal(read.traces[0].tokenizer_digest, "sha256:1b4f0e9851971998");
        assert_true(read.traces[0].turns[1].decode_seconds.is_known && !read.traces[0].turns[1].sampling);
        assert_true(read.traces[0].column_count == 0 && read.traces[0].turns[1].version_count == 0);
        assert_true(!read.truncated && read.attempt == 0 && read.end[0] == '\0');
        assert_int_equal(read.message_count, 4);
        for (size_t k = 0; k < 4; k++) /* one turn was sampled, and two replies are there */
            assert_true(read.messages[k].sampled == (k == 3));
        assert_true(i == 0 ? !read.tamper : read.tamper && read.tamper->count == 2);
    }
}

static void every_truncation_of_earlier_versions_is_refused_and_damage_too_or_read(void **state)
{
    (void)state;
    static const char *const names[] = {"record_v1.bin", "record_v2.bin", "record_v3.bin"};
    for (size_t i = 0; i < 3; i++) {
        AUTO_BUFFER bytes = {0};
        struct refusal no;
        take_file(names[i], &bytes);
        for (size_t len = 0; len < bytes.len; len++)
            assert_false(decodes(slice_of(bytes.data, len), &no));
        for (size_t at = 0; at < bytes.len; at++)
            for (unsigned flip = 1; flip < 256; flip <<= 1) {
                bytes.data[at] ^= (uint8_t)flip;
                decodes(buffer_peek(&bytes), &no);
                bytes.data[at] ^= (uint8_t)flip;
            }
    }
}

/* The encoded record with one run of bytes put in another's place. */
static void swap(struct buffer *bytes, struct slice from, struct slice to)
{
    uint8_t *at = memmem(bytes->data, bytes->len, from.data, from.len);
    assert_non_null(at);
    AUTO_BUFFER tail = {0};
    size_t head = (size_t)(at - bytes->data);
    buffer_append(&tail, at + from.len, bytes->len - head - from.len);
    bytes->len = head;
    assert_true(buffer_append(bytes, to.data, to.len));
    assert_true(buffer_append(bytes, tail.data, tail.len));
}

#define BYTES(literal)                                                                                                 \
    {                                                                                                                  \
        (const uint8_t *)literal, sizeof(literal) - 1                                                                  \
    }

static void bytes_that_lie_are_refused_by_place_and_reason(void **state)
{
    (void)state;
    static const struct {
        struct slice from, to;
        enum refusal_reason reason;
        const char *field;
    } rows[] = {
        {BYTES("\xa7version\x04"), BYTES("\xa7version\x05"), REFUSAL_TOO_LARGE, "version"},
        {BYTES("\xa7version\x04"), BYTES("\xa7version\x00"), REFUSAL_TOO_SMALL, "version"},
        {BYTES("\xa7version\x04"),
         BYTES("\xa7version\xa1"
               "1"),
         REFUSAL_WRONG_TYPE, "version"},
        {BYTES("\xa7version\x04"), BYTES("\xa7versiom\x02"), REFUSAL_MISSING_FIELD, ""},
        {BYTES("\x8b\xa7version\x04\xa5"
               "agent\xa4"
               "bash"),
         BYTES("\x8b\xa5"
               "agent\xa4"
               "bash\xa7version\x04"),
         REFUSAL_MISSING_FIELD, ""},
        {BYTES("\xa7version\x04"), BYTES("\xa7version\x01"), REFUSAL_UNKNOWN_FIELD, ""},
        {BYTES("prefill_seconds\xcb"), BYTES("prefill_seconds\xc0"), REFUSAL_WRONG_TYPE,
         "traces[0].turns[1].prefill_seconds"},
        {BYTES("\xcb\x3f\xc0\0\0\0\0\0\0"), BYTES("\xcb\xbf\xc0\0\0\0\0\0\0"), REFUSAL_NOT_FINITE,
         "traces[0].turns[1].decode_seconds"},
        {BYTES("\xa5"
               "agent"),
         BYTES("\xa5"
               "agenx"),
         REFUSAL_UNKNOWN_FIELD, ""},
        {BYTES("\x8b\xa7version"), BYTES("\x89\xa7version"), REFUSAL_MISSING_FIELD, "messages"},
        {BYTES("\x8b\xa7version\x04"), BYTES("\x8c\xa7version\x04\xa7version\x04"), REFUSAL_DUPLICATE_FIELD, "version"},
        {BYTES("\xa6traces\x92"), BYTES("\xa6traces\xdd\xff\xff\xff\xff"), REFUSAL_TOO_LARGE, "traces"},
        {BYTES("\xa6traces\x92"), BYTES("\xa6traces\x91"), REFUSAL_MALFORMED, ""},
        {BYTES("\xa6traces\x92"), BYTES("\xa6traces\xc0"), REFUSAL_WRONG_TYPE, "traces"},
        {BYTES("\xa5turns\x93"), BYTES("\xa5turns\xdd\xff\xff\xff\xff"), REFUSAL_TOO_LARGE, "traces[0].turns"},
        {BYTES("\xa8messages\x92"), BYTES("\xa8messages\xdf\xff\xff\xff\xff"), REFUSAL_WRONG_TYPE, "messages"},
        {BYTES("codec\xa3raw"), BYTES("codec\xa3zip"), REFUSAL_WRONG_TYPE, "traces[0].token_ids"},
        {BYTES("codec\xa3raw"), BYTES("codec\xa3lz4"), REFUSAL_MALFORMED, "traces[0].token_ids"},
        {BYTES("codec\xa3raw"), BYTES("codec\xa8rawrawra"), REFUSAL_TOO_LARGE, "traces[0].token_ids.codec"},
        {BYTES("\xa6length\x14\xa4"
               "data"),
         BYTES("\xa6length\x15\xa4"
               "data"),
         REFUSAL_WRONG_TYPE, "traces[0].token_ids"},
        {BYTES("\xa6length\x14\xa4"
               "data"),
         BYTES("\xa6length\x10\xa4"
               "data"),
         REFUSAL_MALFORMED, "traces[0].token_ids"},
        {BYTES("\xa3raw\xa6length\x14\xa4"
               "data"),
         BYTES("\xa3lz4\xa6length\xce\xff\xff\xff\xfc\xa4"
               "data"),
         REFUSAL_MALFORMED, "traces[0].token_ids"},
        {BYTES("\xa6length\x14\xa4"
               "data"),
         BYTES("\xa6length\xcf\0\0\0\1\0\0\0\x14\xa4"
               "data"),
         REFUSAL_TOO_LARGE, "traces[0].token_ids.length"},
        {BYTES("\xa6length\x05\xa4"
               "data\xc4\x05\0\0\0\1\1"),
         BYTES("\xa6length\x04\xa4"
               "data\xc4\x04\0\0\0\1"),
         REFUSAL_WRONG_TYPE, "traces[0].mask"},
        {BYTES("\xa4role\xa6prompt"),
         BYTES("\xa4role\xaf"
               "prompt prompt p"),
         REFUSAL_WRONG_TYPE, "traces[0].turns[0].role"},
        {BYTES("\xa4role\xa6prompt"),
         BYTES("\xa4role\xb0"
               "prompt prompt pr"),
         REFUSAL_TOO_LARGE, "traces[0].turns[0].role"},
        {BYTES("\xa4"
               "1+1?"),
         BYTES("\xa4"
               "1+1\xff"),
         REFUSAL_NOT_UTF8, "messages[0].content"},
        {BYTES("\xa4"
               "1+1?"),
         BYTES("\xa4"
               "1+1\0"),
         REFUSAL_NOT_UTF8, "messages[0].content"},
        {BYTES("\xab"
               "exit_status\xf7"),
         BYTES("\xab"
               "exit_status\xcf\0\0\0\1\0\0\0\0"),
         REFUSAL_TOO_LARGE, "messages[1].exit_status"},
        {BYTES("\xa7sandbox\x8a"), BYTES("\xa7sandbox\xc0"), REFUSAL_MALFORMED, "sandbox"},
        {BYTES("\xa7sandbox\x8a"), BYTES("\xa7sandbox\x89"), REFUSAL_MISSING_FIELD, "sandbox.breaches"},
        {BYTES("\xa8"
               "breaches\x91"),
         BYTES("\xa8"
               "breaches\xdd\xff\xff\xff\xff"),
         REFUSAL_TOO_LARGE, "sandbox.breaches"},
        {BYTES("limit\xa4"
               "disk"),
         BYTES("limit\xa4"
               "risk"),
         REFUSAL_WRONG_TYPE, "sandbox.breaches[0].limit"},
        {BYTES("\xcb\x3f\xe0\0\0\0\0\0\0\xa8"
               "commands"),
         BYTES("\xcb\xbf\xe0\0\0\0\0\0\0\xa8"
               "commands"),
         REFUSAL_NOT_FINITE, "sandbox.cpu_seconds"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO_BUFFER bytes = {0};
        struct refusal no;
        make_bytes(&bytes);
        swap(&bytes, rows[i].from, rows[i].to);
        if (decodes(buffer_peek(&bytes), &no) || no.reason != rows[i].reason || strcmp(no.field, rows[i].field) != 0)
            fail_msg("row %zu: %s [%s] %s", i, refusal_wire(no.reason), no.field, no.text);
    }
}

static void bytes_after_a_record_are_refused(void **state)
{
    (void)state;
    AUTO_BUFFER bytes = {0};
    struct refusal no;
    make_bytes(&bytes);
    assert_true(buffer_append(&bytes, "\xc0", 1));
    assert_false(decodes(buffer_peek(&bytes), &no));
    assert_int_equal(no.reason, REFUSAL_MALFORMED);
}

static void nesting_is_refused_where_it_begins(void **state)
{
    (void)state;
    static const char *const nests[] = {"\x91", "\x81", "\x81\xa6traces", "\x81\xa6traces\x91"};
    for (size_t i = 0; i < sizeof(nests) / sizeof(nests[0]); i++) {
        AUTO_BUFFER bytes = {0};
        struct refusal no;
        for (size_t n = 0; n < 100000; n++)
            buffer_append_str(&bytes, nests[i]);
        assert_false(decodes(buffer_peek(&bytes), &no));
        assert_true(strlen(no.field) < sizeof("traces[0].traces"));
    }
}

/* An LZ4 block of zeros that unpacks to `length` bytes, in about length / 255 of them. */
static void pack_zeros(struct buffer *out, uint32_t length)
{
    size_t rest = length - 1 - 4 - 15 - 5;
    buffer_append(out, "\x1f\0\1\0", 4);
    for (; rest >= 255; rest -= 255)
        buffer_append(out, "\xff", 1);
    buffer_append(out, &(uint8_t){(uint8_t)rest}, 1);
    assert_true(buffer_append(out, "\x50\0\0\0\0\0", 6));
}

static void pack_column(msgpack_packer *packer, const char *key, uint32_t length, struct slice data)
{
    packer_str(packer, slice_from_str(key));
    msgpack_pack_map(packer, 3);
    packer_str(packer, slice_from_str("codec"));
    packer_str(packer, slice_from_str("lz4"));
    packer_str(packer, slice_from_str("length"));
    msgpack_pack_uint32(packer, length);
    packer_str(packer, slice_from_str("data"));
    packer_bin(packer, data);
}

static void tokens_are_counted_over_all_traces_before_they_are_held(void **state)
{
    (void)state;
    AUTO_BUFFER bytes = {0}, four = {0}, one = {0};
    struct refusal no;
    uint32_t count = RECORD_TOKENS_MAX / 2;
    msgpack_packer packer;
    pack_zeros(&four, count * 4);
    pack_zeros(&one, count);
    packer_init(&packer, &bytes);
    msgpack_pack_map(&packer, 2);
    packer_str(&packer, slice_from_str("version"));
    msgpack_pack_uint32(&packer, RECORD_VERSION);
    packer_str(&packer, slice_from_str("traces"));
    msgpack_pack_array(&packer, 3);
    for (int trace = 0; trace < 3; trace++) {
        static const char *const texts[] = {"reason", "template_digest", "tokenizer_digest"};
        msgpack_pack_map(&packer, 8);
        packer_str(&packer, slice_from_str("turns"));
        msgpack_pack_array(&packer, 0);
        packer_str(&packer, slice_from_str("columns"));
        msgpack_pack_array(&packer, 0);
        for (size_t i = 0; i < 3; i++) {
            packer_str(&packer, slice_from_str(texts[i]));
            packer_str(&packer, slice_from_str(""));
        }
        pack_column(&packer, "token_ids", count * 4, buffer_peek(&four));
        pack_column(&packer, "mask", count, buffer_peek(&one));
        pack_column(&packer, "logprobs", count * 4, buffer_peek(&four));
    }
    assert_false(bytes.failed);
    assert_false(decodes(buffer_peek(&bytes), &no));
    assert_int_equal(no.reason, REFUSAL_TOO_LARGE);
    assert_string_equal(no.field, "traces[2].token_ids");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(any_one_byte_damaged_is_refused_or_read),
        cmocka_unit_test(a_record_of_version_1_is_read_and_is_of_this_version_then),
        cmocka_unit_test(records_of_versions_2_and_3_are_read_and_their_last_replies_count_as_sampled),
        cmocka_unit_test(every_truncation_of_earlier_versions_is_refused_and_damage_too_or_read),
        cmocka_unit_test(bytes_that_lie_are_refused_by_place_and_reason),
        cmocka_unit_test(bytes_after_a_record_are_refused),
        cmocka_unit_test(nesting_is_refused_where_it_begins),
        cmocka_unit_test(tokens_are_counted_over_all_traces_before_they_are_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
