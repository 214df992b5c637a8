//! All policies and published behaviours that hold for lock files hold for the agent: the tests of the one,
//! each run over the other. What is about the lock file itself (its path, its mode, who may open it, what a
//! peer locks in it) is not in this table, nor is a test that passes when the agent is dead: it asks no agent.

macro_rules! over_the_agent {
    ($($folder:ident { $($file:ident { $($test:ident,)+ })+ })+) => {
        $(mod $folder { $(mod $file { $(
            #[test]
            fn $test() {
                crate::support::needs_root!();
                crate::support::over_the_agent(crate::$folder::$file::$test);
            }
        )+ })+ })+
    };
}

over_the_agent! {
    launch {
        command {
            success_is_silent,
            options_end_at_the_command,
            a_named_repository_may_be_one_of_the_policys,
            quiet,
            verbose,
            an_environment_that_grew_too_long_is_named,
        }
        refusal {
            every_full_repository_is_named_with_its_rule_and_its_holders,
            a_closed_repository_says_so,
            a_ceiling_is_explained,
            a_refusal_speaks_of_the_name_that_was_given,
        }
        exit_status {
            the_commands_own,
            full,
            a_user_lookup_that_fails,
        }
    }
    tools {
        listings {
            what_is_free_and_kept_for_the_queue_is_what_run_goes_by,
        }
        end {
            a_holder_that_is_named_is_ended,
            holders_are_named_by_user_and_by_slot,
            a_holder_that_ignores_the_first_signals_is_killed,
            nobody_is_ended_without_an_answer,
            who_holds_nothing_is_not_ended,
            only_root_ends_what_is_somebody_elses,
            nobody_ends_the_job_that_started_them,
        }
    }
    slots {
        outside {
            what_is_used_outside_takes_room_and_our_own_counts_once,
            more_than_is_left_is_full_and_not_never,
            a_slot_that_is_used_outside_is_not_given,
            a_slot_above_the_limit_that_is_used_outside_takes_room,
            a_group_that_has_a_seat_outside_needs_no_room,
            a_waiting_launch_starts_with_the_sample_that_leaves_room,
            a_sample_that_cannot_be_believed_refuses,
            no_launch_begins_to_wait_without_a_sample,
            what_must_be_freed_counts_use_outside,
        }
        several_repositories {
            a_rule_that_refuses_nobody_takes_the_alternative_with_room,
            lock_files_that_are_not_there_yet_are_not_one_table,
        }
        reservations {
            members_take_their_own_first_and_others_what_is_lent_last,
            members_take_others_when_their_own_are_used_up,
            a_ceiling_says_how_many_slots_and_not_which,
            listings_show_what_is_kept_idle,
            what_is_kept_as_a_whole_is_for_nobody_else,
            an_own_policy_on_the_same_file_by_another_name_takes_nothing_that_is_kept,
        }
        pace {
            too_soon_may_be_no_failure,
            reset_forgets_the_last_start,
        }
        expiry {
            an_overdue_holder_is_ended_in_order_by_the_next_launch,
            an_overdue_holder_may_end_by_itself,
            an_overdue_holder_that_is_stopped_is_continued_and_ended,
            whoever_is_not_overdue_or_not_in_the_way_is_left_alone,
            nobody_is_ended_in_vain,
            only_the_longest_overdue_holder_is_ended,
            a_holder_of_a_slot_that_the_launch_may_not_take_is_spared,
            another_holder_is_ended_instead_of_an_ancestor,
            a_launch_does_not_end_its_own_group,
            a_holder_of_several_slots_is_ended_once,
            a_holder_of_two_repositories_gets_each_signal_once,
            the_head_of_the_line_ends_a_holder_when_it_becomes_overdue,
            nobody_ends_his_own_ancestor,
            expire_sweeps_all_repositories,
            the_group_is_ended_where_the_policy_says_so,
            a_branch_whose_group_has_no_leader_is_ended_too,
        }
        holds {
            when_the_program_ends,
            when_the_program_leaves_a_daemon_that_inherited_everything,
            when_the_daemon_ends,
            when_the_program_leaves_a_daemon_that_closed_everything,
            when_the_launcher_or_the_supervisor_is_killed,
            when_the_supervisor_is_killed_and_then_the_program_ends,
            when_the_supervisor_is_killed_and_the_program_had_closed_every_descriptor,
            when_the_program_is_stopped,
            the_strongest_hold_counts,
            whoever_keeps_a_slot_that_no_record_accounts_for_is_searched,
        }
        limits {
            a_lowered_limit_kills_nobody_and_admits_nobody_until_use_falls_below,
            a_limit_of_nothing_drains,
            slots_are_taken_together_or_not_at_all,
            a_ceiling_counts_everybody_and_binds_only_its_rule,
            a_limit_by_processors_is_the_hosts,
        }
        member_limits {
            a_name_counts_before_a_group_and_an_alias_is_what_it_stands_for,
            a_session_without_the_group_has_the_limit_without_it,
            a_sorted_table_says_the_same,
            a_member_that_cannot_be_looked_up_has_no_limit_that_anybody_knows,
            who_waits_when_the_hour_of_a_limit_is_over_is_decided_anew_and_keeps_the_number,
            a_share_is_one_of_the_limit_of_the_member,
        }
        named_slots {
            a_program_is_told_the_names_of_its_slots,
            what_is_out_of_order_is_given_to_nobody,
            a_holder_keeps_the_slot_that_breaks,
            nobody_is_admitted_beyond_the_last_name,
            a_launch_that_joins_is_told_the_same_name,
        }
        nested {
            join_uses_the_slot_of_the_same_process,
            the_end_of_who_joined_begins_no_pause,
            join_tells_the_program_the_slot_it_uses,
            join_uses_the_slots_in_every_table_of_a_repository,
            join_finds_a_slot_above_that_of_another_member,
            take_takes_another_slot,
            a_launch_that_only_its_ancestors_block_is_told_so,
            the_advice_names_only_what_is_missing,
            join_is_for_the_same_command_only,
            a_forged_environment_joins_nothing,
        }
        shared {
            the_windows_of_one_user_are_one_seat,
            a_member_with_more_takes_the_difference,
            a_member_with_less_keeps_the_first_slot,
            a_group_may_have_all_four_holds,
            a_waiter_joins_when_its_group_gets_a_slot,
            who_would_join_is_refused_where_nothing_may_start,
            of_alternatives_one_that_is_joined_comes_first,
            a_launch_in_a_member_joins,
            listings_show_all_members,
            an_overdue_group_is_ended_as_a_whole,
            who_is_ended_is_ended_with_the_group,
            a_storm_of_members,
        }
    }
    waiting {
        queue {
            a_launch_that_waits_for_two_holds_neither,
            a_stopped_waiter_is_passed_over_and_keeps_its_place,
            a_student_who_waits_below_his_ceiling_does_not_hold_up_staff,
            nobody_overtakes_the_line,
            a_higher_limit_ends_the_wait,
            a_waiter_obeys_the_policy_that_is_in_force,
            a_waiter_takes_the_alternative_that_is_free_first,
            an_alternative_that_is_too_soon_leaves_the_other_to_wait_for,
            alternatives_that_exclude_each_other_can_be_waited_for,
            whoever_may_not_use_a_reserved_slot_does_not_hold_up_its_owner,
            an_alarm_of_the_caller_ends_the_wait,
        }
        waits {
            a_claim_that_is_never_waited_for_refuses_at_once,
            whoever_has_waited_is_refused_when_something_is_full_that_is_never_waited_for,
            of_alternatives_one_is_waited_for_longer_than_the_other,
            the_command_line_caps_the_whole_launch,
            whoever_waits_by_two_limits_is_passed_by_a_higher_one_alone,
            a_line_ends,
            the_time_of_a_claim_counts_in_its_line_alone,
            whoever_comes_from_another_line_joins,
            students_fill_their_line_and_staff_does_not_count_them,
            a_list_is_had_as_a_whole_or_the_next_alternative_is,
            a_claim_beside_a_list_that_has_it_too_is_one_claim,
            fair_queue,
            sign_off,
        }
        the_line {
            a_raised_limit_lets_nobody_pass_the_line,
            whoever_ends_a_holder_sees_other_slots_and_its_deadline,
            the_head_that_ends_a_holder_keeps_its_deadline,
            whoever_is_first_for_one_of_two_ends_its_holder,
            whoever_wants_one_of_two_is_passed_in_neither,
            another_clock_changes_no_place,
        }
    }
    policy {
        hours {
            who_stands_in_line_when_the_hour_is_over_is_decided_anew,
        }
        waiting_examples {
            nightly_sync_comes_neither_too_soon_nor_beside_another,
            nightly_sync_does_not_hang_for_ever,
            builds_stand_in_line_and_a_release_is_not_held_up,
            each_run_has_a_gpu_of_its_own_until_its_last_worker_has_ended,
            the_server_that_a_script_leaves_behind_does_not_keep_the_lock,
        }
    }
}
