#include "client/gateway/prorl/swe_scrub.h"

#include "client/gateway/prorl/swe_patch.h"

static const char to_repository[] =
    "set -e\n"
    "g() { git -c safe.directory='*' -c core.hooksPath=/dev/null -c core.fsmonitor=false -c user.name=sluice -c "
    "user.email=sluice@localhost -c commit.gpgSign=false -c gc.auto=0 \"$@\"; }\n"
    "cd ";
static const char to_base[] =
    "g add -u\n"
    "g diff --cached --quiet || g commit -q --no-verify -m 'State of the image'\n"
    "head=$(g rev-parse HEAD)\n"
    "dir=$(g rev-parse --absolute-git-dir)\n"
    "g checkout -q --detach\n"
    "for remote in $(g remote); do g remote remove \"$remote\"; done\n"
    "g for-each-ref --format='delete %(refname)' | g update-ref --no-deref --stdin\n"
    "g update-ref refs/heads/main \"$head\"\n"
    "g symbolic-ref HEAD refs/heads/main\n"
    "(cd \"$dir\" && rm -rf logs worktrees refs/original refs/stash hooks ORIG_HEAD FETCH_HEAD MERGE_HEAD "
    "CHERRY_PICK_HEAD REVERT_HEAD REBASE_HEAD BISECT_HEAD AUTO_MERGE objects/pack/*.keep)\n"
    "if [ -e \"$dir/objects/info/alternates\" ]; then g repack -a -d -q; rm \"$dir/objects/info/alternates\"; fi\n"
    "g reflog expire --expire=now --expire-unreachable=now --all\n"
    "g gc -q --prune=now\n"
    "reachable=$(g rev-list --count HEAD)\n"
    "there=$(g cat-file --batch-all-objects --batch-check='%(objecttype)' | grep -c '^commit$')\n"
    "[ \"$there\" = \"$reachable\" ] || { echo \"$there commits are in the repository, and $reachable lead to its "
    "head\" >&2; exit 1; }\n";

void swe_scrub(const char *repository, const char *base, struct buffer *ret)
{
    buffer_append_str(ret, to_repository);
    swe_append_word(ret, repository);
    buffer_append_str(ret, "\n");
    if (strcmp(base, "HEAD") != 0) {
        buffer_append_str(ret, "g reset -q --soft ");
        swe_append_word(ret, base);
    }
    buffer_append_str(ret, "\n");
    buffer_append_str(ret, to_base);
}
