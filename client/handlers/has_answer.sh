#!/bin/sh
# has_answer.sh - a handler in shell, as small as one can be: the evaluator has_answer gives 1 where the agent left a file
# answer.txt that is not empty, else 0. It speaks lines of JSON; the worker writes "type" and "id" first.
#
#     sluice up --engine URL --handler mine='json:sh client/handlers/has_answer.sh'
#     {"task": "t", "prompt": "...", "eval": {"kind": "has_answer"}}

say() { printf '%s\n' "$1"; }

say '{"type": "handler.hello", "protocol": 1, "offers": [{"role": "evaluator", "name": "has_answer", "version": "1"}]}'

while IFS= read -r line; do
    id=${line#*\"id\":}
    id=${id%%[!0-9]*}
    case $line in
    '{"type":"handler.begin"'*) # another job: look into its sandbox
        say '{"type": "handler.exec", "id": '"$id"', "call": 1, "command": "test -s answer.txt"}' ;;
    '{"type":"handler.reply"'*'"status":0'*)
        say '{"type": "handler.score", "id": '"$id"', "reward": 1, "detail": "answer.txt is there"}' ;;
    '{"type":"handler.reply"'*)
        say '{"type": "handler.score", "id": '"$id"', "reward": 0, "detail": "there is no answer.txt"}' ;;
    esac # handler.cancel: nothing is going on here
done
