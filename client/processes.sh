# What client/demo.sh and client/learn.sh share; sourced. What is appended to `pids` ends with the script, the last first.

say() { printf '\n== %s\n' "$*"; }

pids=()
finish() {
    for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
        kill -TERM "${pids[i]}" 2>/dev/null || true
        wait "${pids[i]}" 2>/dev/null || true
    done
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# $1: seconds; the rest: a command that succeeds once the thing is there. It fails where the newest of `pids` has ended.
wait_for() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] && kill -0 "${pids[-1]}" 2>/dev/null || return 1
        sleep 0.2
    done
}

# The first port from $1 on that can be bound.
free_port() {
    /usr/bin/python3 -c 'import socket
for port in range(int("'"$1"'"), int("'"$1"'") + 200):
    with socket.socket() as s:
        try: s.bind(("127.0.0.1", port)); print(port); break
        except OSError: pass'
}
