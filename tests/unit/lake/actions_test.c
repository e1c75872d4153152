/* Hooks: webhooks that action files name, called before and after changes. */
#include "lake/actions.h"
#include "unit/http/peer.h"
#include "unit/lake/gc_lab.h"

#include <stdatomic.h>
#include <stdio.h>

/* What the peer answers, and what it was sent. */
struct checker {
    int status;
    _Atomic(unsigned) calls;
    struct mutex lock;
    struct buf last; /* head and body of the last request */
};

static void checker_serve(struct peer_conn *c, const void *ctx)
{
    struct checker *k = (struct checker *)ctx;
    struct peer_request r = {0};
    char answer[256];

    if (peer_read(c, &r)) {
        mutex_lock(&k->lock);
        buf_reset(&k->last);
        buf_append_str(&k->last, buf_str(&r.text));
        buf_append_str(&k->last, buf_str(&r.body));
        mutex_unlock(&k->lock);
        snprintf(answer, sizeof(answer),
                 "HTTP/1.1 %d X\r\nContent-Length: 26\r\nConnection: close\r\n\r\n"
                 "answer with top-secret-one",
                 k->status);
        k->calls++;
        peer_write_z(c, answer);
    }
    peer_request_release(&r);
}

static bool checker_got(struct checker *k, const char *text)
{
    mutex_lock(&k->lock);
    bool found = str_find(buf_str(&k->last), str_z(text)) >= 0;
    mutex_unlock(&k->lock);
    return found;
}

static const char *secret_of(const char *name)
{
    return strcmp(name, "LAKEFSACTION_ONE") == 0 ? "top-secret-one" : NULL;
}

struct scene {
    struct hand hand;
    struct checker checker;
    struct peer *peer;
    struct lake_actions *actions;
};

/* Lets hooks call these hosts, and send these variables. */
static void scene_allow_variables(struct scene *s, struct str hosts, struct str variables)
{
    struct lake_actions_options o = {.lookup = secret_of, .hosts = hosts, .variables = variables};
    struct err err = {0};

    lake_actions_free(s->actions);
    CHECK_OK(lake_actions_new(&s->actions, &o, &err));
    s->hand.lake->o.hooks = lake_actions_hooks(s->actions);
}

static void scene_allow(struct scene *s, struct str hosts)
{
    scene_allow_variables(s, hosts, STR("LAKEFSACTION_ONE"));
}

static void scene_open(struct scene *s, struct lake_lab *lab)
{
    *s = (struct scene){.hand = hand_of(lab), .checker = {.status = 200}};
    mutex_init(&s->checker.lock, "test");
    s->peer = peer_start(checker_serve, &s->checker, NULL);
    scene_allow(s, STR("127.0.0.1"));
}

static void scene_close(struct scene *s)
{
    s->hand.lake->o.hooks = NULL;
    peer_stop(s->peer);
    lake_actions_free(s->actions);
    mutex_release(&s->checker.lock);
    buf_release(&s->checker.last);
    hand_release(&s->hand);
}

/* Puts an action file with one webhook for the event. */
static void scene_action(struct scene *s, const char *branch, const char *event)
{
    struct str text = arena_fmt(&s->hand.arena,
                                "name: act\n"
                                "on: {%s: {branches: [main]}}\n"
                                "hooks:\n"
                                "  - id: ask\n"
                                "    type: webhook\n"
                                "    properties:\n"
                                "      url: %s/hook\n"
                                "      headers: {X-Token: \"{{ ENV.LAKEFSACTION_ONE }}\"}\n"
                                "      query_params: {a b: \"c&d\"}\n"
                                "  - id: clean\n"
                                "    type: webhook\n"
                                "    if: failure()\n"
                                "    properties: {url: %s/clean}\n",
                                event, peer_url(s->peer), peer_url(s->peer));

    gc_lab_put(&s->hand, branch, "_lakefs_actions/act.yaml", text.p);
}

static const struct lake_run_filter all_runs;

static struct lake_run newest_run(struct scene *s, size_t want)
{
    struct lake_page page = {.limit = 100};
    struct lake_run *runs;
    struct err err = {0};
    size_t count;
    bool more;

    CHECK_OK(lake_run_list(s->hand.lake, &s->hand.arena, &s->hand.repo, &page, &all_runs, &runs,
                           &count, &more, &err));
    CHECK_INT(count, want);
    return count ? runs[0] : (struct lake_run){0};
}

GC_LAB_TEST(lake_actions, a_webhook_that_agrees_lets_a_commit_pass)
{
    struct scene s;
    struct lake_hook_run h;
    struct err err = {0};

    scene_open(&s, lab);
    scene_action(&s, "main", "pre-commit");
    struct str id = hand_commit(&s.hand, "main", "with hooks");
    CHECK_INT(s.checker.calls, 1);
    CHECK(checker_got(&s.checker, "POST /hook?a%20b=c%26d HTTP/1.1"));
    CHECK(checker_got(&s.checker, "top-secret-one"));
    CHECK(checker_got(&s.checker, "\"event_type\":\"pre-commit\""));
    CHECK(checker_got(&s.checker, "\"branch_id\":\"main\""));
    CHECK(checker_got(&s.checker, "\"commit_message\":\"with hooks\""));
    struct lake_run run = newest_run(&s, 1);
    CHECK(run.passed);
    CHECK_STR(run.event, STR("pre-commit"));
    CHECK_STR(run.branch, STR("main"));
    CHECK_STR(run.commit_id, id);
    CHECK_OK(lake_hook_run_get(s.hand.lake, &s.hand.arena, &s.hand.repo, run.id, STR("0000_0000"),
                               &h, &err));
    CHECK(h.passed);
    CHECK(str_find(h.output, STR("status code: 200")) >= 0);
    CHECK(str_find(h.output, STR("top-secret-one")) < 0); /* the answer has it */
    CHECK(str_find(h.output, STR("answer with [REDACTED]")) >= 0);
    CHECK_OK(lake_hook_run_get(s.hand.lake, &s.hand.arena, &s.hand.repo, run.id, STR("0000_0001"),
                               &h, &err));
    CHECK(h.skipped);
    CHECK_ERR(
        lake_hook_run_get(s.hand.lake, &s.hand.arena, &s.hand.repo, run.id, STR("x"), &h, &err),
        ERR_NOT_FOUND);
    scene_close(&s);
}

GC_LAB_TEST(lake_actions, a_webhook_that_refuses_stops_the_commit)
{
    struct scene s;

    scene_open(&s, lab);
    s.checker.status = 403;
    scene_action(&s, "main", "pre-commit");
    CHECK_INT(hand_try_commit(&s.hand, "main", "refused"), ERR_PRECONDITION);
    CHECK(str_find(str_z(s.hand.err.text), STR("pre-commit hook aborted")) >= 0);
    CHECK(str_find(str_z(s.hand.err.text), STR("status code: 403")) >= 0);
    CHECK_INT(s.checker.calls, 2); /* the second one runs because the first has failed */
    CHECK(!newest_run(&s, 1).passed);
    CHECK_STR(hand_history(&s.hand, "main"), STR("Repository created"));
    s.checker.status = 200;
    hand_commit(&s.hand, "main", "accepted");
    CHECK(newest_run(&s, 2).passed);
    scene_close(&s);
}

GC_LAB_TEST(lake_actions, other_branches_and_events_are_left_alone)
{
    struct scene s;

    scene_open(&s, lab);
    s.checker.status = 500;
    scene_action(&s, "main", "pre-merge");
    hand_commit(&s.hand, "main", "no hook for commits");
    hand_branch(&s.hand, "side", "main");
    gc_lab_put(&s.hand, "side", "x", "x");
    hand_commit(&s.hand, "side", "on the side");
    CHECK_INT(s.checker.calls, 0);
    CHECK_INT(hand_try_merge(&s.hand, "side", "main"), ERR_PRECONDITION);
    CHECK(s.checker.calls > 0);
    newest_run(&s, 1);
    scene_close(&s);
}

GC_LAB_TEST(lake_actions, files_that_cannot_be_used_refuse_the_change)
{
    static const char *const bad[] = {
        "name: act\non: {pre-commit: {}}\n",
        "name: act\non: {pre-commit: {}}\nhooks: [{id: a, type: airflow}]\n",
        "name: act\non: {pre-commit: {}}\nhooks: [{id: a, type: webhook, properties: {url: "
        "\"http://127.0.0.1:1/\", headers: {a: \"{{ ENV.HOME }}\"}}}]\n",
        "name: act\non: {pre-commit: {}}\nhooks: [{id: a, type: webhook, properties: {url: "
        "\"http://127.0.0.1:1/\"}}]\n",
    };
    struct scene s;

    scene_open(&s, lab);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        gc_lab_put(&s.hand, "main", "_lakefs_actions/act.yaml", bad[i]);
        CHECK_INT(hand_try_commit(&s.hand, "main", "refused"), ERR_PRECONDITION);
        CHECK(!newest_run(&s, i + 1).passed);
    }
    gc_lab_put(&s.hand, "main", "_lakefs_actions/readme.txt", "not an action");
    hand_remove(&s.hand, "main", "_lakefs_actions/act.yaml");
    hand_commit(&s.hand, "main", "without it");
    scene_close(&s);
}

GC_LAB_TEST(lake_actions, a_variable_is_sent_only_where_the_configuration_allows_it)
{
    static const struct {
        const char *variables;
        int code;
    } cases[] = {
        {"", ERR_PRECONDITION},
        {"LAKEFSACTION_ON", ERR_PRECONDITION},
        {"LAKEFSACTION_ONE@127.0.0.2", ERR_PRECONDITION},
        {"LAKEFSACTION_TWO@127.0.0.1, LAKEFSACTION_ONE@checker.example", ERR_PRECONDITION},
        {"LAKEFSACTION_TWO,LAKEFSACTION_ONE@127.0.0.1", 0},
        {"LAKEFSACTION_ONE", 0},
    };
    struct lake_commit_options o = {.message = STR("m"), .committer = STR("tester")};
    struct scene s;

    scene_open(&s, lab);
    scene_action(&s, "main", "pre-commit");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct lake_commit c;
        struct err err = {0};
        unsigned calls = s.checker.calls;
        scene_allow_variables(&s, STR("127.0.0.1"), str_z(cases[i].variables));
        gc_lab_put(&s.hand, "main", "a", cases[i].variables);
        CHECK_ERR(lake_commit(s.hand.lake, &s.hand.arena, &s.hand.repo, STR("main"), &o, &c, &err),
                  cases[i].code);
        if (cases[i].code < 0)
            CHECK(str_find(str_z(err.text), STR("LAKEFSACTION_ONE")) >= 0);
        else
            CHECK_INT(s.checker.calls, calls + 1);
        CHECK(!checker_got(&s.checker, "POST /hook") || cases[i].code == 0);
    }
    scene_close(&s);
}

TEST(lake_actions_variables, the_list_is_checked)
{
    struct err err = {0};

    CHECK_OK(lake_actions_check_variables(STR(""), &err));
    CHECK_OK(lake_actions_check_variables(STR("LAKEFSACTION_A, LAKEFSACTION_B@h"), &err));
    CHECK_ERR(lake_actions_check_variables(STR("LAKEFSACTION_A,HOME"), &err), ERR_INVALID);
    CHECK_ERR(lake_actions_check_variables(STR("LAKEFSACTION_A@"), &err), ERR_INVALID);
}

GC_LAB_TEST(lake_actions, hooks_behind_an_event_run_as_a_task)
{
    struct scene s;
    struct err err = {0};

    scene_open(&s, lab);
    s.checker.status = 500;
    scene_action(&s, "main", "post-commit");
    struct str id = hand_commit(&s.hand, "main", "done");
    CHECK_INT(s.checker.calls, 0);
    struct str payload = arena_fmt(&s.hand.arena,
                                   "{\"repository\":\"repo\",\"partition\":\"" STR_FMT
                                   "\",\"event\":%d,\"ref\":\"main\",\"commit\":\"" STR_FMT
                                   "\",\"makes_commit\":true}",
                                   STR_ARG(s.hand.repo.partition), LAKE_ON_COMMIT, STR_ARG(id));
    CHECK_OK(lake_actions_work(s.actions, s.hand.lake, payload, &err));
    CHECK(s.checker.calls > 0);
    CHECK(checker_got(&s.checker, "\"event_type\":\"post-commit\""));
    CHECK(!newest_run(&s, 1).passed); /* and the commit stays */
    CHECK_ERR(lake_actions_work(s.actions, s.hand.lake, STR("{}"), &err), ERR_INVALID);
    CHECK_ERR(lake_actions_work(s.actions, s.hand.lake, STR("no JSON"), &err), ERR_INVALID);
    scene_close(&s);
}

GC_LAB_TEST(lake_actions, runs_are_listed_newest_first_and_can_be_chosen)
{
    struct lake_page page = {.limit = 1};
    struct lake_run *runs;
    struct scene s;
    struct err err = {0};
    size_t count;
    bool more;

    scene_open(&s, lab);
    scene_action(&s, "main", "pre-commit");
    struct str first = hand_commit(&s.hand, "main", "first");
    gc_lab_put(&s.hand, "main", "a", "a");
    struct str second = hand_commit(&s.hand, "main", "second");
    CHECK_OK(lake_run_list(s.hand.lake, &s.hand.arena, &s.hand.repo, &page, &all_runs, &runs,
                           &count, &more, &err));
    CHECK_INT(count, 1);
    CHECK(more);
    CHECK_STR(runs[0].commit_id, second);
    page.after = runs[0].id;
    CHECK_OK(lake_run_list(s.hand.lake, &s.hand.arena, &s.hand.repo, &page, &all_runs, &runs,
                           &count, &more, &err));
    CHECK_INT(count, 1);
    CHECK_STR(runs[0].commit_id, first);
    page = (struct lake_page){.limit = 10};
    CHECK_OK(lake_run_list(s.hand.lake, &s.hand.arena, &s.hand.repo, &page,
                           &(struct lake_run_filter){STR("main"), first}, &runs, &count, &more,
                           &err));
    CHECK_INT(count, 1);
    CHECK_OK(lake_run_list(s.hand.lake, &s.hand.arena, &s.hand.repo, &page,
                           &(struct lake_run_filter){STR("other"), STR_EMPTY}, &runs, &count, &more,
                           &err));
    CHECK_INT(count, 0);
    CHECK_ERR(lake_run_get(s.hand.lake, &s.hand.arena, &s.hand.repo, STR("absent"), &runs[0], &err),
              ERR_NOT_FOUND);
    scene_close(&s);
}

/* --- hosts --- */

GC_LAB_TEST(lake_actions, a_host_that_is_not_listed_is_not_called)
{
    struct scene s;
    struct lake_hook_run h;
    struct err err = {0};

    scene_open(&s, lab);
    scene_allow(&s, STR("public,10.0.0.0/8"));
    scene_action(&s, "main", "pre-commit");
    CHECK_INT(hand_try_commit(&s.hand, "main", "refused"), ERR_PRECONDITION);
    CHECK_INT(s.checker.calls, 0);
    CHECK(str_find(str_z(s.hand.err.text), STR("lake.hooks.hosts")) >= 0);
    struct lake_run run = newest_run(&s, 1);
    CHECK_OK(lake_hook_run_get(s.hand.lake, &s.hand.arena, &s.hand.repo, run.id, STR("0000_0000"),
                               &h, &err));
    CHECK(str_find(h.output, STR("the host may not be called")) >= 0);
    scene_allow(&s, STR("public,127.0.0.0/8"));
    hand_commit(&s.hand, "main", "accepted");
    CHECK_INT(s.checker.calls, 1);
    scene_close(&s);
}

/* --- several files --- */

/* Answers when two requests have come, so hooks that wait for each other get no answer. */
static void pair_serve(struct peer_conn *c, const void *ctx)
{
    struct checker *k = (struct checker *)ctx;
    struct peer_request r = {0};

    if (peer_read(c, &r)) {
        k->calls++;
        CHECK_SOON(k->calls >= 2);
        peer_write_z(c, "HTTP/1.1 200 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
    peer_request_release(&r);
}

GC_LAB_TEST(lake_actions, files_of_one_event_run_at_the_same_time)
{
    struct scene s;

    scene_open(&s, lab);
    struct peer *pair = peer_start(pair_serve, &s.checker, NULL);
    for (int i = 0; i < 2; i++) {
        struct str text = arena_fmt(&s.hand.arena,
                                    "name: act%d\n"
                                    "on: {pre-commit: {}}\n"
                                    "hooks: [{id: ask, type: webhook, properties: {url: %s/}}]\n",
                                    i, peer_url(pair));
        gc_lab_put(&s.hand, "main", arena_fmt(&s.hand.arena, "_lakefs_actions/%d.yaml", i).p,
                   text.p);
    }
    hand_commit(&s.hand, "main", "both");
    CHECK_INT(s.checker.calls, 2);
    CHECK(newest_run(&s, 1).passed);
    peer_stop(pair);
    scene_close(&s);
}
