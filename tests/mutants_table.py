"""Mechanisms and how to switch each off: one line a mechanism, short texts that stand in their file once.

(row of docs/reliability.md, file, exact text, replacement, "ctest: test" that must then fail)
"""

MUTANTS = [
    # workers and nodes
    ("worker killed", "broker/core_workers.c", "worker_lose(core, worker, LOSS_LANE_BROKE);", "(void)worker;", "broker/test_core_workers: a_broken_lane_loses_its_worker_at_once_and_a_beat_brings_it_back"),
    ("worker frozen", "broker/core_workers.c", "if (core->now_ms - oldest->beat_ms <", "if (true || core->now_ms - oldest->beat_ms <", "broker/test_core_workers: a_silent_worker_is_lost_and_its_jobs_go_to_the_front_in_order"),
    ("worker frozen", "broker/core_workers.c", "if (core->now_ms - oldest->beat_ms <", "if (true || core->now_ms - oldest->beat_ms <", "system/faults_workers: test_a_frozen_worker_loses_its_jobs_and_its_late_results_change_nothing"),
    ("worker partitioned", "broker/core_workers.c", "if (core->now_ms - oldest->beat_ms <", "if (true || core->now_ms - oldest->beat_ms <", "system/faults_workers: test_a_worker_that_is_cut_off_loses_its_jobs_and_comes_back"),
    ("worker hung, beats go on", "broker/core_workers.c", "if (core->now_ms - worker->progress_ms <", "if (true || core->now_ms - worker->progress_ms <", "broker/test_core_workers: a_worker_whose_work_stands_still_is_lost_until_it_gets_on"),
    ("worker hung, beats go on", "broker/core_workers.c", "if (core->now_ms - worker->progress_ms <", "if (true || core->now_ms - worker->progress_ms <", "system/faults_workers: test_a_worker_that_hangs_while_its_beats_go_on_loses_its_jobs"),
    ("a job message lost on the way", "broker/core_workers.c", "core->now_ms - job->since_ms > core->settings.hold_grace_ms", "false", "broker/test_core_workers: a_job_that_never_arrived_is_handed_out_again_after_the_grace"),
    ("a result lost on the way", "workers/outbox.c", "if (entry->due_ms > now_ms)", "if (true || entry->due_ms > now_ms)", "workers/test_outbox: without_an_acknowledgement_it_is_sent_again_later_and_later"),
    ("poison task that kills workers", "broker/core_trouble.c", "if (trouble->blames < core->settings.blame_budget) {", "if (true) {", "broker/test_core_suspects: a_poison_job_is_set_aside_and_no_innocent_is"),
    ("poison task that kills workers", "broker/core_jobs.c", "job_trouble(job)->deaths >= 2 ? PLACE_SOLO : PLACE_QUEUED", "PLACE_QUEUED", "system/faults_workers: test_a_task_that_kills_its_workers_is_set_aside_alone"),
    ("a job's time is over", "broker/core_jobs.c", "if (job->place == PLACE_LEASED)\n            overdue(core, job);", "if (job->place == PLACE_LEASED)\n            set_timer(core, job, core->now_ms + 3600000);", "broker/test_core_results: a_deadline_takes_the_job_away_and_counts_as_infra"),
    ("sockets of killed workers", "workers/lane.c", "lane_sweep(broker->directory);", "", "system/faults_workers: test_the_sockets_that_killed_workers_left_are_swept_by_later_ones"),
    # the broker
    ("broker killed before a commit", "broker/shell_effects.c", "int code = persist(shell, effects, fail);\n    if (code == 0)\n        code = send_all(shell, effects, fail);", "int code = send_all(shell, effects, fail);\n    if (code == 0)\n        code = persist(shell, effects, fail);", "system/faults_points: test_killed_before_any_write_reaches_the_disk"),
    ("broker killed after a commit", "broker/core_submit.c", "    if (group) {", "    if (false) {", "broker/test_core_groups: the_same_group_again_is_known_and_not_persisted_again"),
    ("broker killed while jobs run", "broker/core_workers.c", "if (job && is_adoptable(core, job, held->token)) {", "if (false) {", "system/faults_broker: test_work_that_runs_while_the_broker_is_away_is_adopted_not_repeated"),
    ("broker away when results are ready", "workers/outbox.c", "static void entry_resend(struct outbox *outbox, struct outbox_entry *entry)\n{", "static void entry_resend(struct outbox *outbox, struct outbox_entry *entry)\n{\n    return;", "workers/test_outbox: what_is_asked_for_again_is_sent_at_once"),
    ("duplicate results", "broker/core_results.c", "if (!job || !counts(job, in->token, outcome)) {", "if (!job) {", "broker/test_core_results: a_late_infra_fault_does_not_disturb_who_is_at_work"),
    ("a result nobody asked for", "broker/core_dispatch.c", "    return token <= token_newest(core);", "    return core && token > 0;", "broker/test_core_results: a_result_of_a_dispatch_that_never_was_changes_nothing_whatever_it_says"),
    ("a result nobody asked for", "broker/core_workers.c", " && token_is_possible(core, token)", " && core", "broker/test_core_results: a_beat_adopts_no_dispatch_that_never_was"),
    ("clock stepped", "broker/core_expiry.c", "if (group->work->ends_ms <= core->now_ms)", "if (core->wall_ms > 2 * core->now_ms + 10000000000000)", "broker/test_core_expiry: what_is_queued_ends_when_its_total_time_is_over"),
    ("clock stepped", "common/clock.h", "clock_gettime(CLOCK_MONOTONIC, &t);", "clock_gettime(CLOCK_REALTIME, &t);", "system/faults_broker: test_a_wall_clock_that_jumps_ends_nothing_early_and_nothing_late"),
    # trainers and clients
    ("trainer vanished with a lease", "broker/core_expiry.c", "return work->lease_ms ? group->stream", "return false ? group->stream", "system/faults_trainers: test_work_of_a_trainer_that_vanished_ends_with_its_lease"),
    ("cancel before submit", "broker/core_submit.c", "    tombs_meet(core, call, group);\n", "", "system/faults_trainers: test_a_cancel_ahead_of_its_submit_wins_even_over_a_kill_of_the_broker"),
    ("disk low", "broker/core_limits.c", "if (core->is_disk_low) {", "if (false) {", "system/faults_disks: test_a_low_disk_refuses_submits_until_there_is_room_and_work_goes_on"),
    ("trainer vanished with a lease", "broker/core_expiry.c", "return work->lease_ms ? group->stream", "return false ? group->stream", "broker/test_core_lease: work_of_a_trainer_that_is_gone_ends_and_no_other_does"),
    ("cancel before submit", "broker/core_tombs.c", "drop(core, container_of(owner->tombs.next, struct tomb, link));", "drop(core, owner ? first_due(core) : NULL);", "broker/test_core_tombs: of_too_many_those_of_who_has_the_most_are_forgotten"),
    ("duplicate submit", "broker/core_submit.c", "if (group && !is_same_group(group, in, call->task_hash)) {", "if (false) {", "system/faults_trainers: test_a_submit_said_twice_is_one_group_and_another_content_is_refused"),
    ("PUB drops", "client/python/sluice/stream.py", "if self.behind and not (", "if False and not (", "client/python: test_gaps_are_fetched_and_duplicates_dropped"),
    ("disk low", "broker/core_limits.c", "if (core->is_disk_low) {", "if (false) {", "broker/test_core_ladder: a_low_disk_refuses_submits_until_there_is_room"),
    ("client that does not read", "broker/shell_effects.c", "        if (atomic_load(&shell->front_held) > FRONT_HELD_MAX)\n            break;", "", "system/faults_trainers: test_a_client_that_does_not_read_costs_nobody_else_anything"),
    ("subscriber that does not read", "broker/shell_effects.c", "if (atomic_load(&shell->feed_held) > FEED_HELD_MAX)", "if (false)", "system/faults_trainers: test_a_subscriber_that_does_not_read_holds_no_more_than_its_part_of_the_brokers_memory"),
    ("a key after the first request", "client/link.c", "if (client->front)\n        return client_fail(client, -EBUSY", "if (false)\n        return client_fail(client, -EBUSY", "client/test_keys: a_key_after_the_first_request_is_refused_and_reading_goes_on"),
    ("sluice up told to end while it starts", "client/cli/up_run.c", "up->registrar.pid && !up->stop_signals && ", "up->registrar.pid && ", "client/up: test_ctrl_c_while_engines_are_registered_stops_at_once"),
    ("nobody known", "workers/lane.c", "if (plan->key && ((code = curve_use(lane->pull, plan->key)) ||", "if (plan->key && ((code = 0) ||", "workers/test_lane: a_job_of_anybody_but_the_key_files_broker_never_arrives"),
    ("nobody known", "workers/lane.c", "if (lane->is_refused && now_ms >= lane->again_ms) {", "if (false) {", "workers/test_lane: a_worker_that_is_not_known_is_told_and_comes_in_once_it_is"),
    ("nobody known", "client/link.c", "int code = curve_use(socket, &link->key);", "int code = socket ? 0 : -EINVAL;", "client/test_keys: with_its_key_a_client_asks_and_reads"),
    ("nobody known", "client/link.c", "if (!link->is_refused || now_ms < link->again_ms)", "if (true)", "client/test_keys: a_client_that_was_shut_out_comes_in_once_the_broker_is_the_right_one"),
    # engines and tasks
    ("engine down for an hour", "broker/core_breaker.c", "if (!breaker->wait_ms && breaker->faults < core->settings.breaker_faults)", "if (true)", "broker/test_core_breaker: an_engine_down_for_an_hour_costs_no_rollout"),
    ("engine down", "broker/core_breaker.c", "if (token <= breaker->newest || ", "if (token == 0 || ", "broker/test_core_breaker: what_was_handed_out_before_says_nothing_new_once_a_trial_is_due"),
    ("engine down while nobody calls it", "broker/core_engines.c", "!engine_is_silent(engine) && breaker_lets", "breaker_lets", "broker/test_core_looks: an_engine_that_died_while_idle_gets_no_rollout_until_it_answers"),
    ("engine down while nobody calls it", "broker/core_engines.c", "!engine_is_silent(engine) && breaker_lets", "breaker_lets", "system/engines: test_an_engine_that_died_while_idle_gets_no_rollout_and_is_used_again_once_it_answers"),
    ("engine overfull", "broker/core_sights.c", "if (permille > ROOM_FULL_PERMILLE && engine->live)", "if (false)", "system/engines: test_an_engine_whose_cache_is_full_gets_fewer_rollouts"),
    ("engine overloaded, others not", "broker/core_moving.c", "!job_rollout(job)->was_told_to_move && ", "", "broker/test_core_moving: a_rollout_is_told_once_in_a_run"),
    ("engine overloaded, others not", "workers/agents/moving.c", "strcmp(facts->identity, dialogue->identity) == 0 &&", "", "system/engines: test_a_rollout_stays_where_it_is_when_the_other_engine_serves_something_else"),
    ("the policy goes on while a rollout runs", "workers/agents/age.c", "return most >= 0 && behind > (uint64_t)most;", "return most >= 0 && behind == UINT64_MAX;", "system/policy: test_a_rollout_that_the_policy_leaves_behind_is_stopped_begun_again_or_marked"),
    ("the policy goes on while a rollout runs", "broker/core_results.c", "if (failure.fault == FAULT_STALE && job->stage == STAGE_RUN)", "if (false)", "broker/test_core_policy: one_that_is_stale_and_refreshed_begins_again_at_once_and_uses_up_nothing"),
    ("engine is another model after its restart", "workers/agents/dialogue.c", "if (engine_serves(engine, dialogue->identity))", "if (true)", "system/faults_engines: test_an_engine_that_comes_back_as_another_model_does_not_go_on_with_the_old_ones_tokens"),
    ("evaluator broken", "workers/kinds/eval_command.c", "FAILED_MAX = 125", "FAILED_MAX = 255", "system/faults_disks: test_an_evaluator_that_breaks_gives_no_reward_whatever_way_it_breaks"),
    ("engine answers 500 for good", "broker/core_trouble.c", "if (*count >= (is_task ? core->settings.task_budget : core->settings.infra_budget)) {", "if (false) {", "broker/test_core_groups: infra_is_tried_again_with_back_off_up_to_its_budget"),
    # disks
    ("ledger damaged", "broker/ledger_wal.c", "if (count_unread_commits(log, &first) < 2)", "if (true)", "broker/test_ledger_damage: a_log_damaged_before_its_last_commit_is_said"),
    ("store layer damaged", "workers/layer_dir.c", "if (strcmp(found, unpack->digest) != 0)", "if (false)", "workers/test_layer: a_layer_that_is_damaged_or_absent_is_refused_by_name"),
    ("ledger damaged", "broker/ledger_file.c", "return check_pages(ledger, fail);", "return 0;", "broker/test_ledger_damage: a_flipped_byte_is_harmless_or_said"),
]
