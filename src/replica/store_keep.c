/* Keeps a sealed copy of the configuration, and mends replications after the store has lost data
 * (replica/store_keep.h). */
#include "replica/store_keep.h"
#include "base/clock.h"
#include "os/file.h"
#include "os/loop.h"
#include "replica/store_settings.h"

#include <limits.h>
#include <stdlib.h>

enum {
    LOOK_MS = 200,
    REST_FACTOR = 10,   /* after a copy, the thread rests for ten times as long as the copy took */
    RETRY_MS = 5000,    /* ms to wait after a copy that failed */
    RESTORE_PAGE = 100, /* most commands that one script runs when the configuration is restored */
};

struct store_keep {
    struct store_keep_options o;
    struct seal_key key;
    /* Paths of the copy, and of the last copy from before the store went back in time. */
    struct buf path, before;
    struct loop loop;
    struct mutex lock;         /* class "store.keep"; guards `copied` */
    struct config_copy copied; /* has no strings or commands; time_ms 0: no copy exists */
    /* Only the loop uses this and the following members. */
    uint64_t rest_until_ns, round, runs;
    bool failed; /* the last copy failed, and that was logged */
};

/* --- the copy --- */

/* Renames the last copy if the store went back in time since then, so that the next copy does not
 * replace it. Somebody may need the old copy later. */
static void keep_before(struct store_keep *k, uint64_t round, bool back)
{
    bool other = k->round ? k->round != round : back;
    struct err err = {0};

    if (other && file_exists(k->path.p) && file_rename_over(k->path.p, k->before.p, &err) < 0)
        log_warn(k->o.log, "store.copy_not_kept", log_z("error", err.text));
    k->round = round;
}

static int copy_make(struct store_keep *k, const struct installation_status *s, struct err *err)
{
    struct config_copy head = {.installation = str_z(s->id), .count = s->config};

    keep_before(k, s->round, s->back);
    int code = config_copy_write(k->o.config, &k->key, k->path.p, &head, err);
    if (code == 0)
        code = installation_copied(k->o.installation, s->config, err);
    if (code < 0)
        return code;
    mutex_lock(&k->lock);
    k->copied = (struct config_copy){.count = head.count, .time_ms = head.time_ms};
    mutex_unlock(&k->lock);
    return 0;
}

static void keep_copy(struct store_keep *k, const struct installation_status *s)
{
    uint64_t began = clock_mono_ns();
    struct err err = {0};

    if (k->copied.time_ms && k->copied.count == s->config && k->round == s->round)
        return;
    if (began < k->rest_until_ns)
        return;
    int code = copy_make(k, s, &err);
    uint64_t now = clock_mono_ns();
    k->rest_until_ns = now + (code < 0 ? RETRY_MS * NS_PER_MS : REST_FACTOR * (now - began));
    if (code < 0 && !k->failed)
        log_warn(k->o.log, "store.not_copied", log_z("error", err.text));
    k->failed = code < 0;
}

static void find_copy(struct store_keep *k)
{
    struct arena a = {0};
    struct config_copy found;

    if (config_copy_read(&found, &a, &k->key, k->path.p, NULL) == 0)
        k->copied = (struct config_copy){.count = found.count, .time_ms = found.time_ms};
    arena_release(&a);
}

int store_keep_copy(struct store_keep *k, struct config_copy *out, struct err *err)
{
    mutex_lock(&k->lock);
    *out = k->copied;
    mutex_unlock(&k->lock);
    return out->time_ms ? 0 : err_set(err, ERR_NOT_FOUND, "there is no copy");
}

static int restore(struct store_keep *k, const struct config_copy *c, bool replace, struct err *err)
{
    struct installation *i = k->o.installation;
    int code = installation_restore_begin(i, replace, err);

    for (size_t at = 0; code == 0 && at < c->command_count; at += RESTORE_PAGE)
        code = installation_restore_page(i, c->commands + at,
                                         size_min(RESTORE_PAGE, c->command_count - at), err);
    return code == 0 ? installation_restore_end(i, err) : code;
}

int store_keep_restore(struct store_keep *k, const char *from, bool replace, struct err *err)
{
    struct arena a = {0};
    struct installation_status s;
    struct config_copy c;

    installation_status(k->o.installation, &s);
    int code = config_copy_read(&c, &a, &k->key, from ? from : k->path.p, err);
    if (code == 0 && !str_eq(c.installation, str_z(s.id)))
        code = err_set(err, ERR_CONFLICT, "the copy is of installation " STR_FMT ", not of %s",
                       STR_ARG(c.installation), s.id);
    if (code == 0)
        code = restore(k, &c, replace, err);
    if (code == 0)
        log_warn(k->o.log, "store.restored", log_u("commands", c.command_count));
    arena_release(&a);
    return code;
}

/* --- the thread --- */

static void store_mend(struct store_keep *k, const struct installation_status *s)
{
    struct err err = {0};

    if (!s->back)
        return;
    int code = k->o.mend.replications ? went_back_mend(&k->o.mend, &err) : 0;
    if (code == 0)
        code = installation_mended(k->o.installation, s->round, &err);
    if (code == 0) /* asks the store, which updates the status at once */
        code = installation_check(k->o.installation, &err);
    if (code < 0 && code != ERR_BUSY)
        log_warn(k->o.log, "store.not_mended", log_z("error", err.text));
}

static void store_look(struct store_keep *k)
{
    struct installation_status s;

    installation_status(k->o.installation, &s);
    if (s.state != INSTALLATION_KNOWN)
        return;
    if (k->o.shared && s.runs != k->runs)
        store_settings_look(k->o.config, k->o.log);
    k->runs = s.runs;
    store_mend(k, &s);
    keep_copy(k, &s);
}

static struct loop_sleep store_keep_step(void *ctx)
{
    store_look(ctx);
    return loop_sleep_ms(LOOK_MS);
}

int store_keep_start(struct store_keep **out, const struct store_keep_options *o, struct err *err)
{
    struct store_keep *k = xcalloc(1, sizeof(*k));
    bool made;

    k->o = *o;
    mutex_init(&k->lock, "store.keep");
    buf_appendf(&k->path, "%s/config.sealed", o->folder);
    buf_appendf(&k->before, "%s/config.sealed.before", o->folder);
    int code = seal_key_open(&k->key, o->key_file, &made, err);
    if (code == 0) {
        find_copy(k);
        code = loop_start(&k->loop, &(struct loop_options){"store-keep", store_keep_step, k}, err);
    }
    if (code < 0) {
        store_keep_stop(k);
        return code;
    }
    *out = k;
    return 0;
}

void store_keep_stop(struct store_keep *k)
{
    if (!k)
        return;
    loop_stop(&k->loop);
    seal_key_release(&k->key);
    mutex_release(&k->lock);
    buf_release(&k->path);
    buf_release(&k->before);
    free(k);
}
