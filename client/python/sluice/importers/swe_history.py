"""Set-up commands that leave an agent no way to a repository's future: what it must not read is not there."""

from __future__ import annotations

import shlex
from typing import List

GIT = ("git -c safe.directory='*' -c core.hooksPath=/dev/null -c core.fsmonitor=false -c user.name=sluice "
       "-c user.email=sluice@localhost -c commit.gpgSign=false -c gc.auto=0")

# Heads that name commits without being refs.
HEADS = "ORIG_HEAD FETCH_HEAD MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD REBASE_HEAD BISECT_HEAD AUTO_MERGE"

SCRUB = """\
set -e
g() { @GIT@ "$@"; }
cd @REPOSITORY@
@BASE@
g add -u
g diff --cached --quiet || g commit -q --no-verify -m 'State of the image'
head=$(g rev-parse HEAD)
dir=$(g rev-parse --absolute-git-dir)
g checkout -q --detach
for remote in $(g remote); do g remote remove "$remote"; done
g for-each-ref --format='delete %(refname)' | g update-ref --no-deref --stdin
g update-ref refs/heads/main "$head"
g symbolic-ref HEAD refs/heads/main
(cd "$dir" && rm -rf logs worktrees refs/original refs/stash hooks @HEADS@ objects/pack/*.keep)
if [ -e "$dir/objects/info/alternates" ]; then g repack -a -d -q; rm "$dir/objects/info/alternates"; fi
g reflog expire --expire=now --expire-unreachable=now --all
g gc -q --prune=now
reachable=$(g rev-list --count HEAD)
there=$(g cat-file --batch-all-objects --batch-check='%(objecttype)' | grep -c '^commit$')
[ "$there" = "$reachable" ] || { echo "$there commits are in the repository, and $reachable lead to its head" >&2; exit 1; }
"""


def scrub(repository: str, base: str = "HEAD") -> List[str]:
    """One ref is left, at `base` and what the image has changed of it, and no object that does not lead there."""
    # What lies in the working tree stays; HEAD, which may be a commit of the image's maker, moves to the base.
    move = "" if base == "HEAD" else f"g reset -q --soft {shlex.quote(base)}"
    text = SCRUB
    for name, value in (("GIT", GIT), ("REPOSITORY", shlex.quote(repository)), ("BASE", move), ("HEADS", HEADS)):
        text = text.replace(f"@{name}@", value)
    return [text]
