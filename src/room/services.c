/* Functions for the services that the rooms share. */
#include "room/services.h"
#include "conf/keys.h"
#include "route/remotes.h"
#include "route/route.h"

bool services_has_role(const struct services *s, const char *role)
{
    struct str rest, word;

    if (!s->only)
        return true;
    rest = str_z(s->only);
    while (str_token(&rest, ",", &word))
        if (str_eq(word, str_z(role)))
            return true;
    return false;
}

int services_need_replication(const struct services *s, struct err *err)
{
    if (s->replications)
        return 0;
    return err_set(err, ERR_UNSUPPORTED,
                   "replication is off: it needs four databases of the store on one server; "
                   "set store.redis.appDB, queueDB, lockDB and configDB to numbers, which are "
                   "databases of store.redis.url, and start weir again");
}

int services_find_remote(const struct services *s, struct arena *a, struct str name,
                         struct remote_entry *out, struct err *err)
{
    struct remote_entry *list;
    size_t count;
    int code = remotes_list(s->remotes, a, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        if (str_eq(list[i].name, name)) {
            *out = list[i];
            return 0;
        }
    if (code < 0)
        return code;
    return routes_storage(s->routes, name)
               ? err_set(err, ERR_NOT_FOUND, "the storage " STR_FMT " is not a remote one",
                         STR_ARG(name))
               : err_set(err, ERR_NOT_FOUND, "there is no storage " STR_FMT, STR_ARG(name));
}

void services_path(const struct services *s, const char *name, struct buf *out)
{
    buf_appendf(out, "%s/%s", s->conf->data, name);
}

int services_blame_key(const struct services *s, const char *key, int code, struct err *err)
{
    struct buf source = BUF_INIT(1024);

    conf_source_text(s->conf, conf_key_find(str_z(key)), &source);
    err_wrap(err, code, "%s (%s)", key, source.p);
    buf_release(&source);
    return code;
}

void services_add_server(struct services *s, const char *name, struct http_server *server)
{
    BUG_ON(s->server_count == SERVICES_SERVERS_MAX);
    s->servers[s->server_count++] = (struct named_server){name, server};
}

void services_remove_server(struct services *s, const struct http_server *server)
{
    for (size_t i = 0; i < s->server_count; i++)
        if (s->servers[i].server == server) {
            s->servers[i] = s->servers[--s->server_count];
            return;
        }
}
