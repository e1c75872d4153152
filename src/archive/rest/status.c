/* Routes: the status of the archive, and its check. */
#include "archive/rest/rest.h"

#include "archive/check.h"
#include "archive/forges.h"
#include "archive/progress.h"
#include "archive/rebuild.h"
#include "archive/runner.h"
#include "archive/satellites.h"
#include "archive/schedule.h"
#include "base/clock.h"

static rest_fn status_run, check_run, rebuild_run;

static const struct rest_row status_rows[] = {
    {HTTP_GET, "/api/v1/archive/status", REST_ADMIN, "The archive in numbers, and what runs now.",
     status_run,
     .answer = REST_FIELDS(
         {"tracked", "Accounts that are archived.", REST_INTEGER},
         {"due", "Accounts that may be synced now.", REST_INTEGER},
         {"never", "Accounts that were never synced in full.", REST_INTEGER},
         {"leased", "Accounts that somebody works on.", REST_INTEGER},
         {"held", "Accounts that failed and rest.", REST_INTEGER},
         {"first", "Accounts that come before all others.", REST_INTEGER},
         {"built", "Slots whose accounts are known; 256: all.", REST_INTEGER},
         {"epoch", "The number of the table of slots; 0: there is none yet.", REST_INTEGER},
         {"running", "Syncs that run now, in all processes.", REST_OBJECTS,
          .members = REST_FIELDS({"account", "The account."}, {"worker", "Who syncs it."},
                                 {"started", "When the sync began.", REST_TIME},
                                 {"repositories", "Repositories of the account.", REST_INTEGER},
                                 {"done", "Repositories that are done.", REST_INTEGER},
                                 {"failed", "Repositories that failed.", REST_INTEGER},
                                 {"bytes", "Bytes from git servers so far.", REST_INTEGER},
                                 {"bytes_per_second", "Bytes per second so far.", REST_INTEGER})},
         {"forges", "The forges, with their quotas.", REST_OBJECTS,
          .members = REST_FIELDS(
              {"host", "The forge's host."}, {"tokens", "How many tokens there are.", REST_INTEGER},
              {"remaining", "Requests that the forge still allows; -1: not known.", REST_INTEGER},
              {"reset", "When there will be more.", REST_TIME},
              {"rests_until", "No request is made before this time.", REST_TIME})},
         {"satellites", "The satellites.", REST_OBJECTS,
          .members = REST_FIELDS({"name", "The storage's name."},
                                 {"slots", "How many slots it holds.", REST_INTEGER},
                                 {"leaving", "Slots that leave it.", REST_INTEGER},
                                 {"up", "It can be reached.", REST_BOOLEAN})})},
    {HTTP_POST, "/api/v1/archive/check", REST_ADMIN,
     "Compare the record of an account, or of every account, with the objects in its satellite and "
     "with `tracked`. Without an account, also look on all satellites for objects and open uploads "
     "that no tracked account explains.",
     check_run, .body = REST_FIELDS({"account", "The account; absent: all."}),
     .answer =
         REST_FIELDS({"accounts", "How many accounts were looked at.", REST_INTEGER},
                     {"repositories", "How many repositories were looked at.", REST_INTEGER},
                     {"count", "How many findings there are.", REST_INTEGER},
                     {"findings", "The first of them.", REST_OBJECTS,
                      .members = REST_FIELDS({"account", "The account."}, {"key", "The object."},
                                             {"finding", "What is wrong."})})},
    {HTTP_POST, "/api/v1/archive/rebuild", REST_ADMIN,
     "Read from the satellites again which accounts are archived.", rebuild_run, .status = 202,
     .answer = REST_FIELDS({"slots", "How many slots will be read.", REST_INTEGER})},
};
const struct rest_table archive_status_routes = {REST_ROWS(status_rows)};

/* --- the status --- */

static int status_counts(struct rest_call *c, struct err *err)
{
    struct archive *x = rest_archive(c);
    struct schedule_counts n;
    int code = schedule_counts(x->schedule, true, x->resync_after_ms, &n, err);

    if (code < 0)
        return code;
    json_out_member_u64(c->w, "tracked", n.tracked);
    json_out_member_u64(c->w, "due", n.due);
    json_out_member_u64(c->w, "never", n.never);
    json_out_member_u64(c->w, "leased", n.leased);
    json_out_member_u64(c->w, "held", n.held);
    json_out_member_u64(c->w, "first", n.first);
    json_out_member_u64(c->w, "built", n.built);
    return 0;
}

static void status_sync(struct json_out *w, const struct progress *p)
{
    int64_t ms = clock_wall_ms() - p->started_ms;

    json_out_open(w, '{');
    json_out_member_str(w, "account", p->member);
    json_out_member_str(w, "worker", p->worker);
    rest_time(w, "started", p->started_ms);
    json_out_member_u64(w, "repositories", p->total);
    json_out_member_u64(w, "done", p->done);
    json_out_member_u64(w, "failed", p->failed);
    json_out_member_u64(w, "bytes", p->bytes);
    json_out_member_u64(w, "bytes_per_second", ms > 0 ? p->bytes * MS_PER_S / (uint64_t)ms : 0);
    json_out_close(w, '}');
}

static int status_running(struct rest_call *c, struct err *err)
{
    struct progress *list = NULL;
    size_t count = 0;
    int code = progress_list(rest_archive(c), c->arena, &list, &count, err);

    json_out_key(c->w, "running");
    json_out_open(c->w, '[');
    for (size_t i = 0; i < count && code == 0; i++)
        status_sync(c->w, &list[i]);
    json_out_close(c->w, ']');
    return code;
}

/* The number of requests that a host still allows, summed over all tokens that are alive. */
static void status_quota(struct json_out *w, const struct forge_state *s)
{
    int64_t remaining = -1, reset_ms = 0;

    for (size_t i = 0; i < s->token_count; i++) {
        const struct quota_state *t = &s->tokens[i];
        if (t->dead_ms || t->remaining < 0)
            continue;
        remaining = (remaining < 0 ? 0 : remaining) + t->remaining;
        if (t->reset_ms && (reset_ms == 0 || t->reset_ms < reset_ms))
            reset_ms = t->reset_ms;
    }
    json_out_member_i64(w, "remaining", remaining);
    rest_time(w, "reset", reset_ms);
    rest_time(w, "rests_until", s->until_ms);
}

static int status_forges(struct rest_call *c, struct err *err)
{
    struct archive *x = rest_archive(c);
    struct forge *forges = NULL;
    size_t count = 0;
    int code = forges_list(x->forges, c->arena, &forges, &count, err);

    json_out_key(c->w, "forges");
    json_out_open(c->w, '[');
    for (size_t i = 0; i < count && code == 0; i++) {
        struct forge_state state = {0};
        code = forges_state(x->forges, c->arena, forges[i].host, &state, err);
        json_out_open(c->w, '{');
        json_out_member_str(c->w, "host", forges[i].host);
        json_out_member_u64(c->w, "tokens", forges[i].tokens);
        status_quota(c->w, &state);
        json_out_close(c->w, '}');
    }
    json_out_close(c->w, ']');
    return code;
}

static void status_satellites(struct rest_call *c)
{
    struct satellites *s = rest_archive(c)->satellites;
    struct slots t;

    satellites_table(s, &t);
    json_out_member_u64(c->w, "epoch", t.epoch);
    json_out_key(c->w, "satellites");
    json_out_open(c->w, '[');
    for (size_t i = 0; i < t.count; i++) {
        size_t leaving = 0;
        for (unsigned slot = 0; slot < SLOT_COUNT; slot++)
            leaving += slots_moves(&t, slot) && t.leaves[slot] == i;
        json_out_open(c->w, '{');
        json_out_member_str(c->w, "name", str_z(t.names[i]));
        json_out_member_u64(c->w, "slots", slots_held(&t, i));
        json_out_member_u64(c->w, "leaving", leaving);
        json_out_member_bool(c->w, "up", satellites_is_up(s, str_z(t.names[i])));
        json_out_close(c->w, '}');
    }
    json_out_close(c->w, ']');
}

static int status_run(struct rest_call *c, struct err *err)
{
    int code = status_counts(c, err);

    if (code == 0)
        code = status_running(c, err);
    if (code == 0)
        code = status_forges(c, err);
    if (code == 0)
        status_satellites(c);
    return code;
}

/* --- the check and the rebuild --- */

static void check_finding(void *ctx, const struct check_finding *f)
{
    struct json_out *w = ctx;

    json_out_open(w, '{');
    json_out_member_str(w, "account", f->account);
    json_out_member_str(w, "key", f->key);
    json_out_member_str(w, "finding", str_z(f->text));
    json_out_close(w, '}');
}

static int check_run(struct rest_call *c, struct err *err)
{
    struct archive_check check = {.found = check_finding, .ctx = c->w};
    struct archive_account account;
    int code = 0;

    if (rest_given(c, "account"))
        code = archive_account_read(&account, c->arena, rest_text(c, "account"), err);
    if (code < 0)
        return code;
    json_out_key(c->w, "findings");
    json_out_open(c->w, '[');
    code = rest_given(c, "account") ? archive_check_account(&check, rest_archive(c), &account, err)
                                    : archive_check_all(&check, rest_archive(c), err);
    json_out_close(c->w, ']');
    json_out_member_u64(c->w, "count", check.count);
    json_out_member_u64(c->w, "accounts", check.accounts);
    json_out_member_u64(c->w, "repositories", check.repos);
    return code;
}

static int rebuild_run(struct rest_call *c, struct err *err)
{
    int code = rebuild_all(rest_archive(c)->rebuild, err);

    json_out_member_u64(c->w, "slots", SLOT_COUNT);
    return code;
}
