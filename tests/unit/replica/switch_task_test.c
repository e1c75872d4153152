/* The tasks of switches, run by hand: what they wait for, when they begin, how they end. */
#include "replica/switch/switch.h"
#include "coord/gateways.h"
#include "coord/worker_int.h"
#include "replica/went_back.h"
#include "unit/coord/tell.h"
#include "unit/replica/sides.h"
#include "unit/store/embedded_test.h"
#include "unit/store/four.h"

/* The bucket "box" on storages "one" and "two", replicated, the initial copy done. */
struct rig {
    struct four f;
    struct sides s;
    struct replications *r;
    struct queue *q;
    struct locks *locks;
    struct switcher o;
    struct replication_id id;
    struct arena a;
    int64_t put_back_s; /* that the last run asked for */
    struct err why;
    struct str moves; /* name of the storage at which keys move between shards */
};

static struct storage *find(void *ctx, struct str name)
{
    struct rig *rig = ctx;

    return str_eq(name, STR("one"))   ? rig->s.from->storage
           : str_eq(name, STR("two")) ? rig->s.to->storage
                                      : NULL;
}

static bool moves(void *ctx, const struct storage *s, struct str bucket)
{
    struct rig *rig = ctx;

    CHECK_STR(bucket, STR("box"));
    return s == find(ctx, rig->moves);
}

static struct str main_storage(void *ctx)
{
    (void)ctx;
    return STR("one");
}

static void play(struct rig *rig, const char *command)
{
    struct str argv[8], rest = str_z(command);
    struct reply *reply;
    struct err err = {0};
    size_t n = 0;

    while (n < ARRAY_SIZE(argv) && str_token(&rest, " ", &argv[n]))
        n++;
    CHECK_OK(store_command(rig->f.stores[DB_CONFIG], &rig->a, &reply, argv, n, &err));
    CHECK(reply->type != REPLY_ERROR);
}

static void rig_open(struct rig *rig)
{
    *rig = (struct rig){.id = {STR("owner"), STR("box"), STR("one"), STR("two"), STR_EMPTY}};
    four_open_embedded(&rig->f);
    struct store **d = rig->f.stores;
    struct replication_new n = {.id = rig->id, .init_done = true};
    struct err err = {0};

    sides_open(&rig->s, SIDE_LOCAL, SIDE_LOCAL);
    CHECK_OK(replications_open(&rig->r,
                               &(struct replications_options){
                                   .app = d[DB_APP], .queue = d[DB_QUEUE], .config = d[DB_CONFIG]},
                               &err));
    CHECK_OK(locks_open(&rig->locks, &(struct locks_options){.store = d[DB_LOCK]}, &err));
    rig->q = queue_new(d[DB_QUEUE]);
    rig->o = (struct switcher){.replications = rig->r,
                               .config = d[DB_CONFIG],
                               .queue = rig->q,
                               .locks = rig->locks,
                               .find = find,
                               .moves = moves,
                               .main = main_storage,
                               .ctx = rig};
    CHECK_OK(replication_add(rig->r, &n, STR("one"), &err));
}

static void rig_close(struct rig *rig)
{
    queue_free(rig->q);
    locks_close(rig->locks);
    replications_close(rig->r);
    sides_close(&rig->s);
    four_close(&rig->f);
    arena_release(&rig->a);
}

static void plan(struct rig *rig, struct switch_options o)
{
    struct task t = switch_task(&rig->a, &rig->id, o.multipart_ttl_ns > 0);
    struct err err = {0};

    CHECK_OK(switch_plan(rig->r, &rig->id, &o, &t, STR("one"), &err));
}

/* Runs the task as a worker would, and returns what the handler returned. */
static int run(struct rig *rig, bool live)
{
    struct task t = switch_task(&rig->a, &rig->id, live);
    struct running r = {.run = {.task = &t, .arena = &rig->a, .ctx = &rig->o}};

    atomic_init(&r.lease_until_ns, UINT64_MAX);
    rig->why = (struct err){0};
    int code = (live ? switch_live_handle : switch_down_handle)(&r.run, &rig->why);
    rig->put_back_s = r.run.put_back_s;
    return code;
}

static void check_ended(struct rig *rig, bool live)
{
    int code = run(rig, live);

    if (code < 0)
        test_fail(__FILE__, __LINE__, "it waits: %s", rig->why.text);
}

static void check_waits(struct rig *rig, bool live, const char *why)
{
    CHECK_INT(run(rig, live), ERR_AGAIN);
    CHECK(rig->put_back_s > 0);
    if (str_find(str_z(rig->why.text), str_z(why)) < 0)
        test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", rig->why.text, why);
}

static void check_state(struct rig *rig, enum switch_status status, const char *last)
{
    struct bucket_switch s;
    struct str *lines;
    size_t count;
    struct err err = {0};

    CHECK_OK(switch_read(rig->r, &rig->a, STR("owner"), STR("box"), &s, &err));
    CHECK_STR(str_z(switch_status_names[s.status]), str_z(switch_status_names[status]));
    CHECK_OK(switch_history(rig->r, &rig->a, STR("owner"), STR("box"), &lines, &count, &err));
    if (str_find(lines[count - 1], str_z(last)) < 0)
        test_fail(__FILE__, __LINE__, "'%.*s' does not say '%s'", (int)lines[count - 1].len,
                  lines[count - 1].p, last);
}

static void check_route(struct rig *rig, const char *want)
{
    check_reply(rig->f.stores[DB_CONFIG], "GET p:route:owner:box", want);
    check_reply(rig->f.stores[DB_CONFIG], "EXISTS p:route_block:one p:route_block:two", "0");
}

#define LIVE ((struct switch_options){.multipart_ttl_ns = 3600000000000})

/* --- when it begins --- */

TEST(switch_task, with_nothing_set_it_is_done_at_once)
{
    struct rig rig;

    rig_open(&rig);
    lab_put(rig.s.from, &rig.s.a, "k", STR("same"));
    lab_put(rig.s.to, &rig.s.a, "k", STR("same"));
    plan(&rig, (struct switch_options){0});
    check_ended(&rig, false);
    check_state(&rig, SWITCH_DONE, "check_in_progress -> done");
    check_route(&rig, "\"two\"");
    check_ended(&rig, false); /* there is nothing left */
    rig_close(&rig);
}

TEST(switch_task, it_begins_at_its_time_and_not_before)
{
    struct rig rig;

    rig_open(&rig);
    plan(&rig, (struct switch_options){.start_at_ms = 4000000000000});
    check_waits(&rig, false, "has not come");
    CHECK(rig.put_back_s <= 30);
    play(&rig, "HSET p:switch:owner:box startAt 2020-01-01T00:00:00Z");
    check_ended(&rig, false);
    check_state(&rig, SWITCH_DONE, "done");
    rig_close(&rig);
}

static void wait_for_moves(bool live)
{
    static const char *const storages[] = {"one", "two"};
    struct rig rig;

    rig_open(&rig);
    plan(&rig, (struct switch_options){.multipart_ttl_ns = live ? NS_PER_S : 0});
    for (size_t i = 0; i < ARRAY_SIZE(storages); i++) {
        rig.moves = str_z(storages[i]);
        check_waits(&rig, live, "moving between its shards");
        check_route(&rig, "\"one\"");
    }
    rig.moves = STR_EMPTY;
    check_ended(&rig, live);
    check_state(&rig, SWITCH_DONE, "done");
    rig_close(&rig);
}

TEST(switch_task, keys_that_move_between_shards_are_waited_for)
{
    wait_for_moves(false);
}

TEST(switch_task, keys_that_move_between_shards_are_waited_for_without_downtime)
{
    wait_for_moves(true);
}

TEST(switch_task, a_cron_line_counts_from_the_plan_and_then_from_the_last_time)
{
    struct rig rig;

    rig_open(&rig);
    lab_put(rig.s.from, &rig.s.a, "k", STR("x")); /* it will fail */
    plan(&rig, (struct switch_options){.cron = STR("0 0 1 1 *")});
    check_waits(&rig, false, "has not come");
    play(&rig, "HSET p:switch:owner:box createdAt 2020-01-01T00:00:00Z");
    check_waits(&rig, false, "has not come"); /* after it failed once */
    check_state(&rig, SWITCH_ERROR, "differ in 1: k (missing)");
    check_route(&rig, "\"one\"");
    play(&rig, "HSET p:switch:owner:box startedAt 2020-01-01T00:00:00Z");
    lab_put(rig.s.to, &rig.s.a, "k", STR("x"));
    check_ended(&rig, false);
    check_state(&rig, SWITCH_DONE, "done");
    rig_close(&rig);
}

TEST(switch_task, without_a_cron_line_a_failure_is_final_until_it_is_planned_again)
{
    struct rig rig;

    rig_open(&rig);
    lab_put(rig.s.from, &rig.s.a, "k", STR("one"));
    lab_put(rig.s.to, &rig.s.a, "k", STR("two"));
    lab_put(rig.s.to, &rig.s.a, "more", STR("two"));
    plan(&rig, (struct switch_options){0});
    check_ended(&rig, false);
    check_state(&rig, SWITCH_ERROR, "differ in 2: k (etag), more (missing)");
    check_route(&rig, "\"one\"");
    lab_put(rig.s.to, &rig.s.a, "k", STR("one"));
    lab_put(rig.s.from, &rig.s.a, "more", STR("two"));
    check_ended(&rig, false);
    check_state(&rig, SWITCH_ERROR, "differ");
    plan(&rig, (struct switch_options){0});
    check_ended(&rig, false);
    check_state(&rig, SWITCH_DONE, "done");
    rig_close(&rig);
}

TEST(switch_task, what_is_not_all_there_is_waited_for_or_skipped)
{
    static const char spoil[] = "HSET p:repl_st:owner:box:one:two obj_listed 1";
    struct rig rig;

    rig_open(&rig);
    play(&rig, spoil);
    plan(&rig, (struct switch_options){.on_init_done = true});
    check_waits(&rig, false, "initial copy");
    check_state(&rig, SWITCH_NOT_STARTED, "planned");
    plan(&rig, (struct switch_options){.start_at_ms = 1});
    check_ended(&rig, false);
    check_state(&rig, SWITCH_SKIPPED, "initial copy");
    play(&rig, "HSET p:repl_st:owner:box:one:two obj_listed 0 events 9 events_done 4");
    plan(&rig, (struct switch_options){.max_event_lag = 4});
    check_ended(&rig, false);
    check_state(&rig, SWITCH_SKIPPED, "5 changes are not copied yet, which is more than 4");
    check_route(&rig, "\"one\"");
    rig_close(&rig);
}

TEST(switch_task, what_is_paused_waits)
{
    struct rig rig;
    struct err err = {0};

    rig_open(&rig);
    plan(&rig, (struct switch_options){0});
    CHECK_OK(replication_pause(rig.r, &rig.id, true, &err));
    check_waits(&rig, false, "paused");
    CHECK_OK(replication_pause(rig.r, &rig.id, false, &err));
    check_ended(&rig, false);
    check_state(&rig, SWITCH_DONE, "done");
    rig_close(&rig);
}

/* --- after the machine was down: R6 --- */

static void resync_copy(struct rig *rig)
{
    struct task first = {.type = STR("t"), .id = STR("i"), .queue = STR("q")};
    struct err err = {0};

    CHECK_ERR(replication_resync(rig->r, &rig->id, &first, false, &err), ERR_CONFLICT);
    CHECK_OK(replication_resync(rig->r, &rig->id, &first, true, &err));
}

#define COPIED                                                                                     \
    "HSET p:repl_st:owner:box:one:two listings 0 listing_started 1 init_done_at "                  \
    "2026-01-01T00:00:00Z"

TEST(switch_task, a_copy_that_was_begun_anew_since_the_plan_is_waited_for)
{
    struct rig rig;

    rig_open(&rig);
    for (int live = 0; live < 2; live++) {
        plan(&rig, live ? LIVE : (struct switch_options){.skip_check = true});
        resync_copy(&rig);
        check_waits(&rig, live, "the bucket is copied anew");
        check_state(&rig, SWITCH_NOT_STARTED, "planned");
        check_route(&rig, "\"one\"");
        if (live == 0) {
            struct err err = {0};
            CHECK_OK(switch_abort(rig.r, STR("owner"), STR("box"), &err));
            play(&rig, COPIED);
        }
    }
    play(&rig, COPIED);
    check_ended(&rig, true);
    check_state(&rig, SWITCH_DONE, "the route leads to two");
    rig_close(&rig);
}

TEST(switch_task, at_its_own_time_a_copy_that_was_begun_anew_is_not_waited_for)
{
    struct rig rig;

    rig_open(&rig);
    plan(&rig, (struct switch_options){.start_at_ms = 1});
    resync_copy(&rig);
    check_ended(&rig, false);
    check_state(&rig, SWITCH_SKIPPED, "initial copy");
    rig_close(&rig);
}

/* --- while it goes on --- */

/* S2 */
TEST(switch_task, blocked_it_waits_for_gateways_and_changes_until_its_duration_is_over)
{
    struct store *config;
    struct rig rig;

    rig_open(&rig);
    config = rig.f.stores[DB_CONFIG];
    tell_epoch(config, STR("g"), 1);
    play(&rig, "HSET p:repl_st:owner:box:one:two events 1");
    plan(&rig, (struct switch_options){.max_duration_ns = 3600000000000});
    check_waits(&rig, false, "not every gateway");
    check_state(&rig, SWITCH_IN_PROGRESS, "blocked");
    tell_epoch(config, STR("g"), INT64_MAX / 2);
    check_waits(&rig, false, "not copied yet: 1");
    play(&rig, "HSET p:switch:owner:box startedAt 2020-01-01T00:00:00Z");
    check_ended(&rig, false);
    check_state(&rig, SWITCH_ERROR, "the maximal duration is over; 1 changes");
    check_route(&rig, "\"one\"");
    rig_close(&rig);
}

TEST(switch_task, a_bucket_that_is_gone_is_an_error_unless_nobody_looks)
{
    struct rig rig;
    struct err err = {0};

    rig_open(&rig);
    struct storage *two = rig.s.to->storage;
    CHECK_OK(two->ops->remove_bucket(two, STR("owner"), STR("box"), &err));
    plan(&rig, (struct switch_options){0});
    check_ended(&rig, false);
    check_state(&rig, SWITCH_ERROR, "not there");
    plan(&rig, (struct switch_options){.skip_check = true});
    check_ended(&rig, false);
    check_state(&rig, SWITCH_DONE, "done");
    rig_close(&rig);
}

/* --- without downtime --- */

/* S4 */
TEST(switch_task, without_downtime_the_route_changes_when_every_gateway_knows)
{
    struct rig rig;

    rig_open(&rig);
    tell_epoch(rig.f.stores[DB_CONFIG], STR("g"), 1);
    plan(&rig, LIVE);
    check_waits(&rig, true, "not every gateway");
    check_state(&rig, SWITCH_NOT_STARTED, "planned");
    check_route(&rig, "\"one\"");
    tell_epoch(rig.f.stores[DB_CONFIG], STR("g"), INT64_MAX / 2);
    check_ended(&rig, true);
    check_state(&rig, SWITCH_DONE, "the route leads to two");
    check_route(&rig, "\"two\"");
    rig_close(&rig);
}

TEST(switch_task, what_cannot_be_switched_any_more_ends_in_an_error)
{
    struct rig rig;
    struct err err = {0};

    rig_open(&rig);
    plan(&rig, LIVE);
    play(&rig, "ZADD p:repl:owner:box 0 one:three");
    check_ended(&rig, true);
    check_state(&rig, SWITCH_ERROR, "more than one destination");
    check_route(&rig, "\"one\"");
    CHECK_OK(switch_abort(rig.r, STR("owner"), STR("box"), &err));
    check_ended(&rig, true); /* it is gone */
    rig_close(&rig);
}

/* S7, S8 */
TEST(switch_task, uploads_on_the_old_side_are_waited_for_until_their_time_is_over)
{
    struct object_meta meta = {.owner = STR("owner")};
    struct upload_info upload = {.key = STR("big")};
    struct rig rig;
    struct err err = {0};

    rig_open(&rig);
    CHECK_OK(
        rig.s.from->ops->upload_begin(rig.s.from, &rig.a, upload.key, &meta, &upload.id, &err));
    plan(&rig, LIVE);
    check_waits(&rig, true, "uploads open on storage one: 1");
    check_state(&rig, SWITCH_IN_PROGRESS, "the route leads to two");
    CHECK_OK(rig.s.from->ops->upload_abort(rig.s.from, &upload, &err));
    check_ended(&rig, true);
    check_state(&rig, SWITCH_DONE, "done");
    rig_close(&rig);
}

TEST(switch_task, uploads_that_nobody_ends_are_left)
{
    struct object_meta meta = {.owner = STR("owner")};
    struct str id;
    struct rig rig;
    struct err err = {0};

    rig_open(&rig);
    CHECK_OK(rig.s.from->ops->upload_begin(rig.s.from, &rig.a, STR("big"), &meta, &id, &err));
    plan(&rig, LIVE);
    check_waits(&rig, true, "uploads open on storage one: 1");
    play(&rig, "HSET p:switch:owner:box startedAt 2020-01-01T00:00:00Z");
    check_ended(&rig, true);
    check_state(&rig, SWITCH_DONE, "done");
    rig_close(&rig);
}

/* --- with downtime, and uploads that are open --- */

#define UPLOADS ((struct switch_options){.uploads_ttl_ns = 3600000000000})

static struct upload_info begin_upload(struct rig *rig)
{
    struct object_meta meta = {.owner = STR("owner")};
    struct upload_info upload = {.key = STR("big")};
    struct err err = {0};

    CHECK_OK(
        rig->s.from->ops->upload_begin(rig->s.from, &rig->a, upload.key, &meta, &upload.id, &err));
    return upload;
}

static void check_blocked(struct rig *rig, bool blocked)
{
    check_reply(rig->f.stores[DB_CONFIG], "EXISTS p:route_block:one p:route_block:two",
                blocked ? "2" : "0");
}

/* S11 */
TEST(switch_task, with_downtime_it_goes_on_without_for_the_uploads_that_are_open)
{
    struct rig rig;
    struct err err = {0};

    rig_open(&rig);
    struct upload_info upload = begin_upload(&rig);
    struct store *config = rig.f.stores[DB_CONFIG];
    plan(&rig, UPLOADS);
    check_ended(&rig, false);
    check_state(&rig, SWITCH_IN_PROGRESS, "the route leads to two; uploads open on one: 1");
    check_reply(config, "GET p:route:owner:box", "\"two\"");
    check_blocked(&rig, true);
    tell_epoch(config, STR("g"), 1);
    check_waits(&rig, true, "not every gateway");
    check_blocked(&rig, true);
    tell_epoch(config, STR("g"), INT64_MAX / 2);
    check_waits(&rig, true, "uploads open on storage one: 1");
    check_state(&rig, SWITCH_IN_PROGRESS, "unblocked");
    check_route(&rig, "\"two\"");
    check_ended(&rig, false); /* the task that it had before has nothing to do */
    CHECK_OK(rig.s.from->ops->upload_abort(rig.s.from, &upload, &err));
    check_ended(&rig, true);
    check_state(&rig, SWITCH_DONE, "in_progress -> done");
    check_route(&rig, "\"two\"");
    rig_close(&rig);
}

TEST(switch_task, given_up_for_its_uploads_it_is_not_blocked_any_more)
{
    struct bucket_switch s;
    struct rig rig;
    struct err err = {0};

    rig_open(&rig);
    begin_upload(&rig);
    plan(&rig, UPLOADS);
    check_ended(&rig, false);
    check_blocked(&rig, true);
    CHECK_OK(switch_abort(rig.r, STR("owner"), STR("box"), &err));
    check_route(&rig, "\"one\"");
    check_ended(&rig, true);
    CHECK_ERR(switch_read(rig.r, &rig.a, STR("owner"), STR("box"), &s, &err), ERR_NOT_FOUND);
    rig_close(&rig);
}

TEST(switch_task, with_downtime_uploads_are_left_if_nobody_waits_for_them)
{
    struct rig rig;

    rig_open(&rig);
    begin_upload(&rig);
    plan(&rig, (struct switch_options){0});
    check_ended(&rig, false);
    check_state(&rig, SWITCH_DONE, "done");
    check_route(&rig, "\"two\"");
    rig_close(&rig);
}

/* S9 */
TEST(switch_task, given_up_it_ends_when_everything_has_gone_back)
{
    struct object_meta meta = {.owner = STR("owner")};
    struct bucket_switch s;
    struct str id;
    struct rig rig;
    struct err err = {0};

    rig_open(&rig);
    CHECK_OK(rig.s.from->ops->upload_begin(rig.s.from, &rig.a, STR("big"), &meta, &id, &err));
    plan(&rig, LIVE);
    check_waits(&rig, true, "uploads open on storage one: 1");
    play(&rig, "HSET p:repl_st:owner:box:two:one events 1");
    CHECK_OK(switch_abort(rig.r, STR("owner"), STR("box"), &err));
    check_waits(&rig, true, "not copied yet: 1"); /* uploads of the old side do not hold it up */
    play(&rig, "HSET p:repl_st:owner:box:two:one events_done 1");
    check_ended(&rig, true);
    CHECK_ERR(switch_read(rig.r, &rig.a, STR("owner"), STR("box"), &s, &err), ERR_NOT_FOUND);
    check_route(&rig, "\"one\"");
    rig_close(&rig);
}

TEST(switch_task, one_at_a_time_works_on_a_bucket)
{
    struct lock *lock;
    struct rig rig;
    struct err err = {0};

    rig_open(&rig);
    plan(&rig, (struct switch_options){0});
    CHECK_OK(lock_take(&lock, rig.locks, STR("lks:owner:box:one:two"), &err));
    CHECK_INT(run(&rig, false), ERR_AGAIN);
    check_state(&rig, SWITCH_NOT_STARTED, "planned");
    lock_release(lock);
    check_ended(&rig, true); /* the switch is of the other kind */
    check_state(&rig, SWITCH_NOT_STARTED, "planned");
    check_ended(&rig, false);
    rig_close(&rig);
}

/* --- after the store went back (docs/store-redis.md, I4) --- */

static void mend(struct rig *rig)
{
    struct went_back w = {rig->r, rig->q, rig->locks, NULL};
    struct err err = {0};

    CHECK_OK(went_back_mend(&w, &err));
}

static void check_status(struct rig *rig, const char *field, const char *value)
{
    struct buf command = {0};

    buf_appendf(&command, "HGET p:repl_st:owner:box:one:two %s", field);
    check_reply(rig->f.stores[DB_CONFIG], command.p, value);
    buf_release(&command);
}

TEST(switch_task, one_that_is_planned_waits_for_the_copy_that_is_begun_anew)
{
    struct rig rig;

    rig_open(&rig);
    plan(&rig, LIVE);
    check_status(&rig, "listings", "\"0\"");
    mend(&rig);
    check_status(&rig, "init_done_at", "nil");
    check_status(&rig, "listings", "\"1\"");
    check_waits(&rig, true, "copied anew");
    rig_close(&rig);
}

TEST(switch_task, with_downtime_one_in_progress_is_given_up)
{
    struct rig rig;
    struct bucket_switch s;
    struct err err = {0};

    rig_open(&rig);
    tell_epoch(rig.f.stores[DB_CONFIG], STR("g"), 1);
    plan(&rig, (struct switch_options){0});
    check_waits(&rig, false, "not every gateway");
    check_blocked(&rig, true);
    mend(&rig);
    check_blocked(&rig, false);
    CHECK_ERR(switch_read(rig.r, &rig.a, STR("owner"), STR("box"), &s, &err), ERR_NOT_FOUND);
    check_status(&rig, "init_done_at", "nil");
    rig_close(&rig);
}

TEST(switch_task, without_downtime_one_in_progress_is_held)
{
    struct rig rig;

    rig_open(&rig);
    plan(&rig, LIVE);
    play(&rig, "HSET p:repl_st:owner:box:one:two events 1");
    check_waits(&rig, true, "not copied yet");
    check_state(&rig, SWITCH_IN_PROGRESS, "the route leads to two");
    mend(&rig);
    check_status(&rig, "paused", "\"1\"");
    check_route(&rig, "\"two\"");
    check_state(&rig, SWITCH_IN_PROGRESS, "the route leads to two");
    rig_close(&rig);
}

/* The script itself refuses too, as the store may go back after the last look. */
TEST(switch_task, none_begins_while_the_store_may_have_lost_changes)
{
    struct rig rig;

    rig_open(&rig);
    plan(&rig, LIVE);
    play(&rig, "HSET w:installation back 1");
    check_waits(&rig, true, "may have lost changes");
    check_state(&rig, SWITCH_NOT_STARTED, "planned");
    play(&rig, "HDEL w:installation back");
    check_ended(&rig, true);
    check_state(&rig, SWITCH_DONE, "the route leads to two");
    rig_close(&rig);
}
