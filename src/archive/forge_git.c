/* The part of a session that belongs to the host's git server: seats, tokens and rests. */
#include "archive/forge_int.h"

#include "base/clock.h"

#include <time.h>

enum { FORGE_GIT_WAIT_MS = 100, FORGE_GIT_WAITS_MAX_MS = 10 * MS_PER_MINUTE };

static int forge_git_rests(struct forge_session *s, int64_t until_ms, struct forge_fault *fault,
                           struct err *err)
{
    fault->rests_until_ms = until_ms;
    return forge_fail(fault, ARCHIVE_RATE, err, STR_FMT " rests for another %lld s",
                      STR_ARG(s->entry->forge.host),
                      (long long)((until_ms - clock_wall_ms()) / MS_PER_S));
}

int forge_git_begin(struct forge_session *s, struct forge_seat *seat, struct forge_fault *fault,
                    struct err *err)
{
    uint64_t end = clock_mono_ms() + FORGE_GIT_WAITS_MAX_MS;

    *fault = (struct forge_fault){0};
    for (;;) {
        struct quota_take take;
        int code =
            quota_take(s->forges->quota, s->entry->forge.host, QUOTA_GIT, NULL, 0, &take, err);
        if (code < 0) {
            fault->code = ARCHIVE_STORAGE;
            return code;
        }
        if (take.until_ms)
            return forge_git_rests(s, take.until_ms, fault, err);
        if (!take.wait_ms) {
            memcpy(seat->id, take.seat, sizeof(take.seat));
            return 0;
        }
        if (s->cancel && atomic_load(s->cancel))
            return err_code(err, ERR_CANCELED);
        if (clock_mono_ms() > end)
            return forge_fail(fault, ARCHIVE_RATE, err,
                              "all transfers that " STR_FMT " allows at once are taken",
                              STR_ARG(s->entry->forge.host));
        nanosleep(&(struct timespec){.tv_nsec = FORGE_GIT_WAIT_MS * (long)NS_PER_MS}, NULL);
    }
}

void forge_git_end(struct forge_session *s, struct forge_seat *seat)
{
    if (seat->id[0])
        quota_give(s->forges->quota, s->entry->forge.host, QUOTA_GIT, seat->id);
    seat->id[0] = '\0';
}

/* Whether a token can be used for git now. It can even if no REST requests are left for it. */
static bool forge_git_usable(const struct quota_state *t)
{
    return !t->dead_ms;
}

void forge_git_auth(struct forge_session *s, struct str *user, struct str *token)
{
    struct arena a = {0};
    size_t count = s->entry->tokens.len, i = 0;
    struct quota_state host, *states = arena_array(&a, count, sizeof(*states));
    struct err err = {0};

    *user = *token = STR_EMPTY;
    if (count && states &&
        quota_read(s->forges->quota, &a, s->entry->forge.host, s->token_ids, count, &host, states,
                   &err) == 0)
        while (i < count && !forge_git_usable(&states[i]))
            i++;
    if (i < count) {
        *user = str_z(s->row->git_user);
        *token = s->entry->tokens.items[i].secret;
    }
    arena_release(&a);
}

int forge_git_rest(struct forge_session *s, int64_t retry_after_s, struct forge_fault *fault,
                   struct err *err)
{
    struct str host = s->entry->forge.host;
    int code = quota_rest(s->forges->quota, host, STR_EMPTY, retry_after_s,
                          STR("the git server answers 429"), &fault->rests_until_ms, err);

    fault->code = code < 0 ? ARCHIVE_STORAGE : ARCHIVE_RATE;
    fault->retry_after_s = retry_after_s;
    if (code == 0)
        log_info(s->forges->log, "archive.host_rests", log_s("host", host),
                 log_i("until_ms", fault->rests_until_ms));
    return code;
}
