/* Routes: the satellites of the archive, and changes of their table. */
#include "archive/move.h"
#include "archive/rest/rest.h"
#include "archive/satellites.h"

static rest_fn satellite_list, satellite_add, satellite_drain;

static const struct rest_row satellite_rows[] = {
    {HTTP_GET, "/api/v1/archive/satellites", REST_ADMIN,
     "The satellites of the archive, and how many of the 256 slots each holds.", satellite_list,
     .answer = REST_FIELDS(
         {"epoch", "The number of the table of slots; 0: there is none yet.", REST_INTEGER},
         {"moving", "Slots that move between satellites.", REST_INTEGER},
         {"satellites", "The satellites.", REST_OBJECTS,
          .members = REST_FIELDS(
              {"name", "The name of the storage and of its user."},
              {"user", "The id of the user who owns the buckets; empty: there is none."},
              {"slots", "How many slots it holds.", REST_INTEGER},
              {"coming", "How many of them are still coming.", REST_INTEGER},
              {"leaving", "How many slots still leave it.", REST_INTEGER},
              {"ranges", "The slots, such as 00-55."},
              {"up", "It answers this process.", REST_BOOLEAN})})},
    {HTTP_POST, "/api/v1/archive/satellites", REST_ADMIN,
     "Add storages as satellites. The first ones split the slots equally; a newcomer beside others "
     "takes its share of the slots, which then move. Each gets a user of its own name, and only "
     "this answer holds the user's secret key.",
     satellite_add, .status = 201,
     .body = REST_FIELDS({"names", "The names of the storages.", REST_STRINGS, .required = true,
                          .min = 1, .max = SATELLITES_MAX},
                         {"access_key", "The user's access key on a remote storage."},
                         {"secret_key", "The user's secret key there.", .secret = true}),
     .answer = REST_FIELDS(
         {"epoch", "The number of the new table.", REST_INTEGER},
         {"moving", "Slots that move to the newcomer.", REST_INTEGER},
         {"satellites", "The satellites that were added.", REST_OBJECTS,
          .members = REST_FIELDS(
              {"name", "The satellite."}, {"user", "The id of its user."},
              {"access_key", "The user's access key; empty: the user was there before."},
              {"secret_key", "The secret key, which no other call answers.", .secret = true})})},
    {HTTP_POST, "/api/v1/archive/satellites/{name}/drain", REST_ADMIN,
     "Move the slots of a satellite to the others. When they have moved, it is no satellite any "
     "more: the policy of its user is removed. If weir has made the user, it removes the archive's "
     "buckets that have neither objects nor settings, except on remote storages, and the user, if "
     "it owns no bucket. The storage stays.",
     satellite_drain, .status = 202, .in_path = REST_FIELDS({"name", "The satellite."}),
     .answer = REST_FIELDS({"epoch", "The number of the new table.", REST_INTEGER},
                           {"moving", "Slots that leave the satellite.", REST_INTEGER})},
};
const struct rest_table archive_satellite_routes = {REST_ROWS(satellite_rows)};

/* --- listing --- */

/* The slots of a satellite as ranges: "00-54,80". */
static struct str satellite_ranges(struct arena *a, const struct slots *t, size_t satellite)
{
    struct buf text = {0};

    for (unsigned s = 0, end; s < SLOT_COUNT; s = end) {
        for (end = s + 1; end < SLOT_COUNT && t->of[end] == t->of[s];)
            end++;
        if (t->of[s] != satellite)
            continue;
        buf_appendf(&text, end - s > 1 ? "%s%02x-%02x" : "%s%02x", text.len ? "," : "", s, end - 1);
    }
    struct str out = arena_str(a, buf_str(&text));
    buf_release(&text);
    return out;
}

static void satellite_write(struct rest_call *c, struct satellites *s, const struct slots *t,
                            size_t i)
{
    struct str name = str_z(t->names[i]), user = STR_EMPTY;
    struct err none = {0};
    uint64_t coming = 0, leaving = 0;

    for (unsigned slot = 0; slot < SLOT_COUNT; slot++) {
        coming += slots_moves(t, slot) && t->of[slot] == i;
        leaving += slots_moves(t, slot) && t->leaves[slot] == i;
    }
    if (satellites_user(s, c->arena, name, &user, &none) < 0)
        user = STR_EMPTY;
    json_out_open(c->w, '{');
    json_out_member_str(c->w, "name", name);
    json_out_member_str(c->w, "user", user);
    json_out_member_u64(c->w, "slots", slots_held(t, i));
    json_out_member_u64(c->w, "coming", coming);
    json_out_member_u64(c->w, "leaving", leaving);
    json_out_member_str(c->w, "ranges", satellite_ranges(c->arena, t, i));
    json_out_member_bool(c->w, "up", satellites_is_up(s, name));
    json_out_close(c->w, '}');
}

static void satellite_write_table(struct rest_call *c, const struct slots *t)
{
    json_out_member_u64(c->w, "epoch", t->epoch);
    json_out_member_u64(c->w, "moving", slots_moving(t));
}

static int satellite_list(struct rest_call *c, struct err *err)
{
    struct satellites *s = rest_archive(c)->satellites;
    struct slots t;
    int code = satellites_current(s, &t, false, err);

    if (code < 0)
        return code;
    satellite_write_table(c, &t);
    json_out_key(c->w, "satellites");
    json_out_open(c->w, '[');
    for (size_t i = 0; i < t.count; i++)
        satellite_write(c, s, &t, i);
    json_out_close(c->w, ']');
    return 0;
}

/* --- changing --- */

/* Adds tasks for the slots that move now. If this fails, a worker adds them soon. */
static void satellite_begin_moves(struct archive *x)
{
    struct err err = {0};

    if (moves_add_tasks(x->moves, &err) < 0)
        log_warn(x->log, "archive.moves", log_z("error", err.text));
}

static void satellite_write_made(struct json_out *w, const struct satellite_made *m)
{
    json_out_open(w, '{');
    json_out_member_str(w, "name", m->name);
    json_out_member_str(w, "user", m->user);
    json_out_member_str(w, "access_key", m->key.access);
    json_out_member_str(w, "secret_key", m->key.secret);
    json_out_close(w, '}');
}

/* Reads the names of satellites, and their keys, from the body. */
static size_t satellite_read_wanted(struct rest_call *c,
                                    struct satellite_wanted wanted[SATELLITES_MAX])
{
    const json_t *names = rest_strings(c, "names"), *name;
    size_t i, count = 0;

    json_array_foreach(names, i, name)
    {
        if (count < SATELLITES_MAX)
            wanted[count++] = (struct satellite_wanted){
                .name = str_n(json_string_value(name), json_string_length(name)),
                .access = rest_text(c, "access_key"),
                .secret = rest_text(c, "secret_key")};
    }
    return count;
}

static int satellite_add(struct rest_call *c, struct err *err)
{
    struct archive *x = rest_archive(c);
    struct satellite_wanted wanted[SATELLITES_MAX];
    struct satellite_made made[SATELLITES_MAX] = {0};
    struct slots t;
    size_t count = satellite_read_wanted(c, wanted);
    int code = satellites_add(x->satellites, c->arena, wanted, count, made, err);

    if (code < 0)
        return code;
    satellites_table(x->satellites, &t);
    satellite_begin_moves(x);
    satellite_write_table(c, &t);
    json_out_key(c->w, "satellites");
    json_out_open(c->w, '[');
    for (size_t i = 0; i < count; i++)
        satellite_write_made(c->w, &made[i]);
    json_out_close(c->w, ']');
    return 0;
}

static int satellite_drain(struct rest_call *c, struct err *err)
{
    struct archive *x = rest_archive(c);
    struct slots t;
    int code = satellites_drain(x->satellites, rest_text(c, "name"), err);

    if (code < 0)
        return code;
    satellites_table(x->satellites, &t);
    satellite_begin_moves(x);
    satellite_write_table(c, &t);
    return 0;
}
