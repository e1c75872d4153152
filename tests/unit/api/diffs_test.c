/* The calls about diffs. */
#include "coord/check.h"
#include "coord/queue.h"
#include "object/bucket.h"
#include "route/route.h"
#include "route/users.h"
#include "unit/api/api_lab.h"

#include <stdio.h>

static void make_bucket(struct api_lab *l, const char *storage, const char *name)
{
    struct bucket_info info = {.name = str_z(name), .owner = USER_ROOT};
    struct storage *s = routes_storage(l->routes, str_z(storage));
    struct err err = {0};

    CHECK_OK(s->ops->create_bucket(s, &info, &err));
}

/* "photos" on storages local and disk2. */
static void start(struct api_lab *l)
{
    char body[512];

    api_lab_start(l);
    snprintf(body, sizeof(body), "{\"name\":\"disk2\",\"kind\":\"local\",\"folder\":\"%s/disk2\"}",
             test_dir());
    api_call(l, "POST /api/v1/storages", body, 201);
    make_bucket(l, "local", "photos");
    make_bucket(l, "disk2", "photos");
}

static void call(struct api_lab *l, const char *method, const char *id, const char *tail,
                 int status)
{
    char request[256];

    snprintf(request, sizeof(request), "%s /api/v1/diffs/%s%s", method, id, tail);
    api_call(l, request, strcmp(tail, "/fix") == 0 ? "{\"source\":\"disk2:photos\"}" : NULL,
             status);
}

#define BOTH "{\"locations\":[\"local:photos\",\"disk2:photos\"]}"

TEST(api_diffs, one_is_started_shown_and_taken_away)
{
    struct api_lab l;
    char id[CHECK_ID_LEN + 1];

    start(&l);
    api_call(&l, "POST /api/v1/diffs", BOTH, 201);
    snprintf(id, sizeof(id), STR_FMT, STR_ARG(api_text(&l, "id")));
    CHECK_STR(api_text(&l, "state"), STR("checking"));
    CHECK_STR(api_text(&l, "user"), STR("root"));
    const json_t *locations = json_object_get(l.json, "locations");
    CHECK_STR(str_z(json_string_value(json_array_get(locations, 0))), STR("disk2:photos"));
    api_call(&l, "POST /api/v1/diffs", BOTH, 409);
    api_call(&l, "GET /api/v1/diffs", NULL, 200);
    CHECK_INT(json_array_size(json_object_get(l.json, "diffs")), 1);
    call(&l, "GET", id, "", 200);
    CHECK(!json_get_bool(l.json, "consistent", true));
    call(&l, "GET", id, "/entries?limit=5", 200);
    CHECK_INT(json_array_size(json_object_get(l.json, "entries")), 0);
    call(&l, "GET", id, "/entries?limit=1001", 400);
    call(&l, "POST", id, "/fix", 409); /* it is at work */
    call(&l, "POST", id, "/restart", 202);
    call(&l, "DELETE", id, "", 204);
    call(&l, "DELETE", id, "", 404);
    call(&l, "GET", id, "", 404);
    call(&l, "POST", id, "/restart", 404);
    api_lab_stop(&l);
}

TEST(api_diffs, what_was_found_is_given_by_pages_and_fixed)
{
    const struct str found[] = {STR("{\"object\":\"a\",\"kind\":\"missing\",\"sides\":[null,{}]}"),
                                STR("{\"object\":\"b\",\"kind\":\"missing\",\"sides\":[null,{}]}")};
    struct api_lab l;
    char id[CHECK_ID_LEN + 1];
    struct check c;
    struct err err = {0};

    start(&l);
    api_call(&l, "POST /api/v1/diffs", BOTH, 201);
    snprintf(id, sizeof(id), STR_FMT, STR_ARG(api_text(&l, "id")));
    struct checks cs = {l.stores[0], l.queue};
    CHECK_OK(check_read(&cs, &l.arena, str_z(id), &c, &err));
    struct check_page p = {.check = &c, .keys = 7, .differences = 2, .entries = found, .count = 2};
    CHECK_OK(check_page(&cs, &p, &err));
    call(&l, "GET", id, "", 200);
    CHECK_STR(api_text(&l, "state"), STR("ready"));
    CHECK_INT(json_get_i64(l.json, "differences", 0), 2);
    call(&l, "GET", id, "/entries?after=1", 200);
    const json_t *entries = json_object_get(l.json, "entries");
    CHECK_INT(json_array_size(entries), 1);
    CHECK_STR(json_get_str(json_array_get(entries, 0), "object", STR("")), STR("b"));
    call(&l, "POST", id, "/fix", 202);
    CHECK_STR(api_text(&l, "state"), STR("fixing"));
    CHECK_STR(api_text(&l, "source"), STR("disk2:photos"));
    api_lab_stop(&l);
}

TEST(api_diffs, what_cannot_work_is_refused)
{
    static const struct {
        const char *body;
        int status;
        const char *text;
    } cases[] = {
        {"{}", 400, "locations is required"},
        {"{\"locations\":[]}", 400, "locations must have 2 to 8 items"},
        {"{\"locations\":[\"local:photos\"]}", 400, "locations must have 2 to 8 items"},
        {"{\"locations\":[\"local:photos\",1]}", 400, "locations must be a list of strings"},
        {"{\"locations\":[\"local:photos\",\"disk2\"]}", 400,
         "'disk2' is not a location; write STORAGE:BUCKET"},
        {"{\"locations\":[\"local:photos\",\":photos\"]}", 400,
         "':photos' is not a location; write STORAGE:BUCKET"},
        {"{\"locations\":[\"local:photos\",\"local:photos\"]}", 400,
         "bucket photos on storage local is named twice"},
        {"{\"locations\":[\"local:photos\",\"x:photos\"]}", 404,
         "there is no storage x; weir storage list shows all storages"},
        {"{\"locations\":[\"local:photos\",\"disk2:none\"]}", 404,
         "there is no bucket none on storage disk2"},
        {"{\"locations\":[\"local:photos\",\"disk2:photos\"],\"contents\":1}", 400,
         "contents must be true or false"},
    };
    struct api_lab l;

    start(&l);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        api_call(&l, "POST /api/v1/diffs", cases[i].body, cases[i].status);
        CHECK_STR(api_error_text(&l), str_z(cases[i].text));
    }
    call(&l, "GET", "0123456789abcdef", "", 404);
    call(&l, "GET", "w:ccv:id", "", 404);
    api_call_as(&l, NULL, "GET /api/v1/diffs", NULL, 401);
    api_call_as(&l, NULL, "POST /api/v1/diffs", BOTH, 401);
    api_lab_stop(&l);
}
