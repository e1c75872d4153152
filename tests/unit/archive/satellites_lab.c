/* Satellites for tests. */
#include "unit/archive/satellites_lab.h"

#include "coord/queue.h"
#include "object/overlay.h"
#include "route/route.h"
#include "unit/archive/packs.h"
#include "unit/server_db.h"

#include <stdio.h>
#include <sys/stat.h>

const char *const lab_names[LAB_SATELLITES] = {"asia-east-1", "europe-west-1", "us-central-1",
                                               "zone-4"};

#define LAB_BUCKET STR("github.com")

/* --- opening --- */

static void lab_add_local(struct satellites_lab *lab, const char *name)
{
    struct local_options o = {
        .name = name, .db = lab->db, .part_min = LAB_PART_MIN, .reserve_bytes = 1};
    struct err err = {0};
    char folder[256];

    snprintf(folder, sizeof(folder), "%s/%s", test_dir(), name);
    o.folder = folder;
    CHECK_OK(routes_add_local(lab->routes, &o, &err));
}

/* The peer's user "owner" stands for the user of the satellite. */
static void lab_add_remote(struct satellites_lab *lab, size_t i)
{
    struct remote_credential c = {.access = STR("AKIAowner00000000"),
                                  .secret = STR("secret-of-owner-secret-of")};
    struct err err = {0};
    char folder[256], user[64];

    snprintf(folder, sizeof(folder), "%s/%s", test_dir(), lab_names[i]);
    snprintf(user, sizeof(user), "satellite-%s", lab_names[i]);
    CHECK_INT(mkdir(folder, 0700), 0);
    lab->far[i] = remote_lab_start_as(folder, lab_names[i]);
    struct storage *s = remote_lab_take_storage(lab->far[i]);
    c.user = str_z(user);
    CHECK_OK(remote_set_credential(s, &c, &err));
    CHECK_OK(routes_add_storage(lab->routes, s, &err));
}

static void lab_open_storages(struct satellites_lab *lab, enum lab_storages kind)
{
    struct store *config = lab->four->stores[DB_CONFIG];
    struct err err = {0};
    char folder[192], dir[160], key_file[256];

    snprintf(dir, sizeof(dir), "%.150s/objects", test_dir());
    CHECK_INT(mkdir(dir, 0700), 0);
    snprintf(folder, sizeof(folder), "%s/main", dir);
    snprintf(key_file, sizeof(key_file), "%s/secrets.key", test_dir());
    CHECK_OK(server_db_open(&lab->db, dir, &err));
    CHECK_OK(routes_open(&lab->routes, config, NULL, &err));
    CHECK_OK(
        routes_open_local(lab->routes,
                          &(struct local_options){
                              .name = "local", .folder = folder, .db = lab->db, .reserve_bytes = 1},
                          &err));
    CHECK_OK(users_open(&lab->users, config, key_file, NULL, &err));
    for (size_t i = 0; i < LAB_SATELLITES; i++)
        if (kind == LAB_LOCAL || (kind == LAB_MIXED && i % 2 == 0))
            lab_add_local(lab, lab_names[i]);
        else
            lab_add_remote(lab, i);
}

static void lab_table_changed(void *ctx, const struct slots *table)
{
    struct satellites_lab *lab = ctx;
    struct err err = {0};

    CHECK_OK(schedule_map(lab->schedule, table, &err));
}

static void lab_open_moves(struct satellites_lab *lab)
{
    struct moves_options o = {
        .satellites = lab->satellites, .schedule = lab->schedule, .queue = lab->queue};
    struct err err = {0};

    moves_close(lab->moves);
    CHECK_OK(moves_open(&lab->moves, &o, &err));
}

void satellites_lab_open(struct satellites_lab *lab, struct four *f, enum lab_storages kind)
{
    struct err err = {0};

    *lab = (struct satellites_lab){.four = f};
    lab_open_storages(lab, kind);
    CHECK_OK(schedule_open(
        &lab->schedule,
        &(struct schedule_options){.app = f->stores[DB_APP], .lock_ms = LAB_LOCK_MS}, &err));
    lab->queue = queue_new(f->stores[DB_QUEUE]);
    lab->options = (struct satellites_options){.users = lab->users,
                                               .env = {.routes = lab->routes},
                                               .app = f->stores[DB_APP],
                                               .changed = lab_table_changed,
                                               .ctx = lab};
    CHECK_OK(satellites_open(&lab->satellites, &lab->options, &err));
    lab_open_moves(lab);
}

void satellites_lab_close(struct satellites_lab *lab)
{
    moves_close(lab->moves);
    satellites_close(lab->satellites);
    queue_free(lab->queue);
    schedule_close(lab->schedule);
    users_close(lab->users);
    routes_close(lab->routes);
    for (size_t i = 0; i < LAB_SATELLITES; i++)
        if (lab->far[i])
            remote_lab_stop(lab->far[i]);
    db_close(lab->db);
    arena_release(&lab->arena);
}

struct satellites *satellites_lab_second(struct satellites_lab *lab)
{
    struct satellites *s = NULL;
    struct err err = {0};

    CHECK_OK(satellites_open(&s, &lab->options, &err));
    return s;
}

void satellites_lab_restart(struct satellites_lab *lab)
{
    satellites_close(lab->satellites);
    lab->satellites = satellites_lab_second(lab);
    lab_open_moves(lab);
}

/* --- satellites and accounts --- */

void satellites_lab_add(struct satellites_lab *lab, size_t count)
{
    struct satellite_wanted wanted[LAB_SATELLITES] = {0};
    struct satellite_made made[LAB_SATELLITES];
    struct err err = {0};

    for (size_t i = 0; i < count; i++)
        wanted[i].name = str_z(lab_names[i]);
    CHECK_OK(satellites_add(lab->satellites, &lab->arena, wanted, count, made, &err));
}

struct slots satellites_lab_table(struct satellites_lab *lab)
{
    struct slots t;

    satellites_table(lab->satellites, &t);
    return t;
}

struct archive_account satellites_lab_account(struct satellites_lab *lab, const char *login)
{
    struct archive_account c;
    struct err err = {0};

    CHECK_OK(archive_account_make(&c, &lab->arena, STR("github.com"), str_z(login), &err));
    return c;
}

const char *satellites_lab_home(struct satellites_lab *lab, const char *login)
{
    struct archive_account c = satellites_lab_account(lab, login);
    struct slots t = satellites_lab_table(lab);

    for (size_t i = 0; i < LAB_SATELLITES; i++)
        if (strcmp(lab_names[i], t.names[t.of[c.hash[0]]]) == 0)
            return lab_names[i];
    return "local";
}

struct str satellites_lab_key(struct satellites_lab *lab, const char *login, const char *name)
{
    struct archive_account c = satellites_lab_account(lab, login);
    struct str folder = archive_folder(&c, &lab->arena);

    return name[0] == '.' ? arena_fmt(&lab->arena, STR_FMT "%s",
                                      STR_ARG(str_head(folder, folder.len - 1)), name)
                          : arena_fmt(&lab->arena, STR_FMT "%s", STR_ARG(folder), name);
}

/* --- objects --- */

void satellites_lab_put(struct satellites_lab *lab, const char *login, const char *name,
                        struct str bytes)
{
    struct archive_account c = satellites_lab_account(lab, login);
    struct http_header headers[] = {{STR("content-type"), STR("application/x-git")},
                                    {STR("x-amz-meta-fence"), STR("77")},
                                    {STR("x-amz-meta-mtime"), STR("1700000000.125")}};
    struct put_options o = {.meta = {.headers = headers, .header_count = ARRAY_SIZE(headers)}};
    struct put_result result;
    struct str_reader body;
    struct shelf shelf;
    struct err err = {0};

    CHECK_OK(shelf_open(&shelf, lab->satellites, &lab->arena, &c, &err));
    str_reader_init(&body, bytes);
    CHECK_OK(shelf_put(&shelf, &lab->arena, satellites_lab_key(lab, login, name), &body.reader,
                       bytes.len, &o, &result, &err));
    shelf_close(&shelf);
}

struct str satellites_lab_bundle(struct satellites_lab *lab, unsigned seed)
{
    struct buf b = {0};
    struct buf pack = {0};

    pack_make(&pack, 20 + seed % 7, false, seed);
    buf_append_z(&b, "# v2 git bundle\n1111111111111111111111111111111111111111 HEAD\n\n");
    buf_append_str(&b, buf_str(&pack));
    struct str out = arena_str(&lab->arena, buf_str(&b));
    buf_release(&b);
    buf_release(&pack);
    return out;
}

void satellites_lab_expect(struct satellites_lab *lab, const char *login, const char *name,
                           struct str bytes)
{
    struct archive_account c = satellites_lab_account(lab, login);
    struct object_info info = {0};
    struct buf got = {0};
    struct shelf shelf;
    struct err err = {0};

    CHECK_OK(shelf_open(&shelf, lab->satellites, &lab->arena, &c, &err));
    int code = shelf_read(&shelf, &lab->arena, satellites_lab_key(lab, login, name), 1 << 20, &got,
                          &info, &err);
    if (bytes.p) {
        CHECK_OK(code);
        CHECK_STR(buf_str(&got), bytes);
    } else {
        CHECK_INT(code, ERR_NOT_FOUND);
    }
    shelf_close(&shelf);
    buf_release(&got);
}

static struct bucket *lab_bucket(struct satellites_lab *lab, const char *satellite)
{
    struct storage *s = routes_storage(lab->routes, str_z(satellite));
    struct bucket *b = NULL;
    struct err err = {0};
    char user[64];

    snprintf(user, sizeof(user), "satellite-%s", satellite);
    int code = storage_open_bucket(&b, s, str_z(user), LAB_BUCKET, &err);
    if (code == ERR_NO_BUCKET || code == ERR_DENIED)
        return NULL;
    CHECK_OK(code);
    return b;
}

int satellites_lab_look(struct satellites_lab *lab, const char *satellite, struct str key,
                        struct object_info *out, struct buf *bytes)
{
    struct bucket *b = lab_bucket(lab, satellite);
    struct get_result got = {0};
    struct err err = {0};

    if (!b)
        return ERR_NOT_FOUND;
    int code = b->ops->get(b, &lab->arena, key, STR_EMPTY, NULL, NULL, &got, &err);
    if (code == 0 && bytes)
        CHECK_OK(reader_read_all(got.body, bytes, &err));
    reader_close(got.body);
    b->ops->unref(b);
    if (code == 0 && out)
        *out = got.info;
    if (code != ERR_NOT_FOUND)
        CHECK_OK(code);
    return code;
}

void satellites_lab_write(struct satellites_lab *lab, const char *satellite, struct str key,
                          struct str bytes)
{
    struct bucket *b = lab_bucket(lab, satellite);
    struct put_options o = {0};
    struct put_result result;
    struct str_reader body;
    struct err err = {0};

    CHECK(b);
    str_reader_init(&body, bytes);
    CHECK_OK(b->ops->put(b, &lab->arena, key, &body.reader, bytes.len, &o, &result, &err));
    b->ops->unref(b);
}

size_t satellites_lab_copies(struct satellites_lab *lab, struct str key)
{
    size_t n = 0;

    for (size_t i = 0; i < LAB_SATELLITES; i++)
        n += satellites_lab_look(lab, lab_names[i], key, NULL, NULL) == 0;
    return n;
}

void satellites_lab_move(struct satellites_lab *lab, unsigned slot)
{
    struct err err = {0};
    uint64_t since = 0;
    size_t moved;
    int code;

    do
        code = moves_slot(lab->moves, slot, NULL, NULL, &moved, &err);
    while (code == ERR_AGAIN && test_waits(&since));
    CHECK_OK(code);
}

void satellites_lab_move_all(struct satellites_lab *lab)
{
    struct slots t = satellites_lab_table(lab);

    for (unsigned s = 0; s < SLOT_COUNT; s++)
        if (slots_moves(&t, s))
            satellites_lab_move(lab, s);
}

void satellites_lab_run(four_open_fn *open, enum lab_storages kind,
                        void (*fn)(struct satellites_lab *lab))
{
    struct four four = {0};
    struct satellites_lab lab;

    open(&four);
    satellites_lab_open(&lab, &four, kind);
    fn(&lab);
    satellites_lab_close(&lab);
    four_close(&four);
}
