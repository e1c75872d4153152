/* The tasks of the lake on the queue. */
#include "lake/tasks.h"
#include "lake/room.h"
#include "unit/store/four.h"

#include "base/clock.h"

/* Takes the next task of the lake's queue. */
static struct task tasks_take(struct queue *q, struct arena *a)
{
    const struct str name = STR(LAKE_QUEUE);
    struct err err = {0};
    struct task t;

    CHECK_OK(queue_take(q, a, &name, 1, &t, &err));
    return t;
}

TEST_FOUR(lake_tasks, a_task_is_added_once_and_a_try_of_it_may_take_days)
{
    struct lake_repo repo = {.id = STR("repo"), .partition = STR("repo-1")};
    struct queue *q = queue_new(f->stores[DB_QUEUE]);
    struct arena a = {0};
    struct err err = {0};

    CHECK_OK(lake_task_add_import(q, &repo, STR("an-import"), &err));
    CHECK_OK(lake_task_add_import(q, &repo, STR("an-import"), &err));
    struct task t = tasks_take(q, &a);
    CHECK_STR(t.type, STR(LAKE_TASK_IMPORT));
    CHECK_STR(t.payload, STR("repo\nrepo-1\nan-import"));
    CHECK_INT(t.timeout_s, 30 * S_PER_DAY);
    CHECK_OK(lake_task_add_import(q, &repo, STR("an-import"), &err)); /* while it runs, too */
    CHECK_OK(queue_archive(q, &t, STR("failed too often"), &err));
    CHECK_OK(lake_task_add_import(q, &repo, STR("an-import"), &err));
    t = tasks_take(q, &a);
    CHECK_INT(t.retried, 0);
    CHECK_OK(queue_done(q, &t, &err));
    arena_release(&a);
    queue_free(q);
}

TEST_FOUR(lake_tasks, a_try_of_each_task_of_a_repository_may_take_days)
{
    struct lake_repo repo = {.id = STR("repo"), .partition = STR("repo-1")};
    struct queue *q = queue_new(f->stores[DB_QUEUE]);
    struct arena a = {0};
    struct err err = {0};

    CHECK_OK(lake_task_add_gc(q, &repo, &err));
    CHECK_OK(lake_task_add_refs(q, &repo, STR("a-dump"), &err));
    CHECK_OK(lake_task_add_delete(q, &err));
    CHECK_OK(lake_task_add_hooks(q, STR("{}"), &err));
    for (int i = 0; i < 3; i++)
        CHECK_INT(tasks_take(q, &a).timeout_s, 30 * S_PER_DAY);
    CHECK_INT(tasks_take(q, &a).timeout_s, TASK_TIMEOUT_S);
    arena_release(&a);
    queue_free(q);
}
