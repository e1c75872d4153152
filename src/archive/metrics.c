/* The metrics of the archive. */
#include "archive/room.h"
#include "archive/runner.h"

enum { FROM_ARCHIVE, FROM_RUNNER };

#define ARCHIVE_NUMBER(member) METRIC_ONE(FROM_ARCHIVE, struct archive_numbers, member)
#define RUNNER_NUMBER(member)  METRIC_ONE(FROM_RUNNER, struct runner_numbers, member)

#define REPOS(name, code)                                                                          \
    "outcome=\"" name "\"", offsetof(struct archive_numbers, repos[ARCHIVE_##code])
static const struct metric_series repo_outcomes[] = {
    {REPOS("ok", OK)},
    {REPOS("unchanged", UNCHANGED)},
    {REPOS("renamed", RENAMED)},
    {REPOS("gone", GONE)},
    {REPOS("dmca", DMCA)},
    {REPOS("tos", TOS)},
    {REPOS("disabled", DISABLED)},
    {REPOS("empty", EMPTY)},
    {REPOS("too-big", TOO_BIG)},
    {REPOS("auth", AUTH)},
    {REPOS("rate", RATE)},
    {REPOS("timeout", TIMEOUT)},
    {REPOS("http-5xx", HTTP_5XX)},
    {REPOS("protocol", PROTOCOL)},
    {REPOS("redirect", REDIRECT)},
    {REPOS("corrupt", CORRUPT)},
    {REPOS("storage", STORAGE)},
};
_Static_assert(ARRAY_SIZE(repo_outcomes) == ARCHIVE_CODES, "each outcome has a row");

#define SYNCS(name, outcome)                                                                       \
    "outcome=\"" name "\"", offsetof(struct runner_numbers, ended[RUNNER_##outcome])
static const struct metric_series syncs[] = {
    {SYNCS("full", FULL)},
    {SYNCS("failed", FAILED)},
    {SYNCS("put_back", BACK)},
};
_Static_assert(ARRAY_SIZE(syncs) == RUNNER_OUTCOMES, "each outcome has a row");

#define WRITES(name, member) "way=\"" name "\"", offsetof(struct archive_numbers, member)
static const struct metric_series writes[] = {
    {WRITES("whole", fetches)},
    {WRITES("append", appends)},
    {WRITES("header", headers)},
};

#define ACCOUNTS(name, member) "state=\"" name "\"", offsetof(struct runner_numbers, counts.member)
static const struct metric_series accounts[] = {
    {ACCOUNTS("ready", ready)},
    {ACCOUNTS("leased", leased)},
    {ACCOUNTS("held", held)},
};

const struct metric archive_metrics[ARCHIVE_METRICS] = {
    {"weir_archive_repositories_total", METRIC_COUNTER,
     "Repositories that were looked at, by the outcome.",
     METRIC_SEVERAL(FROM_ARCHIVE, repo_outcomes)},
    {"weir_archive_syncs_total", METRIC_COUNTER, "Syncs of accounts that have ended.",
     METRIC_SEVERAL(FROM_RUNNER, syncs)},
    {"weir_archive_locks_lost_total", METRIC_COUNTER, "Syncs whose lock was lost.",
     RUNNER_NUMBER(lost)},
    {"weir_archive_bundles_total", METRIC_COUNTER,
     "Bundles that were written: whole, by appending, or only their header.",
     METRIC_SEVERAL(FROM_ARCHIVE, writes)},
    {"weir_archive_zips_total", METRIC_COUNTER, "ZIP files that were made.", ARCHIVE_NUMBER(zips)},
    {"weir_archive_fetched_bytes_total", METRIC_COUNTER, "Bytes of packs from git servers.",
     ARCHIVE_NUMBER(fetched_bytes)},
    {"weir_archive_written_bytes_total", METRIC_COUNTER,
     "Bytes of bundles that satellites had to write.", ARCHIVE_NUMBER(written_bytes)},
    {"weir_archive_copied_bytes_total", METRIC_COUNTER,
     "Bytes of bundles that satellites copied by themselves.", ARCHIVE_NUMBER(copied_bytes)},
    {"weir_archive_tracked_accounts", METRIC_GAUGE, "Accounts that are archived.",
     RUNNER_NUMBER(counts.tracked)},
    {"weir_archive_accounts", METRIC_GAUGE, "Accounts by what they wait for.",
     METRIC_SEVERAL(FROM_RUNNER, accounts)},
    {"weir_archive_runners", METRIC_GAUGE, "Threads that sync accounts.", RUNNER_NUMBER(threads)},
    {"weir_archive_runners_busy", METRIC_GAUGE, "Threads that sync an account now.",
     RUNNER_NUMBER(busy)},
};

void archive_count(void *state, struct metric_numbers *out)
{
    struct archive_room *r = state;
    struct runner_numbers *n;

    metric_numbers_add(out, FROM_ARCHIVE, &r->archive.numbers);
    if (!r->archive.runner)
        return;
    n = arena_new(out->arena, struct runner_numbers);
    if (!n)
        return;
    runner_numbers(r->archive.runner, n);
    metric_numbers_add(out, FROM_RUNNER, n);
}
