/*
 * bridge.h - the frame of a chat template for one role: what it writes between a reply and the
 * next one, around the content of a turn in that role. Learnt from the template's own output on
 * sentinels; cut at special tokens, the only places where text may be cut without changing its
 * ids. Pure: no engine, no fiber.
 *
 * For ChatML the frame is
 *     special <|im_end|>, literal "\n", special <|im_start|>, content "user\n" _ "",
 *     special <|im_end|>, literal "\n", special <|im_start|>, literal "assistant\n"
 */
#ifndef SLUICE_WORKERS_ENGINES_TEMPLATE_BRIDGE_H
#define SLUICE_WORKERS_ENGINES_TEMPLATE_BRIDGE_H

#include "common/base/buffer.h"
#include "common/base/fail.h"
#include "workers/engines/engine.h"

/* Letters only, so that no template escapes them and no tokenizer finds them special. */
#define FRAME_USER "SluiceSaysThis"
#define FRAME_REPLY "SluiceHearsThat"

enum { FRAME_PARTS_MAX = 64 };

/* What a template wrote around the last FRAME_REPLY and FRAME_USER; borrowed from the text. */
struct frame_tail {
    struct slice before, after; /* reply | before | user's content | after */
};

struct frame_special { /* a special token and its name in text */
    uint32_t id;
    char *name;
};

struct frame_part {
    enum { FRAME_SPECIAL, FRAME_LITERAL, FRAME_CONTENT } kind;
    uint32_t id;       /* special */
    char *text;        /* literal; content: what stands before it, with no special between */
    char *text_after;  /* content: what stands behind it, likewise */
    struct tokens ids; /* literal: its ids, filled in by the caller */
};

struct frame_parts {
    struct frame_part list[FRAME_PARTS_MAX];
    size_t count;
};

/*
 * Between two turns in this role with no reply between. Where it has a special token, contents are
 * encoded each by itself: `text` follows the first, then come the parts, and `text_after` stands
 * before the second. Else they are encoded together, with `text` between them.
 */
struct frame_gap {
    bool is_known; /* else one turn at a time has a bridge */
    char *text, *text_after;
    struct frame_parts parts;
};

struct frame {
    struct frame *next; /* the owner's */
    size_t users;       /* likewise */
    enum tell_role role;
    struct fail unfit; /* its code is 0, or there is no frame, and why */
    struct frame_parts parts;
    struct frame_gap gap;
    bool trims_left, trims_right; /* the template strips blanks at the content's ends: */
    uint32_t blanks;              /* bit i: frame_blanks[i] is one that it strips */
    uint32_t rewrites;            /* replies that it does not keep as they were: replies.h */
    char *lead, *tail;            /* what framing_render writes before one reply, and behind it */
};

/* The one whose name the text starts with, the longest of several; NULL: none. */
const struct frame_special *frame_special_at(struct slice text,
                                             const struct frame_special *specials, size_t count);

/* Bytes of the text until the name of the next of them. */
size_t frame_until_special(struct slice text, const struct frame_special *specials, size_t count);

/* What some template language or other takes for blank, in UTF-8; NULL ends the table. */
extern const char *const frame_blanks[];

/* False when the sentinels did not come back once each and in order. */
bool frame_tail_find(struct slice rendered, struct frame_tail *ret);
/* What stands between two turns in a row, each FRAME_USER, around which `tail` is written. */
bool frame_gap_find(struct slice rendered, const struct frame_tail *tail, struct slice *ret);
/* What is written between the turn before the last FRAME_REPLY and this. */
bool frame_head_find(struct slice rendered, struct slice *ret);
/*
 * What became of blanks put around the content: `plain` and `padded` are tails of the same
 * messages without and with `left`/`right` around the sentinel. False when neither kept nor
 * stripped.
 */
bool frame_learn_trim(struct frame *frame, const struct frame_tail *plain,
                      const struct frame_tail *padded, const char *left, const char *right);
/* Cuts the tail at special tokens. -ENOTSUP with a sentence when it cannot be a frame. */
int frame_build(struct frame *frame, const struct frame_tail *tail,
                const struct frame_special *specials, size_t count, struct fail *fail);
/* Cuts the gap likewise, and makes it known. False when it has too many parts. */
bool frame_build_gap(struct frame *frame, struct slice gap, const struct frame_special *specials,
                     size_t count);
void frame_finish(struct frame *frame);

/* How many runs of text these contents are, each to encode in one piece with special tokens off. */
size_t frame_runs(const struct frame *frame, size_t count);
bool frame_text(const struct frame *frame, const struct slice *contents, size_t count, size_t run,
                struct buffer *ret);
/* The special token that the template ends a reply with; the bridge follows it. */
uint32_t frame_end(const struct frame *frame);
/*
 * The bridge, with those texts' ids in their places. -ENOTSUP when they hold a special token of the
 * frame: content must never become a role.
 */
int frame_assemble(const struct frame *frame, const struct tokens *runs, size_t count,
                   struct tokens *ret, struct fail *fail);

#endif
