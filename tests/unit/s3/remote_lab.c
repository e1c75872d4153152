/* A remote storage over a gateway of this process. */
#include "unit/s3/remote_lab.h"
#include "unit/s3/gateway_lab.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const people[] = {"owner", "me", "you", "other"};

struct remote_lab {
    struct gate gate;
    struct storage *storage;
};

/* The same id on both sides; the keys are the peer's. */
static void add_user(struct remote_lab *l, const char *id)
{
    struct arena a = ARENA_INIT(0);
    struct str access = arena_fmt(&a, "AKIA%.8s00000000", id),
               secret = arena_fmt(&a, "secret-of-%.8s-secret-of", id);
    struct user_key key = {access, secret};
    struct user added, wanted = {.id = str_z(id), .name = str_z(id), .keys = &key, .key_count = 1};
    struct remote_credential credential = {str_z(id), access, secret};
    struct err err = {0};

    CHECK_OK(users_add(l->gate.users, &a, &wanted, &added, &err));
    CHECK_OK(remote_set_credential(l->storage, &credential, &err));
    arena_release(&a);
}

struct remote_lab *remote_lab_start(void)
{
    return remote_lab_start_in(test_dir());
}

struct remote_lab *remote_lab_start_in(const char *dir)
{
    return remote_lab_start_as(dir, "far");
}

struct remote_lab *remote_lab_start_as(const char *dir, const char *name)
{
    struct remote_lab *l = xcalloc(1, sizeof(*l));
    struct remote_options o = {.name = str_z(name)};
    char url[64];
    struct err err = {0};

    signal(SIGPIPE, SIG_IGN);
    gate_start_in(&l->gate, dir);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", l->gate.lab.port);
    o.url = str_z(url);
    CHECK_OK(remote_open(&l->storage, &o, &err));
    for (size_t i = 0; i < ARRAY_SIZE(people); i++)
        add_user(l, people[i]);
    return l;
}

void remote_lab_stop(struct remote_lab *l)
{
    if (l->storage)
        l->storage->ops->close(l->storage);
    gate_stop(&l->gate);
    free(l);
}

struct storage *remote_lab_storage(struct remote_lab *l)
{
    return l->storage;
}

struct storage *remote_lab_take_storage(struct remote_lab *l)
{
    struct storage *s = l->storage;

    l->storage = NULL;
    return s;
}
