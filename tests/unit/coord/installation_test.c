/* Whether the store is the known one (docs/store-redis.md, I1 to I6), over both engines. */
#include "coord/installation.h"
#include "coord/queue.h"
#include "os/file.h"
#include "unit/store/embedded_test.h"
#include "unit/store/four.h"

#include <stdio.h>
#include <sys/stat.h>

#define BOOT STR("this boot")

struct place {
    struct installation *i;
    char folder[200];
};

static struct installation_options options(struct four *f, const struct place *p)
{
    return (struct installation_options){.config = f->stores[DB_CONFIG],
                                         .app = f->stores[DB_APP],
                                         .queue = f->stores[DB_QUEUE],
                                         .folder = p->folder,
                                         .boot = BOOT,
                                         .shared = true};
}

/* A start in a data folder of that name. */
static void start(struct place *p, struct four *f, const char *name)
{
    snprintf(p->folder, sizeof(p->folder), "%s/%s", test_dir(), name);
    mkdir(p->folder, 0700);
    struct installation_options o = options(f, p);
    struct err err = {0};

    CHECK_OK(installation_open(&p->i, &o, &err));
    CHECK_OK(installation_keep(p->i, &err));
}

static enum installation_state state_of(struct place *p)
{
    struct installation_status s;

    (void)!installation_check(p->i, NULL);
    installation_status(p->i, &s);
    CHECK(atomic_load(installation_halted(p->i)) == (s.state != INSTALLATION_KNOWN));
    return s.state;
}

static struct installation_status status_of(struct place *p)
{
    struct installation_status s;

    CHECK_INT(state_of(p), INSTALLATION_KNOWN);
    installation_status(p->i, &s);
    return s;
}

static void flush_all(struct four *f)
{
    for (int i = 0; i < STORE_DATABASES - 1; i++)
        check_reply(f->stores[i], "FLUSHDB", "OK");
}

TEST_FOUR(installation, the_first_start_gives_a_store_its_id_and_others_take_it)
{
    struct place one, two;

    start(&one, f, "one");
    start(&two, f, "two");
    struct installation_status a = status_of(&one), b = status_of(&two);
    CHECK(a.id[0] && strcmp(a.id, b.id) == 0);
    CHECK(!a.back && !a.unsure && a.round == 1);
    installation_close(one.i);
    start(&one, f, "one");
    CHECK_INT(strcmp(status_of(&one).id, a.id), 0);
    CHECK(!status_of(&one).back);
    installation_close(one.i);
    installation_close(two.i);
}

TEST_FOUR(installation, a_store_that_was_emptied_is_refused_until_somebody_says_so)
{
    struct place one, two;
    struct err err = {0};

    start(&one, f, "one");
    start(&two, f, "two");
    flush_all(f);
    CHECK_INT(state_of(&one), INSTALLATION_EMPTY);
    CHECK_ERR(installation_check(two.i, &err), ERR_STORE);
    installation_close(two.i);
    start(&two, f, "two"); /* a restart changes nothing */
    CHECK_INT(state_of(&two), INSTALLATION_EMPTY);
    check_reply(f->stores[DB_CONFIG], "DBSIZE", "0");
    CHECK_ERR(installation_accept(one.i, ACCEPT_OLDER, STR_EMPTY, &err), ERR_CONFLICT);
    CHECK_ERR(installation_accept(one.i, ACCEPT_OTHER, STR("x"), &err), ERR_CONFLICT);
    CHECK_OK(installation_accept(one.i, ACCEPT_EMPTY, STR_EMPTY, &err));
    CHECK(status_of(&one).back);
    CHECK(status_of(&two).back); /* said once, for all */
    CHECK(installation_is_unsure(two.i));
    CHECK_OK(installation_mended(two.i, status_of(&two).round, &err));
    CHECK(!installation_is_unsure(one.i));
    installation_close(one.i);
    installation_close(two.i);
}

TEST_FOUR(installation, a_store_of_another_is_refused_and_left_as_it_is)
{
    struct place one;
    struct err err = {0};

    start(&one, f, "one");
    flush_all(f);
    check_reply(f->stores[DB_CONFIG], "HSET w:installation id 0123", "1");
    CHECK_INT(state_of(&one), INSTALLATION_OTHER);
    check_reply(f->stores[DB_CONFIG], "DBSIZE", "1");
    check_reply(f->stores[DB_QUEUE], "DBSIZE", "0");
    CHECK_ERR(installation_accept(one.i, ACCEPT_EMPTY, STR_EMPTY, &err), ERR_CONFLICT);
    CHECK_ERR(installation_restore_begin(one.i, true, &err), ERR_CONFLICT);
    CHECK_OK(installation_accept(one.i, ACCEPT_OTHER, STR("0123"), &err));
    installation_close(one.i);
    start(&one, f, "one");
    CHECK_INT(strcmp(status_of(&one).id, "0123"), 0);
    installation_close(one.i);
}

static void add_task(struct queue *q, const char *id, int code)
{
    struct task t = {.type = STR("t"), .queue = STR("api"), .id = str_z(id)};
    struct err err = {0};

    CHECK_ERR(queue_add(q, &t, 60, &err), code);
}

/* The store as it was: the row of the folder has an older number. */
static void set_back(struct four *f, const struct place *p, uint64_t number)
{
    struct arena a = ARENA_INIT(0);
    const char *folder = installation_seen(p->i)->folder;

    check_reply(f->stores[DB_QUEUE],
                arena_fmt(&a, "HSET w:seen %s %llu::1:o", folder, (unsigned long long)number).p,
                "0");
    arena_release(&a);
}

TEST_FOUR(installation, a_step_that_was_acknowledged_and_lost_is_found_by_the_next_one)
{
    struct queue *q = queue_new(f->stores[DB_QUEUE]);
    struct place one;

    start(&one, f, "one");
    struct seen *seen = installation_seen(one.i);
    queue_number_steps(q, seen);
    add_task(q, "a", 0);
    uint64_t before = atomic_load(seen->floor);
    add_task(q, "b", 0);
    CHECK_INT(atomic_load(seen->floor), before + 1);
    set_back(f, &one, before);
    add_task(q, "c", ERR_UNAVAILABLE);
    check_reply(f->stores[DB_QUEUE], "EXISTS asynq:{api}:t:c", "0");
    CHECK(atomic_load(&seen->lost));
    CHECK(installation_is_unsure(one.i));
    CHECK(status_of(&one).back && status_of(&one).round == 2);
    add_task(q, "c", 0);
    queue_free(q);
    installation_close(one.i);
}

/* By a stop in order, and by a kill, which leaves the number in the mapped file. */
TEST_FOUR(installation, what_was_lost_while_nobody_ran_is_found_by_the_next_start)
{
    struct queue *q = queue_new(f->stores[DB_QUEUE]);
    struct place one;

    start(&one, f, "one");
    queue_number_steps(q, installation_seen(one.i));
    add_task(q, "a", 0);
    uint64_t number = atomic_load(installation_seen(one.i)->floor);
    set_back(f, &one, number - 1);
    struct place again = one; /* the killed one is left as it is */
    start(&again, f, "one");
    CHECK(status_of(&again).back);
    queue_free(q);
    installation_close(again.i);
    installation_close(one.i);
}

TEST_FOUR(installation, a_database_that_was_emptied_by_itself_is_a_store_that_went_back)
{
    struct place one;

    start(&one, f, "one");
    for (int db = DB_APP; db <= DB_QUEUE; db++) {
        uint64_t round = status_of(&one).round;
        check_reply(f->stores[db], "FLUSHDB", "OK");
        CHECK(status_of(&one).back);
        CHECK_INT(status_of(&one).round, round + 1);
    }
    installation_close(one.i);
}

TEST_FOUR(installation, lost_changes_of_the_configuration_are_for_a_person_to_judge)
{
    struct place one, two;
    struct err err = {0};

    start(&one, f, "one");
    start(&two, f, "two");
    uint64_t count = status_of(&one).config;
    check_reply(f->stores[DB_CONFIG], "SET w:config 7", "OK");
    CHECK_INT(state_of(&one), INSTALLATION_OLDER);
    CHECK_INT(state_of(&two), INSTALLATION_OLDER);
    CHECK_ERR(installation_accept(one.i, ACCEPT_EMPTY, STR_EMPTY, &err), ERR_CONFLICT);
    CHECK_OK(installation_accept(one.i, ACCEPT_OLDER, STR_EMPTY, &err));
    CHECK(status_of(&one).config > count && status_of(&two).back);
    installation_close(one.i);
    installation_close(two.i);
}

TEST_FOUR(installation, a_folder_that_does_not_vouch_for_another_run_counts_as_lost)
{
    struct store *queue = f->stores[DB_QUEUE], *config = f->stores[DB_CONFIG];
    struct place one;

    start(&one, f, "one");
    check_reply(queue, "HSET w:seen killed 7:anotherrun:99999999999:o", "1");
    CHECK(status_of(&one).unsure == 1 && !status_of(&one).back);
    CHECK(installation_is_unsure(one.i));
    check_reply(config, "HSET w:installation run_at 1", "0"); /* the run is an old one by now */
    CHECK(status_of(&one).back && !status_of(&one).unsure);
    check_reply(queue, "HSET w:seen left 7:anotherrun:99999999999:c", "1");
    CHECK(!status_of(&one).unsure);
    installation_close(one.i);
}

TEST_FOUR(installation, a_configuration_is_put_back_as_a_whole)
{
    const struct str user[] = {STR("HSET"), STR("user:alice"), STR("id"), STR("7")};
    const struct str names[] = {STR("SADD"), STR("users"), STR("alice")};
    const struct store_args commands[] = {{user, ARRAY_SIZE(user)}, {names, ARRAY_SIZE(names)}};
    struct store *config = f->stores[DB_CONFIG];
    struct place one, other;
    struct err err = {0};

    start(&one, f, "one");
    check_reply(config, "SADD users bob", "1");
    CHECK_ERR(installation_restore_begin(one.i, false, &err), ERR_CONFLICT);
    check_reply(config, "SISMEMBER users bob", "1");
    CHECK_OK(installation_restore_begin(one.i, true, &err));
    CHECK_OK(installation_restore_page(one.i, commands, ARRAY_SIZE(commands), &err));
    CHECK_INT(state_of(&one), INSTALLATION_EMPTY); /* not before all is there */
    start(&other, f, "other");                     /* nor does one that knows nothing take it */
    CHECK_INT(state_of(&other), INSTALLATION_EMPTY);
    CHECK_OK(installation_restore_end(one.i, &err));
    CHECK(status_of(&one).back);
    check_reply(config, "SISMEMBER users bob", "0");
    check_reply(config, "HGET user:alice id", "\"7\"");
    installation_close(other.i);
    installation_close(one.i);
}

/* A machine that went down may have lost the number: what another run of the store has lost cannot
 * be told. */
TEST(installation, after_a_crash_of_the_machine_another_run_of_the_store_is_not_believed)
{
    struct four f = {0};
    struct place one;
    struct err err = {0};

    four_open_redis(&f);
    for (int same_run = 1; same_run >= 0; same_run--) {
        start(&one, &f, same_run ? "same" : "other");
        struct installation_options o = options(&f, &one);
        o.boot = STR("the next boot");
        if (!same_run) { /* the file says another run */
            struct buf path = {0}, text = BUF_INIT(4096);
            buf_appendf(&path, "%s/installation", one.folder);
            CHECK_OK(file_read(path.p, &text, &err));
            ptrdiff_t at = str_find(buf_str(&text), STR("run="));
            text.p[at + 4] = text.p[at + 4] == '0' ? '1' : '0';
            CHECK_OK(file_write_durable(path.p, buf_str(&text), 0600, &err));
            buf_release(&path);
            buf_release(&text);
        }
        struct place next = one;
        CHECK_OK(installation_open(&next.i, &o, &err));
        CHECK(status_of(&next).back == !same_run);
        installation_close(next.i);
        installation_close(one.i);
    }
    four_close(&f);
}
