/*
 * Is the write-ahead log torn, or damaged? SQLite reads it up to the first frame whose
 * checksum is wrong and takes all beyond for what was being written when the power went. That is so
 * beyond the mark up to which it was synced. If the frame lies before the mark, commits
 * follow it that were acknowledged, and something has changed the file since. A log of other salts than the mark's was
 * begun after it.
 *
 * The format is https://sqlite.org/fileformat2.html#the_write_ahead_log: a header of 32 bytes,
 * then frames of 24 bytes and a page; numbers are big-endian; a checksum continues the one
 * before it, over the words of the file in the order that the header's magic number says.
 */
#include "broker/ledger/inner.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"

enum { HEADER_SIZE = 32, FRAME_SIZE = 24, PAGE_SIZE_MAX = 65536, MAGIC = 0x377f0682 };

struct log {
    FILE *file;
    bool is_big; /* the checksum's words are big-endian */
    uint32_t page_size, salts[2], sums[2];
    uint8_t frame[FRAME_SIZE + PAGE_SIZE_MAX];
};

static uint32_t word_at(const uint8_t *bytes)
{
    uint32_t word;
    memcpy(&word, bytes, sizeof(word));
    return be32toh(word);
}

static void add_sums(struct log *log, const uint8_t *bytes, size_t len)
{
    for (size_t at = 0; at < len; at += 8) {
        uint32_t pair[2];
        memcpy(pair, bytes + at, sizeof(pair));
        for (int i = 0; i < 2; i++) {
            uint32_t word = log->is_big ? be32toh(pair[i]) : le32toh(pair[i]);
            log->sums[i] += word + log->sums[!i];
        }
    }
}

static bool sums_are(const struct log *log, const uint8_t *bytes)
{
    return log->sums[0] == word_at(bytes) && log->sums[1] == word_at(bytes + 4);
}

static bool read_header(struct log *log)
{
    uint8_t header[HEADER_SIZE];
    if (fread(header, 1, HEADER_SIZE, log->file) != HEADER_SIZE || (word_at(header) & ~1u) != MAGIC)
        return false;
    log->is_big = word_at(header) & 1;
    log->page_size = word_at(header + 8);
    log->salts[0] = word_at(header + 16);
    log->salts[1] = word_at(header + 20);
    add_sums(log, header, HEADER_SIZE - 8);
    return sums_are(log, header + HEADER_SIZE - 8) && log->page_size >= 512 && log->page_size <= PAGE_SIZE_MAX &&
           log->page_size % 8 == 0;
}

/* Of the frame in hand: does it belong to this log, and not to one that was written over? */
static bool is_ours(const struct log *log)
{
    return word_at(log->frame + 8) == log->salts[0] && word_at(log->frame + 12) == log->salts[1];
}

/* The frames before the first that is not whole, of `most`. */
static uint32_t count_whole_frames(struct log *log, uint32_t most)
{
    uint32_t count = 0;
    const size_t size = FRAME_SIZE + log->page_size;
    while (count < most && fread(log->frame, 1, size, log->file) == size) {
        add_sums(log, log->frame, 8);
        add_sums(log, log->frame + FRAME_SIZE, log->page_size);
        if (!is_ours(log) || !sums_are(log, log->frame + 16))
            break;
        count++;
    }
    return count;
}

int ledger_wal_check(const char *path, const struct commit_point *durable, char *ret_detail, size_t size,
                     struct fail *fail)
{
    AUTO_FCLOSE FILE *file = fopen(path, "rbe");
    AUTO_FREE struct log *log = calloc(1, sizeof(*log));
    struct stat found;
    if (!log)
        return fail_set(fail, -ENOMEM, "out of memory");
    if (!file || fstat(fileno(file), &found) < 0)
        return fail_set(fail, -errno, "cannot read %s: %s", path, strerror(errno));
    log->file = file;
    if (!read_header(log)) { /* it is synced before the first frame is written */
        snprintf(ret_detail, size, "the header of its -wal cannot be read");
        return found.st_size > HEADER_SIZE ? -EBADMSG : 0;
    }
    if (memcmp(log->salts, durable->salts, sizeof(log->salts)) != 0)
        return 0;
    const uint32_t whole = count_whole_frames(log, durable->frames);
    if (ferror(file))
        return fail_set(fail, -EIO, "cannot read %s: %s", path, strerror(errno));
    if (whole == durable->frames)
        return 0;
    snprintf(ret_detail, size, "frame %u of its -wal cannot be read, and commits follow it", whole + 1);
    return -EBADMSG;
}
