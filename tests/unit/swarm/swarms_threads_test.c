/* Swarms used by several threads at once: what is left in the end is what was announced. */
#include "os/thread.h"
#include "unit/swarm/swarms_util.h"

#include <stdio.h>

enum { THREADS = 4, ROUNDS = 4000, TORRENTS = 40 };

struct worker {
    struct swarms *s;
    uint32_t number;
    _Atomic(uint32_t) *running;
    struct thread thread;
};

/* Its own clients at torrents that all share; the last word of each is: a seeder. */
static void announce_much(void *ctx)
{
    struct worker *w = ctx;
    struct asked q;

    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t client = w->number * 1000 + i % 50;
        ask(&q, i % TORRENTS, client, i % 7 == 0);
        swarms_prefetch(w->s, q.hash);
        say(w->s, &q, i % 3, i % 5 == 0 ? EVENT_STOPPED : EVENT_NONE, 100 + i / 1000);
        CHECK_INT(q.answer.failure, SWARM_NONE);
        ask(&q, 1000 + w->number * ROUNDS + i, client, false); /* tables grow */
        say(w->s, &q, 1, EVENT_STARTED, 100);
        if (i % 2)
            say(w->s, &q, 1, EVENT_STOPPED, 100);
    }
    for (uint32_t t = 0; t < TORRENTS; t++)
        for (uint32_t i = 0; i < 50; i++) {
            ask(&q, t, w->number * 1000 + i, false);
            say(w->s, &q, 0, EVENT_NONE, 110);
            ask(&q, t, w->number * 1000 + i, true);
            say(w->s, &q, 0, EVENT_STOPPED, 110);
        }
    atomic_fetch_sub(w->running, 1);
}

TEST_TIMEOUT(swarms_threads, announces_cleaning_and_saving_at_once_lose_nothing, 120)
{
    struct swarms *s = open_swarms(2700);
    _Atomic(uint32_t) running = THREADS;
    struct worker workers[THREADS];
    struct swarms_stats stats;
    struct err err = {0};
    char path[256];

    snprintf(path, sizeof(path), "%s/swarms", test_dir());
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.s = s, .number = i, .running = &running};
        CHECK_OK(
            thread_start(&workers[i].thread, "announces", 0, announce_much, &workers[i], &err));
    }
    do {
        swarms_clean(s, 100);
        CHECK_OK(swarms_save(s, path, 100, &err));
        swarms_stats(s, &stats);
    } while (atomic_load(&running));
    for (int i = 0; i < THREADS; i++)
        thread_join(&workers[i].thread);
    for (uint32_t t = 0; t < TORRENTS; t++) {
        CHECK_INT(scrape_one(s, t).complete, THREADS * 50);
        CHECK_INT(scrape_one(s, t).incomplete, 0);
    }
    swarms_stats(s, &stats);
    CHECK_INT(stats.seeders4, THREADS * 50 * TORRENTS);
    CHECK_INT(stats.leechers4, THREADS * ROUNDS / 2);
    CHECK_INT(stats.seeders6 + stats.leechers6, 0);
    swarms_free(s);
}
