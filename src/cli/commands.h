/* The commands' functions and flags, for the table in main.c. One file a command group. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/command.h"

command_fn command_serve;
command_fn command_config;
command_fn command_backup;
command_fn command_status;
command_fn command_user_add, command_user_list, command_user_remove, command_user_key;
command_fn command_storage_add, command_storage_set, command_storage_list, command_storage_remove,
    command_storage_key, command_storage_main, command_storage_notify, command_storage_claim,
    command_storage_test, command_storage_scrub;
command_fn command_bucket_list, command_bucket_show, command_bucket_route;
command_fn command_webhook_add, command_webhook_list, command_webhook_remove;
command_fn command_task_list, command_task_show, command_task_run, command_task_cancel,
    command_task_delete, command_task_queues, command_task_pause, command_task_resume;
command_fn command_replicate_add, command_replicate_list, command_replicate_show,
    command_replicate_pause, command_replicate_resume, command_replicate_remove,
    command_replicate_resync;
command_fn command_switch_start, command_switch_plan, command_switch_list, command_switch_show,
    command_switch_abort;
command_fn command_diff_check, command_diff_list, command_diff_report, command_diff_fix,
    command_diff_recheck, command_diff_purge;
command_fn command_swarm_user_add, command_swarm_user_list, command_swarm_user_remove,
    command_swarm_client_add, command_swarm_client_list, command_swarm_client_remove,
    command_swarm_torrent_add, command_swarm_torrent_list, command_swarm_torrent_remove,
    command_swarm_stats, command_swarm_check;
command_fn command_swarm_feed_add, command_swarm_feed_list, command_swarm_feed_remove,
    command_swarm_feed_read, command_swarm_feed_acknowledge;
command_fn command_torrent_create, command_torrent_show, command_torrent_list,
    command_torrent_remove;
command_fn command_help;
command_fn command_version;

extern const struct flag serve_flags[];
extern const struct flag storage_add_flags[], storage_set_flags[], storage_key_flags[],
    storage_remove_flags[];
extern const struct flag user_add_flags[], user_key_flags[], bucket_route_flags[];
extern const struct flag webhook_add_flags[], task_list_flags[];
extern const struct flag replicate_add_flags[], replicate_list_flags[], replicate_select_flags[],
    replicate_remove_flags[];
extern const struct flag switch_start_flags[], switch_plan_flags[], switch_list_flags[],
    switch_select_flags[];
extern const struct flag torrent_create_flags[], torrent_show_flags[];
extern const struct flag diff_check_flags[], diff_watch_flags[], diff_fix_flags[],
    diff_report_flags[];

extern const struct flag swarm_user_add_flags[], swarm_user_list_flags[], swarm_torrent_add_flags[],
    swarm_feed_read_flags[];

/* "no command '...'; did you mean ...?"; EXIT_USAGE. */
int command_unknown(const struct command_table *table, struct str typed);

#endif
