/* The state of restores to other git servers. The tasks themselves are tested end to end. */
#include "archive/restores.h"
#include "coord/queue.h"
#include "unit/store/four.h"

#define RESTORES_KEY STR("w:archive:restores")

static struct str restore_begin_to(struct archive *x, struct arena *a, struct str url)
{
    struct restore_wish w = {.url = url};
    struct str id = STR_EMPTY;
    struct err err = {0};

    CHECK_OK(archive_account_make(&w.account, a, STR("github.com"), STR("octocat"), &err));
    CHECK_OK(restores_begin(x, a, &w, &id, &err));
    return id;
}

TEST_FOUR(archive_restores, the_newest_are_listed_and_forgotten_ones_leave_the_list)
{
    enum { LISTED = 1000, MORE = 3 };
    struct archive x = {.app = f->stores[DB_APP], .queue = queue_new(f->stores[DB_QUEUE])};
    struct restore_progress *all;
    struct reply *reply;
    struct arena a = {0};
    struct str id = STR_EMPTY;
    struct err err = {0};
    size_t count;

    CHECK_OK(store_call(x.app, &a, &reply, &err, STR("ZADD"), RESTORES_KEY, STR("1"), STR("old")));
    for (int i = 0; i < LISTED + MORE; i++)
        id = restore_begin_to(&x, &a, arena_fmt(&a, "https://git.example/%d", i));
    CHECK_OK(store_call(x.app, &a, &reply, &err, STR("ZCARD"), RESTORES_KEY));
    CHECK_INT(reply->integer, LISTED + MORE);
    CHECK_OK(restores_list(&x, &a, &all, &count, &err));
    CHECK_INT(count, LISTED);
    bool found = false;
    for (size_t i = 0; i < count; i++)
        found |= str_eq(all[i].id, id);
    CHECK(found);
    queue_free(x.queue);
    arena_release(&a);
}

TEST_FOUR(archive_restores, a_restore_that_waits_is_canceled_and_can_be_asked_for_again)
{
    struct archive x = {.app = f->stores[DB_APP], .queue = queue_new(f->stores[DB_QUEUE])};
    struct restore_progress p;
    struct arena a = {0};
    struct err err = {0};

    struct str id = restore_begin_to(&x, &a, STR("https://git.example/x.git"));
    CHECK_STR(restore_begin_to(&x, &a, STR("https://git.example/x.git")), id);
    CHECK_OK(restores_find(&x, &a, id, &p, &err));
    CHECK_INT(p.state, RESTORE_QUEUED);
    CHECK_OK(restores_cancel(&x, id, &err));
    CHECK_OK(restores_find(&x, &a, id, &p, &err));
    CHECK_INT(p.state, RESTORE_CANCELED);
    CHECK_STR(restore_begin_to(&x, &a, STR("https://git.example/x.git")), id);
    CHECK_OK(restores_find(&x, &a, id, &p, &err));
    CHECK_INT(p.state, RESTORE_QUEUED);
    CHECK_ERR(restores_cancel(&x, STR("nothing"), &err), ERR_NOT_FOUND);
    queue_free(x.queue);
    arena_release(&a);
}
