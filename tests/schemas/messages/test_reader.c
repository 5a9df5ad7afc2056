#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/utf8.h"
#include "schemas/messages/reader.h"

/* A byte and zeros after it: enough for any scalar it may begin. */
static struct slice starting_with(uint8_t head, uint8_t room[300])
{
    memset(room, 0, 300);
    room[0] = head;
    return slice_of(room, 300);
}

static bool begins_container(uint8_t head) { return (head >= 0x80 && head <= 0x9f) || (head >= 0xdc && head <= 0xdf); }

static void no_container_is_ever_read_as_a_scalar(void **state)
{
    (void)state;
    uint8_t room[300];
    for (unsigned head = 0; head < 256; head++) {
        struct reader reader = {starting_with((uint8_t)head, room), 0};
        msgpack_object object;
        bool never_used = head == 0xc1;
        assert_true(reader_scalar(&reader, &object) == !(begins_container((uint8_t)head) || never_used));
        if (begins_container((uint8_t)head))
            assert_int_equal(reader.at, 0);
    }
}

static void assert_same_scalar(const msgpack_object *ours, const msgpack_object *theirs)
{
    assert_int_equal(ours->type, theirs->type);
    if (ours->type == MSGPACK_OBJECT_EXT) {
        assert_int_equal(ours->via.ext.type, theirs->via.ext.type);
        assert_int_equal(ours->via.ext.size, theirs->via.ext.size);
        assert_ptr_equal(ours->via.ext.ptr, theirs->via.ext.ptr);
    } else if (ours->type == MSGPACK_OBJECT_STR || ours->type == MSGPACK_OBJECT_BIN) {
        assert_int_equal(ours->via.str.size, theirs->via.str.size);
        if (ours->via.str.size > 0)
            assert_ptr_equal(ours->via.str.ptr, theirs->via.str.ptr);
    } else if (ours->type == MSGPACK_OBJECT_BOOLEAN) {
        assert_true(ours->via.boolean == theirs->via.boolean);
    } else if (ours->type != MSGPACK_OBJECT_NIL) {
        assert_memory_equal(&ours->via.u64, &theirs->via.u64, 8);
    }
}

static void a_scalar_is_what_msgpack_c_reads(void **state)
{
    (void)state;
    uint8_t bytes[40];
    srand(7);
    for (int round = 0; round < 400000; round++) {
        size_t len = (size_t)rand() % sizeof(bytes);
        for (size_t i = 0; i < len; i++)
            bytes[i] = (uint8_t)(rand() % 3 ? rand() : rand() % 24);
        if (len == 0 || begins_container(bytes[0]))
            continue;
        struct reader reader = {slice_of(bytes, len), 0};
        msgpack_object object;
        msgpack_unpacked theirs;
        size_t end = 0;
        msgpack_unpacked_init(&theirs);
        int got = msgpack_unpack_next(&theirs, (const char *)bytes, len, &end);
        bool is_read = got == MSGPACK_UNPACK_SUCCESS || got == MSGPACK_UNPACK_EXTRA_BYTES;
        assert_true(reader_scalar(&reader, &object) == is_read);
        if (is_read) {
            assert_int_equal(reader.at, end);
            assert_same_scalar(&object, &theirs.data);
        }
        msgpack_unpacked_destroy(&theirs);
    }
}

static void a_container_is_entered_only_as_what_it_is(void **state)
{
    (void)state;
    uint8_t room[300];
    for (unsigned head = 0; head < 256; head++) {
        struct reader as_array = {starting_with((uint8_t)head, room), 0}, as_map = as_array;
        uint32_t count;
        bool array = (head >= 0x90 && head <= 0x9f) || head == 0xdc || head == 0xdd;
        assert_true(reader_array(&as_array, &count) == array);
        assert_true(reader_map(&as_map, &count) == (begins_container((uint8_t)head) && !array));
    }
}

static void counts_of_every_width_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        uint32_t count;
    } rows[] = {{"\x9f", 1, 15}, {"\xdc\x12\x34", 3, 0x1234}, {"\xdd\x12\x34\x56\x78", 5, 0x12345678}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t len = 0; len <= rows[i].len; len++) {
            struct reader reader = {slice_of(rows[i].bytes, len), 0};
            uint32_t count;
            assert_true(reader_array(&reader, &count) == (len == rows[i].len));
            assert_true(len < rows[i].len || count == rows[i].count);
            assert_int_equal(reader.at, len < rows[i].len ? 0 : len);
        }
}

static void an_empty_string_or_body_is_no_null_pointer(void **state)
{
    (void)state;
    struct reader reader = {slice_of("\xa0\xc4\0", 3), 0};
    struct slice empty = {NULL, 7};
    assert_true(reader_str(&reader, &empty) && empty.data && empty.len == 0);
    empty.data = NULL;
    assert_true(reader_bin(&reader, &empty) && empty.data && empty.len == 0);
    assert_int_equal(reader_left(&reader), 0);
}

static void every_code_point_is_utf8_but_nul_and_surrogates(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 0x110000; c++) {
        uint8_t s[4];
        size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        s[0] = (uint8_t)(len == 1 ? c : (0xf00u >> len) | c >> 6 * (len - 1));
        for (size_t i = 1; i < len; i++)
            s[i] = (uint8_t)(0x80 | (c >> 6 * (len - 1 - i) & 0x3f));
        bool wanted = c != 0 && (c < 0xd800 || c > 0xdfff);
        assert_true(utf8_is_valid(slice_of(s, len)) == wanted);
        assert_true(len == 1 || !utf8_is_valid(slice_of(s, len - 1)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_container_is_ever_read_as_a_scalar),
        cmocka_unit_test(a_scalar_is_what_msgpack_c_reads),
        cmocka_unit_test(a_container_is_entered_only_as_what_it_is),
        cmocka_unit_test(counts_of_every_width_are_read),
        cmocka_unit_test(an_empty_string_or_body_is_no_null_pointer),
        cmocka_unit_test(every_code_point_is_utf8_but_nul_and_surrogates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
