/* Subscriptions over Redis: messages arrive, leaving works, a restart is survived and told. */
#include "unit/store/redis_test.h"

#include "os/thread.h"

#include <sched.h>
#include <stdio.h>

/* What a subscriber heard: "channel=message " each, "lapse " for a NULL channel. */
struct heard {
    struct store *store; /* asked from inside the callback when set */
    struct mutex lock;
    struct cond changed;
    struct buf text;
    size_t count, lapses;
};

static void heard_init(struct heard *h, struct store *ask_store)
{
    *h = (struct heard){.store = ask_store};
    mutex_init(&h->lock, "test.heard");
    cond_init(&h->changed);
}

static void heard_release(struct heard *h)
{
    buf_release(&h->text);
    cond_release(&h->changed);
    mutex_release(&h->lock);
}

static void hear(void *ctx, struct str channel, struct str message)
{
    struct heard *h = ctx;

    if (h->store && channel.p)
        check_reply(h->store, "GET inside", "nil");
    mutex_lock(&h->lock);
    if (channel.p)
        buf_appendf(&h->text, STR_FMT "=" STR_FMT " ", STR_ARG(channel), STR_ARG(message));
    h->count += channel.p != NULL;
    h->lapses += channel.p == NULL;
    cond_broadcast(&h->changed);
    mutex_unlock(&h->lock);
}

static void wait_heard(struct heard *h, size_t count, size_t lapses)
{
    mutex_lock(&h->lock);
    while (h->count < count || h->lapses < lapses)
        cond_wait(&h->changed, &h->lock);
    mutex_unlock(&h->lock);
}

static void check_heard(struct heard *h, const char *want)
{
    mutex_lock(&h->lock);
    CHECK_STR(buf_str(&h->text), str_z(want));
    mutex_unlock(&h->lock);
}

static struct store_subscription *subscribe(struct store *s, struct str channel, struct heard *h)
{
    struct store_subscription *sub;
    struct err err = {0};

    CHECK_OK(store_subscribe(&sub, s, channel, hear, h, &err));
    return sub;
}

TEST(redis_sub, messages_arrive_in_order_at_every_subscriber_of_the_channel)
{
    struct redis_server server = {0};
    struct heard a, b, c;

    need_redis_server(&server);
    struct store *s = store_at(server.url);
    heard_init(&a, s);
    heard_init(&b, NULL);
    heard_init(&c, NULL);
    struct store_subscription *sub_a = subscribe(s, STR("news"), &a);
    struct store_subscription *sub_b = subscribe(s, STR("news"), &b);
    struct store_subscription *sub_c = subscribe(s, STR("other"), &c);
    check_reply(s, "PUBLISH news 1", "1");
    check_reply(s, "PUBLISH other x", "1");
    check_reply(s, "PUBLISH nobody x", "0");
    check_reply(s, "PUBLISH news 2", "1");
    wait_heard(&a, 2, 0);
    wait_heard(&b, 2, 0);
    wait_heard(&c, 1, 0);
    check_heard(&a, "news=1 news=2 ");
    check_heard(&b, "news=1 news=2 ");
    check_heard(&c, "other=x ");

    store_unsubscribe(sub_a);
    check_reply(s, "PUBLISH news 3", "1");
    wait_heard(&b, 3, 0);
    check_heard(&a, "news=1 news=2 ");
    store_unsubscribe(sub_b);
    wait_reply(s, "PUBLISH other y", "1");
    wait_heard(&c, 2, 0);
    store_unsubscribe(sub_c);
    store_unsubscribe(NULL);

    struct store_subscription *again = subscribe(s, STR("news"), &a);
    check_reply(s, "PUBLISH news 4", "1");
    wait_heard(&a, 3, 0);
    check_heard(&a, "news=1 news=2 news=4 ");
    CHECK_INT(a.lapses, 0);
    (void)again; /* ends with the store */
    store_close(s);
    heard_release(&a);
    heard_release(&b);
    heard_release(&c);
    redis_server_kill(&server);
}

TEST(redis_sub, the_last_to_leave_a_channel_unsubscribes_it)
{
    struct redis_server server = {0};
    struct heard h;
    const char *got;

    need_redis_server(&server);
    struct store *s = store_at(server.url);
    heard_init(&h, NULL);
    struct store_subscription *stays = subscribe(s, STR("stays"), &h);
    store_unsubscribe(subscribe(s, STR("leaves"), &h));
    while (ask(s, "PUBLISH leaves x", &got) == 0 && strcmp(got, "0") != 0)
        sched_yield();
    check_reply(s, "PUBLISH stays y", "1");
    wait_heard(&h, 1, 0);
    check_heard(&h, "stays=y ");
    store_unsubscribe(stays);
    store_close(s);
    heard_release(&h);
    redis_server_kill(&server);
}

TEST(redis_sub, a_restart_is_survived_and_told_to_every_subscriber)
{
    struct redis_server server = {0};
    struct heard a, b;

    need_redis_server(&server);
    struct store *s = store_at(server.url);
    heard_init(&a, s);
    heard_init(&b, NULL);
    subscribe(s, STR("one"), &a);
    subscribe(s, STR("two"), &b);
    for (size_t round = 1; round <= 3; round++) {
        redis_server_kill(&server);
        CHECK(redis_server_start(&server));
        wait_heard(&a, round - 1, round);
        wait_heard(&b, round - 1, round);
        wait_reply(s, "PUBLISH one x", "1");
        wait_reply(s, "PUBLISH two y", "1");
        wait_heard(&a, round, round);
        wait_heard(&b, round, round);
    }
    check_heard(&a, "one=x one=x one=x ");
    check_heard(&b, "two=y two=y two=y ");
    store_close(s);
    heard_release(&a);
    heard_release(&b);
    redis_server_kill(&server);
}

TEST(redis_sub, a_redis_that_is_down_is_subscribed_when_it_comes)
{
    struct redis_server server = {0};
    struct heard h;

    need_redis_server(&server);
    redis_server_kill(&server);
    struct store *s = store_at(server.url);
    heard_init(&h, NULL);
    struct store_subscription *sub = subscribe(s, STR("news"), &h);
    mutex_lock(&h.lock);
    CHECK_INT(h.lapses, 0);
    mutex_unlock(&h.lock);
    CHECK(redis_server_start(&server));
    wait_heard(&h, 0, 1);
    wait_reply(s, "PUBLISH news x", "1");
    wait_heard(&h, 1, 1);
    check_heard(&h, "news=x ");
    store_unsubscribe(sub);
    store_close(s);
    heard_release(&h);
    redis_server_kill(&server);
}

TEST(redis_sub, a_channel_that_the_user_may_not_hear_is_refused)
{
    const char *extra[] = {"--user", "alice",         "on",    ">secret", "~*",
                           "+@all",  "resetchannels", "&open", NULL};
    struct redis_server server = {.extra = extra};
    struct store_subscription *sub;
    struct heard h;
    struct err err = {0};
    char url[128];

    need_redis_server(&server);
    snprintf(url, sizeof(url), "redis://alice:secret@127.0.0.1:%d", server.port);
    struct store *s = store_at(url);
    heard_init(&h, NULL);
    CHECK_ERR(store_subscribe(&sub, s, STR("closed"), hear, &h, &err), ERR_DENIED);
    subscribe(s, STR("open"), &h);
    check_reply(s, "PUBLISH open x", "1");
    wait_heard(&h, 1, 0);
    store_close(s);
    heard_release(&h);
    redis_server_kill(&server);
}
