/* Asks the store whether it is the store that this data folder knows, and acts on its answers
 * (coord/installation.h). */
#include "coord/gateways.h"
#include "coord/installation_int.h"
#include "coord/queue_int.h"

#include <stdlib.h>

enum { CALL_ARENA_MAX = 64 * 1024, WORD_ARGS = 13, ANSWERS = 10 };

/* The name of each state, and the reason that clients are given when they are refused in that
 * state. */
static const struct {
    const char *name, *why;
} states[] = {
    [INSTALLATION_UNASKED] = {"unasked", "The store was not reached yet"},
    [INSTALLATION_KNOWN] = {"known", ""},
    [INSTALLATION_EMPTY] = {"empty", "The store is empty or was never this installation's"},
    [INSTALLATION_OTHER] = {"other", "The store belongs to another installation"},
    [INSTALLATION_OLDER] = {"older", "The store has lost changes of the configuration"},
};

const char *installation_state_name(enum installation_state state)
{
    return states[state].name;
}

int installation_why(void *ctx, struct err *err)
{
    struct installation *i = ctx;

    mutex_lock(&i->lock);
    enum installation_state state = i->status.state;
    mutex_unlock(&i->lock);
    return err_set(err, ERR_STORE,
                   "%s; nothing is served until an administrator says what it is (weir store "
                   "status).",
                   states[state].why);
}

const _Atomic(bool) *installation_halted(const struct installation *i)
{
    return &i->halted;
}

struct seen *installation_seen(struct installation *i)
{
    return i->o.shared && i->o.queue ? &i->seen : NULL;
}

void installation_status(struct installation *i, struct installation_status *out)
{
    mutex_lock(&i->lock);
    *out = i->status;
    mutex_unlock(&i->lock);
}

void installation_memory(struct installation *i, struct shards_memory *out)
{
    mutex_lock(&i->lock);
    *out = i->memory;
    mutex_unlock(&i->lock);
}

/* --- sending a word to the store --- */

static void installation_ask_begin(struct installation *i)
{
    mutex_lock(&i->lock);
    while (i->asking)
        cond_wait(&i->asked_last, &i->lock);
    i->asking = true;
    mutex_unlock(&i->lock);
}

static void installation_ask_end(struct installation *i)
{
    mutex_lock(&i->lock);
    i->asking = false;
    cond_signal(&i->asked_last);
    mutex_unlock(&i->lock);
}

static struct str answer_text(const struct reply *r)
{
    return r->type == REPLY_BULK ? r->str : STR_EMPTY;
}

static void copy_text(char *out, size_t room, struct str value)
{
    size_t len = size_min(value.len, room - 1);

    if (len && value.p)
        memcpy(out, value.p, len);
    out[len] = '\0';
}

/* Enters the state that the store's answer calls for. Each change of the state is logged once. */
static void installation_enter(struct installation *i, enum installation_state state,
                               struct str found)
{
    mutex_lock(&i->lock);
    enum installation_state before = i->status.state;
    i->status.state = state;
    copy_text(i->status.found, sizeof(i->status.found), found);
    mutex_unlock(&i->lock);
    atomic_store_explicit(&i->halted, state != INSTALLATION_KNOWN, memory_order_release);
    if (state == before)
        return;
    if (state != INSTALLATION_KNOWN)
        log_error(i->o.log, "store.halted", log_z("why", states[state].why),
                  log_z("knows", i->r.id), log_s("found", found),
                  log_z("what", "weir store status"));
    else if (before != INSTALLATION_UNASKED)
        log_warn(i->o.log, "store.known_again", log_z("installation", i->r.id));
}

static enum installation_state installation_state_of(struct str verdict)
{
    for (size_t i = 0; i < ARRAY_SIZE(states); i++)
        if (str_eq(verdict, str_z(states[i].name)))
            return (enum installation_state)i;
    return INSTALLATION_UNASKED;
}

static uint64_t answer_number(const struct reply *r)
{
    uint64_t n = 0;

    return str_u64(answer_text(r), &n) == 0 ? n : 0;
}

/* Updates `i->r`, the copy of the data folder's file `installation`, from the store's answers. The
 * file is written only when the id or the run of the store has changed, or when the file still says
 * that the last stop was orderly. */
static int installation_remember(struct installation *i, const struct reply *answers,
                                 struct err *err)
{
    struct remembered r = i->r;
    struct str run = answer_text(&answers[7]);

    copy_text(r.id, sizeof(r.id), answer_text(&answers[1]));
    copy_text(r.run, sizeof(r.run), run);
    r.number = answer_number(&answers[2]);
    r.clean = false;
    bool same = strcmp(r.id, i->r.id) == 0 && strcmp(r.run, i->r.run) == 0 && !i->r.clean;
    int code = i->kept && !same ? remembered_write(&r, i->path.p, err) : 0;
    if (code == 0)
        i->r = r;
    return code;
}

static int installation_take_known(struct installation *i, const struct reply *answers,
                                   struct err *err)
{
    bool other_run = !i->asked || !str_eq(str_z(i->r.run), answer_text(&answers[7]));
    int code = installation_remember(i, answers, err);

    if (code < 0)
        return code;
    i->asked = true;
    seen_took(&i->seen, i->r.number);
    i->certain = true;
    mutex_lock(&i->lock);
    struct installation_status *s = &i->status;
    bool back = s->round && answer_number(&answers[4]) != s->round;
    copy_text(s->id, sizeof(s->id), str_z(i->r.id));
    s->config = answer_number(&answers[3]);
    s->round = answer_number(&answers[4]);
    s->back = answer_text(&answers[5]).len;
    s->unsure = answer_number(&answers[6]);
    s->runs += other_run;
    if (answer_text(&answers[9]).len)
        shards_memory_took(&i->memory, answer_text(&answers[8]), answer_text(&answers[9]),
                           answer_text(&answers[7]), clock_boot_ns());
    uint64_t round = s->round;
    back &= s->back;
    mutex_unlock(&i->lock);
    if (back)
        log_error(i->o.log, "store.went_back", log_u("round", round),
                  log_z("what", "acknowledged changes may be lost; every replication is compared "
                                "anew"));
    installation_enter(i, INSTALLATION_KNOWN, STR_EMPTY);
    return 0;
}

static int installation_take_answer(struct installation *i, const struct reply *reply,
                                    struct err *err)
{
    int code = reply_expect(reply, REPLY_ARRAY, err);

    if (code < 0)
        return code;
    enum installation_state state =
        reply->count ? installation_state_of(answer_text(&reply->items[0])) : INSTALLATION_UNASKED;
    if (state == INSTALLATION_UNASKED || (state == INSTALLATION_KNOWN && reply->count != ANSWERS))
        return err_set(err, ERR_TYPE, "the store gave a malformed answer about itself");
    if (state == INSTALLATION_KNOWN)
        return installation_take_known(i, reply->items, err);
    installation_enter(i, state, reply->count > 1 ? answer_text(&reply->items[1]) : STR_EMPTY);
    return installation_why(i, err);
}

/* Gives the numbers of the databases, in the order in which the scripts expect them: appDB,
 * queueDB, configDB. */
static void installation_databases(const struct installation *i, struct arena *a, struct str out[3])
{
    out[0] = i->o.app ? queue_number(a, store_number(i->o.app)) : STR_EMPTY;
    out[1] = i->o.queue ? queue_number(a, store_number(i->o.queue)) : STR_EMPTY;
    out[2] = queue_number(a, store_number(i->o.config));
}

static int installation_send_word(struct installation *i, struct str process, int64_t epoch,
                                  struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    uint64_t floor = i->o.shared ? atomic_load(i->seen.floor) : 0;
    char fresh[ID_HEX_LEN + 1];
    struct str args[WORD_ARGS];
    struct reply *reply;

    id_hex(fresh);
    installation_databases(i, &a, args);
    args[3] = process;
    args[4] = queue_number(&a, epoch);
    args[5] = queue_number(&a, GATEWAY_LIFE_S);
    args[6] = str_z(i->r.folder);
    args[7] = str_z(i->r.id);
    args[8] = queue_number(&a, (int64_t)floor);
    args[9] = i->certain || !i->o.shared ? STR("1") : STR_EMPTY;
    args[10] = str_z(i->r.run);
    mutex_lock(&i->lock);
    uint64_t config = i->status.config;
    mutex_unlock(&i->lock);
    args[11] = queue_number(&a, (int64_t)(config > i->r.config ? config : i->r.config));
    args[12] = str_z(fresh);
    atomic_store(&i->seen.lost, false);
    /* The first word may give the store its id, which the folder then remembers. So that word must
     * be durable. */
    struct script_run run = {.script = coord_script(SCRIPT_store_word),
                             .args = {args, WORD_ARGS},
                             .relaxed = i->r.id[0] != '\0'};
    int code = script_eval(i->o.config, &a, &reply, &run, err);
    if (code == 0)
        code = installation_take_answer(i, reply, err);
    arena_release(&a);
    return code;
}

int installation_tell(struct installation *i, struct str process, int64_t epoch, struct err *err)
{
    installation_ask_begin(i);
    int code = installation_send_word(i, process, epoch, err);
    installation_ask_end(i);
    return code;
}

int installation_check(void *ctx, struct err *err)
{
    return installation_tell(ctx, STR_EMPTY, 0, err);
}

bool installation_is_unsure(struct installation *i)
{
    struct installation_status s;

    if (!i)
        return false;
    if (installation_check(i, NULL) < 0)
        return true;
    installation_status(i, &s);
    return s.back || s.unsure;
}

/* --- opening and closing --- */

static int installation_open_files(struct installation *i, struct err *err)
{
    struct buf page = {0};
    bool kept = false;

    buf_appendf(&i->path, "%s/installation", i->o.folder);
    buf_appendf(&page, "%s/installation.number", i->o.folder);
    int code = remembered_read(&i->r, i->path.p, err);
    i->kept = code == 0;
    if (code == ERR_NOT_FOUND) {
        code = 0;
        id_hex(i->r.folder);
    }
    if (code == 0)
        code = number_page_open(&i->page, page.p, i->o.boot, &kept, err);
    buf_release(&page);
    if (code < 0)
        return code;
    memcpy(i->seen.folder, i->r.folder, sizeof(i->seen.folder));
    i->seen.floor = &i->page->number;
    /* Without the file `installation` the folder gets a new id, and the number in the other file
     * belongs to the old id. */
    if (!i->kept)
        atomic_store(&i->page->number, 0);
    i->certain = !i->kept || kept || i->r.clean;
    seen_took(&i->seen, i->r.number);
    memcpy(i->status.id, i->r.id, sizeof(i->status.id));
    return 0;
}

int installation_open(struct installation **out, const struct installation_options *o,
                      struct err *err)
{
    struct installation *i = xcalloc(1, sizeof(*i));
    struct err away = {0};

    i->o = *o;
    mutex_init(&i->lock, "installation");
    cond_init(&i->asked_last);
    int code = installation_open_files(i, err);
    if (code < 0) {
        installation_close(i);
        return code;
    }
    if (installation_check(i, &away) < 0)
        log_info(o->log, "store.not_asked", log_z("error", away.text));
    *out = i;
    return 0;
}

int installation_keep(struct installation *i, struct err *err)
{
    installation_ask_begin(i);
    int code = 0;
    if (!i->kept && i->r.id[0])
        code = remembered_write(&i->r, i->path.p, err);
    i->kept = true;
    installation_ask_end(i);
    return code;
}

int installation_copied(struct installation *i, uint64_t config, struct err *err)
{
    installation_ask_begin(i);
    struct remembered r = i->r;
    r.config = config;
    r.number = atomic_load(i->seen.floor);
    int code = i->kept && r.id[0] ? remembered_write(&r, i->path.p, err) : 0;
    if (code == 0)
        i->r = r;
    installation_ask_end(i);
    return code;
}

static void installation_leave(struct installation *i)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    struct str args[] = {
        queue_number(&a, store_number(i->o.queue ? i->o.queue : i->o.config)),
        str_z(i->r.folder),
    };
    struct reply *reply;
    struct err err = {0};

    if (coord_eval(i->o.config, &a, &reply, SCRIPT_store_leave, args, ARRAY_SIZE(args), &err) < 0)
        log_info(i->o.log, "store.not_left", log_z("error", err.text));
    struct remembered r = i->r;
    r.clean = true;
    r.number = atomic_load(i->seen.floor);
    if (remembered_write(&r, i->path.p, &err) < 0)
        log_warn(i->o.log, "store.not_remembered", log_z("error", err.text));
    arena_release(&a);
}

void installation_close(struct installation *i)
{
    if (!i)
        return;
    if (i->kept && i->status.state == INSTALLATION_KNOWN)
        installation_leave(i);
    number_page_close(i->page);
    cond_release(&i->asked_last);
    mutex_release(&i->lock);
    buf_release(&i->path);
    free(i);
}

/* --- decisions of an administrator --- */

/* Runs a script that answers {'ok'}, or a word that says why it refused. *answer is set to 'ok' or
 * to that word. *answer is empty when the script's answer is not one of the known words. */
static int installation_ask(struct installation *i, enum coord_script script,
                            const struct store_args *args, struct str *answer, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    static const char *const known[] = {"ok", "other", "known", "empty", "full", "gone"};
    struct reply *reply;
    int code = coord_eval(i->o.config, &a, &reply, script, args->argv, args->argc, err);

    *answer = STR_EMPTY;
    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    for (size_t k = 0; code == 0 && reply->count && k < ARRAY_SIZE(known); k++)
        if (str_eq(answer_text(&reply->items[0]), str_z(known[k])))
            *answer = str_z(known[k]);
    arena_release(&a);
    return code;
}

static int installation_refuse(struct str answer, struct err *err)
{
    static const struct {
        const char *answer, *text;
    } rows[] = {
        {"other", "the store belongs to another installation; give this weir its own store, or say "
                  "--installation ID"},
        {"known", "the store is not empty: it has the id of this installation"},
        {"empty", "the store is empty, not an older one"},
        {"full", "the store has a configuration already; --replace puts the copy in its place"},
        {"gone", "another restore was begun meanwhile"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (str_eq(answer, str_z(rows[i].answer)))
            return err_set(err, ERR_CONFLICT, "%s", rows[i].text);
    return err_set(err, ERR_TYPE, "the store gave a malformed answer about itself");
}

static int installation_run(struct installation *i, enum coord_script script,
                            const struct store_args *args, struct err *err)
{
    struct str answer;
    int code = installation_ask(i, script, args, &answer, err);

    return code < 0 || str_eq(answer, STR("ok")) ? code : installation_refuse(answer, err);
}

/* Makes the data folder join the installation `id`. The folder forgets the numbers that it
 * remembered of the old store. */
static int installation_move(struct installation *i, struct str id, struct err *err)
{
    struct remembered r = i->r;

    mutex_lock(&i->lock);
    bool is = i->status.state == INSTALLATION_OTHER && str_eq(str_z(i->status.found), id);
    mutex_unlock(&i->lock);
    if (!is)
        return err_set(err, ERR_CONFLICT, "the store is not that of installation " STR_FMT,
                       STR_ARG(id));
    copy_text(r.id, sizeof(r.id), id);
    r.config = r.number = 0;
    int code = i->kept ? remembered_write(&r, i->path.p, err) : 0;
    if (code < 0)
        return code;
    i->r = r;
    atomic_store(i->seen.floor, 0);
    mutex_lock(&i->lock);
    i->status.config = i->status.round = 0;
    mutex_unlock(&i->lock);
    return 0;
}

static uint64_t installation_config_count(struct installation *i)
{
    mutex_lock(&i->lock);
    uint64_t config = i->status.config;
    mutex_unlock(&i->lock);
    return config > i->r.config ? config : i->r.config;
}

int installation_accept(struct installation *i, enum installation_accepted what, struct str id,
                        struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    int code;

    installation_ask_begin(i);
    if (what == ACCEPT_OTHER) {
        code = installation_move(i, id, err);
    } else {
        const struct str args[] = {what == ACCEPT_EMPTY ? STR("empty") : STR("older"),
                                   str_z(i->r.id),
                                   queue_number(&a, (int64_t)installation_config_count(i))};
        code = i->r.id[0] ? installation_run(i, SCRIPT_store_accept,
                                             &(struct store_args){args, ARRAY_SIZE(args)}, err)
                          : err_set(err, ERR_CONFLICT, "the store was not reached yet");
    }
    if (code == 0)
        code = installation_send_word(i, STR_EMPTY, 0, err);
    installation_ask_end(i);
    arena_release(&a);
    return code;
}

int installation_restore_begin(struct installation *i, bool replace, struct err *err)
{
    const struct str args[] = {STR("begin"), str_z(i->r.id), replace ? STR("1") : STR_EMPTY};

    return installation_run(i, SCRIPT_store_restore, &(struct store_args){args, ARRAY_SIZE(args)},
                            err);
}

int installation_restore_page(struct installation *i, const struct store_args *commands,
                              size_t count, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    size_t words = 2, at = 2;

    for (size_t k = 0; k < count; k++)
        words += 1 + commands[k].argc;
    struct str *args = arena_array(&a, words, sizeof(*args));
    if (!args)
        return err_code(err, ERR_NO_MEMORY);
    args[0] = STR("page");
    args[1] = str_z(i->r.id);
    for (size_t k = 0; k < count; k++) {
        args[at++] = queue_number(&a, (int64_t)commands[k].argc);
        memcpy(args + at, commands[k].argv, commands[k].argc * sizeof(*args));
        at += commands[k].argc;
    }
    int code = installation_run(i, SCRIPT_store_restore, &(struct store_args){args, words}, err);
    arena_release(&a);
    return code;
}

int installation_restore_end(struct installation *i, struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    const struct str args[] = {STR("end"), str_z(i->r.id),
                               queue_number(&a, (int64_t)installation_config_count(i))};
    int code = installation_run(i, SCRIPT_store_restore,
                                &(struct store_args){args, ARRAY_SIZE(args)}, err);

    arena_release(&a);
    return code == 0 ? installation_check(i, err) : code;
}

int installation_mended(struct installation *i, uint64_t round, struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    const struct str args[] = {queue_number(&a, (int64_t)round)};
    struct reply *reply;
    int code = coord_eval(i->o.config, &a, &reply, SCRIPT_store_mended, args, 1, err);

    arena_release(&a);
    return code;
}
