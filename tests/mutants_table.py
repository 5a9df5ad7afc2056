"""Mechanisms and how to switch each off: one line a mechanism, short texts that stand in their file once.

(row of docs/reliability.md, file, exact text, replacement, "ctest: test" that must then fail)
"""

MUTANTS = [
    ("worker frozen", "broker/core_workers.c", "if (core->now_ms - oldest->beat_ms <", "if (true || core->now_ms - oldest->beat_ms <", "broker/test_core_workers: a_silent_worker_is_lost_and_its_jobs_go_to_the_front_in_order"),
]
