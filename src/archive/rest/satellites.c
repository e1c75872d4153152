/* Routes: the satellites of the archive, and changes of their table. */
#include "archive/move.h"
#include "archive/rest/rest.h"
#include "archive/satellites.h"

static rest_fn satellite_list, satellite_add, satellite_drain;

struct satellite_view {
    struct str name, user, ranges;
    uint64_t slots, coming, leaving;
    bool up;
};

/* The table of slots; the members of `satellites` are in one of the two arrays. */
struct table_view {
    uint64_t epoch, moving;
    struct satellite_view *satellites;
    const struct satellite_made *made;
    size_t count;
};

struct satellite_form {
    struct str *names;
    size_t name_count;
    struct str access_key, secret_key;
};

static const struct rest_row satellite_rows[] = {
    {HTTP_GET, "/api/v1/archive/satellites", REST_ADMIN,
     "The satellites of the archive, and how many of the 256 slots each holds.", satellite_list,
     .out = sizeof(struct table_view),
     .answer = REST_FIELDS(
         {"epoch", "The number of the table of slots; 0: there is none yet.", REST_INTEGER,
          REST_AT(struct table_view, epoch)},
         {"moving", "Slots that move between satellites.", REST_INTEGER,
          REST_AT(struct table_view, moving)},
         {"satellites", "The satellites.", REST_OBJECTS,
          .members = REST_FIELDS(
              {"name", "The name of the storage and of its user.",
               REST_AT(struct satellite_view, name)},
              {"user", "The id of the user who owns the buckets; empty: there is none.",
               REST_AT(struct satellite_view, user)},
              {"slots", "How many slots it holds.", REST_INTEGER,
               REST_AT(struct satellite_view, slots)},
              {"coming", "How many of them are still coming.", REST_INTEGER,
               REST_AT(struct satellite_view, coming)},
              {"leaving", "How many slots still leave it.", REST_INTEGER,
               REST_AT(struct satellite_view, leaving)},
              {"ranges", "The slots, such as 00-55.", REST_AT(struct satellite_view, ranges)},
              {"up", "It answers this process.", REST_BOOLEAN, REST_AT(struct satellite_view, up)}),
          REST_ITEMS(struct table_view, satellites, count)})},
    {HTTP_POST, "/api/v1/archive/satellites", REST_ADMIN,
     "Add storages as satellites. The first ones split the slots equally; a newcomer beside others "
     "takes its share of the slots, which then move. Each gets a user of its own name, and only "
     "this answer holds the user's secret key.",
     satellite_add, .status = 201, .in = sizeof(struct satellite_form),
     .out = sizeof(struct table_view),
     .body = REST_FIELDS({"names", "The names of the storages.", REST_STRINGS, .required = true,
                          .min = 1, .max = SATELLITES_MAX,
                          REST_ITEMS(struct satellite_form, names, name_count)},
                         {"access_key", "The user's access key on a remote storage.",
                          REST_AT(struct satellite_form, access_key)},
                         {"secret_key", "The user's secret key there.", .secret = true,
                          REST_AT(struct satellite_form, secret_key)}),
     .answer = REST_FIELDS(
         {"epoch", "The number of the new table.", REST_INTEGER, REST_AT(struct table_view, epoch)},
         {"moving", "Slots that move to the newcomer.", REST_INTEGER,
          REST_AT(struct table_view, moving)},
         {"satellites", "The satellites that were added.", REST_OBJECTS,
          .members =
              REST_FIELDS({"name", "The satellite.", REST_AT(struct satellite_made, name)},
                          {"user", "The id of its user.", REST_AT(struct satellite_made, user)},
                          {"access_key", "The user's access key; empty: the user was there before.",
                           REST_AT(struct satellite_made, key.access)},
                          {"secret_key", "The secret key, which no other call answers.",
                           .secret = true, REST_AT(struct satellite_made, key.secret)}),
          REST_ITEMS(struct table_view, made, count)})},
    {HTTP_POST, "/api/v1/archive/satellites/{name}/drain", REST_ADMIN,
     "Move the slots of a satellite to the others. When they have moved, it is no satellite any "
     "more: the policy of its user is removed. If weir has made the user, it removes the archive's "
     "buckets that have neither objects nor settings, except on remote storages, and the user, if "
     "it owns no bucket. The storage stays.",
     satellite_drain, .status = 202, .in_path = REST_FIELDS({"name", "The satellite."}),
     .out = sizeof(struct table_view),
     .answer = REST_FIELDS(
         {"epoch", "The number of the new table.", REST_INTEGER, REST_AT(struct table_view, epoch)},
         {"moving", "Slots that leave the satellite.", REST_INTEGER,
          REST_AT(struct table_view, moving)})},
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

static struct satellite_view satellite_view(struct satellites *s, struct arena *a,
                                            const struct slots *t, size_t i)
{
    struct satellite_view v = {
        .name = str_z(t->names[i]), .slots = slots_held(t, i), .ranges = satellite_ranges(a, t, i)};
    struct err none = {0};

    for (unsigned slot = 0; slot < SLOT_COUNT; slot++) {
        v.coming += slots_moves(t, slot) && t->of[slot] == i;
        v.leaving += slots_moves(t, slot) && t->leaves[slot] == i;
    }
    if (satellites_user(s, a, v.name, &v.user, &none) < 0)
        v.user = STR_EMPTY;
    v.up = satellites_is_up(s, v.name);
    return v;
}

static int satellite_list(struct rest_call *c, struct err *err)
{
    struct satellites *s = rest_archive(c)->satellites;
    struct satellite_view views[SATELLITES_MAX];
    struct slots t;
    int code = satellites_current(s, &t, false, err);

    if (code < 0)
        return code;
    for (size_t i = 0; i < t.count; i++)
        views[i] = satellite_view(s, c->arena, &t, i);
    return rest_give(c, (&(struct table_view){t.epoch, slots_moving(&t), views, NULL, t.count}));
}

/* --- changing --- */

/* Adds tasks for the slots that move now. If this fails, a worker adds them soon. */
static void satellite_begin_moves(struct archive *x)
{
    struct err err = {0};

    if (moves_add_tasks(x->moves, &err) < 0)
        log_warn(x->log, "archive.moves", log_z("error", err.text));
}

/* Answers with the table after a change, and with the satellites that were added. */
static int satellite_give(struct rest_call *c, const struct satellite_made *made, size_t count)
{
    struct archive *x = rest_archive(c);
    struct slots t;

    satellites_table(x->satellites, &t);
    satellite_begin_moves(x);
    return rest_give(c, (&(struct table_view){t.epoch, slots_moving(&t), NULL, made, count}));
}

static int satellite_add(struct rest_call *c, struct err *err)
{
    const struct satellite_form *in = rest_in(c, struct satellite_form);
    struct satellite_wanted wanted[SATELLITES_MAX];
    struct satellite_made made[SATELLITES_MAX] = {0};

    for (size_t i = 0; i < in->name_count; i++)
        wanted[i] = (struct satellite_wanted){in->names[i], in->access_key, in->secret_key};
    int code =
        satellites_add(rest_archive(c)->satellites, c->arena, wanted, in->name_count, made, err);
    return code < 0 ? code : satellite_give(c, made, in->name_count);
}

static int satellite_drain(struct rest_call *c, struct err *err)
{
    int code = satellites_drain(rest_archive(c)->satellites, rest_text(c, "name"), err);

    return code < 0 ? code : satellite_give(c, NULL, 0);
}
