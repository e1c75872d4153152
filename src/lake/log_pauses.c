/* Keeps walks of logs that stopped at the end of a page. */
#include "lake/log_pauses.h"

#include "os/thread.h"

#include <stdlib.h>

/* a walk counts as this many commits more than it has returned, so that the number of walks is
 * limited too */
enum { PAUSED_LOG_COST = 2000 };

struct paused_log {
    struct list node;
    struct buf key;
    struct log_pause pause;
    size_t commits;
};

struct log_pauses {
    struct mutex lock; /* class "lake.logs"; guards the members below */
    struct list logs;  /* the oldest first */
    size_t commits, max_commits;
};

struct log_pauses *log_pauses_new(size_t max_commits)
{
    struct log_pauses *p = xzalloc(sizeof(*p));

    mutex_init(&p->lock, "lake.logs");
    list_init(&p->logs);
    p->max_commits = max_commits;
    return p;
}

/* Frees the walks of a list that no other thread can reach. */
static void paused_log_free_all(struct list *logs)
{
    struct list *node;

    while ((node = list_shift(logs))) {
        struct paused_log *log = list_entry(node, struct paused_log, node);
        lake_iter_free(log->pause.history);
        buf_release(&log->key);
        free(log);
    }
}

void log_pauses_free(struct log_pauses *p)
{
    if (!p)
        return;
    paused_log_free_all(&p->logs);
    mutex_release(&p->lock);
    free(p);
}

static struct paused_log *paused_log_find(struct log_pauses *p, struct str key)
{
    list_each (&p->logs, struct paused_log, node, log)
        if (str_eq(buf_str(&log->key), key))
            return log;
    return NULL;
}

/* Moves the walk to another list. */
static void paused_log_move(struct log_pauses *p, struct paused_log *log, struct list *to)
{
    list_remove(&log->node);
    list_push(to, &log->node);
    p->commits -= log->commits;
}

bool log_pauses_take(struct log_pauses *p, struct str key, struct log_pause *out)
{
    struct list taken;

    list_init(&taken);
    mutex_lock(&p->lock);
    struct paused_log *log = paused_log_find(p, key);
    if (log) {
        paused_log_move(p, log, &taken);
        *out = log->pause;
        log->pause.history = NULL;
    }
    mutex_unlock(&p->lock);
    paused_log_free_all(&taken);
    return log != NULL;
}

void log_pauses_put(struct log_pauses *p, struct str key, const struct log_pause *pause,
                    size_t commits)
{
    struct paused_log *log;
    struct list dropped;

    if (commits + PAUSED_LOG_COST > p->max_commits) {
        lake_iter_free(pause->history);
        return;
    }
    list_init(&dropped);
    log = xzalloc(sizeof(*log));
    log->pause = *pause;
    log->commits = commits + PAUSED_LOG_COST;
    buf_append_str(&log->key, key);
    mutex_lock(&p->lock);
    struct paused_log *same = paused_log_find(p, key);
    if (same) /* the walk of another reader waits for the same page; the new walk replaces it */
        paused_log_move(p, same, &dropped);
    list_push(&p->logs, &log->node);
    p->commits += log->commits;
    while (p->commits > p->max_commits)
        paused_log_move(p, list_entry(p->logs.next, struct paused_log, node), &dropped);
    mutex_unlock(&p->lock);
    paused_log_free_all(&dropped);
}
