/* Opens the users, keeps all of them in memory (struct users_view), and finds a user. */
#include "route/users.h"
#include "route/users_int.h"

#include <stdlib.h>
#include <unistd.h>

static reload_heard_fn users_is_news;
static reload_fn users_load_now;

static int users_first_load(struct users *u, const struct log *log, bool key_is_new,
                            struct err *err)
{
    int code = reload_open(&u->reload,
                           &(struct reload_options){.store = u->store,
                                                    .channel = USERS_CHANNEL,
                                                    .load = users_load_now,
                                                    .heard = users_is_news,
                                                    .ctx = u,
                                                    .log = log,
                                                    .failed = "users.not_loaded",
                                                    .done = "users.loaded",
                                                    .fatal = RELOAD_EXPECTED | RELOAD_CORRUPT},
                           err);

    if (code == ERR_CORRUPT && key_is_new) {
        code = users_missing_key(u, err);
        unlink(u->key_file);
    }
    return code;
}

int users_open(struct users **out, struct store *config, const char *key_file,
               const struct log *log, struct err *err)
{
    struct users *u = xcalloc(1, sizeof(*u));
    bool made = false;
    int code = seal_key_open(&u->key, key_file, &made, err);

    u->store = config;
    u->key_file = xstrdup(key_file);
    mutex_init(&u->lock, "users");
    cond_init(&u->loaded);
    u->fixed = users_view_new();
    for (size_t i = 0; i < USERS_SCRIPTS; i++) {
        u->scripts[i] = (struct script){.name = "users", .source = str_z(users_script_sources[i])};
        script_init(&u->scripts[i]);
    }
    if (code == 0)
        code = users_first_load(u, log, made, err);
    if (code < 0)
        users_close(u);
    else
        *out = u;
    return code;
}

void users_close(struct users *u)
{
    if (!u)
        return;
    reload_close(&u->reload);
    users_view_free(u->view);
    if (u->root)
        member_free_secrets(u->root);
    free(u->root);
    users_view_free(u->fixed);
    seal_key_release(&u->key);
    cond_release(&u->loaded);
    mutex_release(&u->lock);
    free(u->key_file);
    free(u);
}

/* Returns whether this version of the users is loaded already, as it is after a change that this
 * process made. */
static bool is_loaded(struct users *u, struct str version)
{
    bool same;

    mutex_lock(&u->lock);
    same = u->view && version.len && str_eq(u->view->version, version);
    mutex_unlock(&u->lock);
    return same;
}

static bool users_is_news(void *ctx, struct str channel, struct str message)
{
    return !channel.p || !is_loaded(ctx, message);
}

static int users_load_now(void *ctx, struct err *err)
{
    return users_load(ctx, err);
}

/* --- the first administrator --- */

/* Sets the first administrator, or replaces its keys. The struct member and its access key are one
 * allocation; the secret is another one. Id and name are constants. */
void users_set_root(struct users *u, struct str access, struct str secret)
{
    struct member *m = xcalloc(1, sizeof(*m) + access.len + 1), *old;
    char *copy = (char *)(m + 1);

    if (access.len)
        memcpy(copy, access.p, access.len);
    m->keys[0] = (struct user_key){str_n(copy, access.len), str_n(str_dup(secret), secret.len)};
    m->user = (struct user){.id = USER_ROOT,
                            .name = USER_ROOT,
                            .display_name = USER_ROOT,
                            .admin = true,
                            .keys = m->keys,
                            .key_count = 1};
    mutex_lock(&u->lock);
    old = u->root;
    u->root = m;
    mutex_unlock(&u->lock);
    if (old)
        member_free_secrets(old);
    free(old);
}

/* --- views --- */

int users_view_get(struct users *u, struct users_view **out, struct err *err)
{
    struct users_view *view;

    mutex_lock(&u->lock);
    view = u->view;
    if (view)
        view->refs++;
    mutex_unlock(&u->lock);
    *out = view;
    return view ? 0 : err_set(err, ERR_UNAVAILABLE, "the users could not be loaded yet");
}

void users_view_put(struct users *u, struct users_view *view)
{
    bool last;

    if (!view)
        return;
    mutex_lock(&u->lock);
    last = --view->refs == 0;
    mutex_unlock(&u->lock);
    if (last)
        users_view_free(view);
}

void users_view_free(struct users_view *view)
{
    if (!view)
        return;
    vec_each (&view->members, struct member **, m)
        member_free_secrets(*m);
    vec_release(&view->members);
    map_release(&view->by_name);
    map_release(&view->by_id);
    map_release(&view->by_email);
    map_release(&view->by_access);
    arena_release(&view->arena);
    free(view);
}

void member_free_secrets(struct member *m)
{
    for (size_t i = 0; i < m->user.key_count; i++) {
        char *secret = (char *)m->keys[i].secret.p;
        secure_zero(secret, m->keys[i].secret.len);
        free(secret);
    }
    m->user.key_count = 0;
}

int member_copy(const struct member *m, struct arena *a, struct user *out, struct err *err)
{
    const struct user *u = &m->user;
    struct user_key *keys = arena_array(a, u->key_count + 1, sizeof(*keys));

    for (size_t i = 0; keys && i < u->key_count; i++)
        keys[i].access = arena_str(a, m->keys[i].access);
    *out = (struct user){
        .id = arena_str(a, u->id),
        .name = arena_str(a, u->name),
        .display_name = arena_str(a, u->display_name),
        .email = arena_str(a, u->email),
        .admin = u->admin,
        .keys = keys,
        .key_count = u->key_count,
    };
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

struct str users_fold(struct arena *a, struct str email)
{
    char *folded = arena_z(a, email);

    for (size_t i = 0; folded && i < email.len; i++)
        if (folded[i] >= 'A' && folded[i] <= 'Z')
            folded[i] = (char)(folded[i] - 'A' + 'a');
    return str_n(folded, folded ? email.len : 0);
}

/* --- finding --- */

/* Copies the user into the arena. *secret is set to the secret of the key `access`; `secret` may be
 * NULL. */
static int copy_found(const struct member *m, struct arena *a, struct str access, struct user *out,
                      struct str *secret, struct err *err)
{
    int code = member_copy(m, a, out, err);

    for (size_t i = 0; code == 0 && secret && i < m->user.key_count; i++)
        if (str_eq(m->keys[i].access, access))
            *secret = arena_str(a, m->keys[i].secret);
    if (code == 0 && arena_error(a) < 0)
        code = err_code(err, ERR_NO_MEMORY);
    return code;
}

enum by { BY_NAME, BY_ID, BY_EMAIL, BY_ACCESS };

struct search {
    enum by by;
    struct str what;
};

static bool root_matches(const struct member *root, struct search s)
{
    if (!root || s.by == BY_EMAIL)
        return false;
    return str_eq(s.by == BY_ACCESS ? root->keys[0].access : root->user.name, s.what);
}

static struct member *users_look_up(const struct users_view *view, struct search s)
{
    const struct map *const maps[] = {[BY_NAME] = &view->by_name,
                                      [BY_ID] = &view->by_id,
                                      [BY_EMAIL] = &view->by_email,
                                      [BY_ACCESS] = &view->by_access};

    return map_get(maps[s.by], s.what);
}

static int users_find(struct users *u, struct arena *a, struct search s, struct user *out,
                      struct str *secret, struct err *err)
{
    struct users_view *view = NULL;
    const struct member *m;
    int code = 0;

    mutex_lock(&u->lock);
    if (root_matches(u->root, s)) {
        code = copy_found(u->root, a, s.what, out, secret, err);
        mutex_unlock(&u->lock);
        return code;
    }
    mutex_unlock(&u->lock);
    m = users_look_up(u->fixed, s);
    if (m)
        return copy_found(m, a, s.what, out, secret, err);
    code = users_view_get(u, &view, err);
    if (code < 0)
        return code;
    m = users_look_up(view, s);
    code = m ? copy_found(m, a, s.what, out, secret, err)
             : err_set(err, ERR_NOT_FOUND, "there is no such user");
    users_view_put(u, view);
    return code;
}

int users_by_key(struct users *u, struct arena *a, struct str access, struct user *out,
                 struct str *secret, struct err *err)
{
    return users_find(u, a, (struct search){BY_ACCESS, access}, out, secret, err);
}

int users_by_id(struct users *u, struct arena *a, struct str id, struct user *out, struct err *err)
{
    return users_find(u, a, (struct search){BY_ID, id}, out, NULL, err);
}

int users_by_name(struct users *u, struct arena *a, struct str name, struct user *out,
                  struct err *err)
{
    return users_find(u, a, (struct search){BY_NAME, name}, out, NULL, err);
}

int users_by_email(struct users *u, struct arena *a, struct str email, struct user *out,
                   struct err *err)
{
    return users_find(u, a, (struct search){BY_EMAIL, users_fold(a, email)}, out, NULL, err);
}

int users_list(struct users *u, struct arena *a, struct user **out, size_t *count, struct err *err)
{
    struct users_view *view = NULL;
    struct user *list;
    size_t n = 0;
    int code = users_view_get(u, &view, err);

    if (code < 0)
        return code;
    list = arena_array(a, view->members.len + u->fixed->members.len + 1, sizeof(*list));
    if (!list)
        code = err_code(err, ERR_NO_MEMORY);
    mutex_lock(&u->lock);
    if (code == 0 && u->root)
        code = member_copy(u->root, a, &list[n++], err);
    mutex_unlock(&u->lock);
    for (size_t i = 0; code == 0 && i < u->fixed->members.len; i++)
        code = member_copy(u->fixed->members.items[i], a, &list[n++], err);
    for (size_t i = 0; code == 0 && i < view->members.len; i++)
        code = member_copy(view->members.items[i], a, &list[n++], err);
    users_view_put(u, view);
    if (code < 0)
        return code;
    *out = list;
    *count = n;
    return 0;
}
