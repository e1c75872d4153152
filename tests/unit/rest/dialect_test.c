/* Tables of another program's API: their own check of the caller, errors and pages; lenient bodies;
 * bodies and answers that stream. */
#include "rest/rest.h"
#include "unit/http/server_lab.h"

#include <unistd.h>

/* --- a dialect --- */

static int admit_friends(struct rest_call *c, struct err *err)
{
    struct str name = http_header(http_request_head(c->req), "X-Friend");

    if (c->row->access == REST_ANYONE)
        return 0;
    if (!name.len)
        return rest_refuse(c, 401, "stranger", "who are you?",
                           (struct http_header){STR("X-Ask"), STR("name")});
    if (str_eq(name, STR("foe")))
        return err_set(err, ERR_DENIED, "not you");
    c->caller = arena_z(c->arena, name);
    return 0;
}

static int friend_status(int code)
{
    return code == ERR_NOT_MODIFIED ? 418 : 0;
}

static void friend_error(struct json_out *w, const char *code, const char *message, const char *id)
{
    (void)code;
    (void)id;
    json_out_member_str(w, "oops", str_z(message));
}

static void friend_page(struct json_out *w, const struct rest_page *page, struct str next)
{
    json_out_member_u64(w, "on_page", page->written);
    json_out_member_bool(w, "more", page->more);
    json_out_member_str(w, "go_on", next);
}

static const struct rest_field friend_paging[] = {
    {"behind", "Where the page begins."}, {"amount", "Items.", REST_INTEGER}, {0}};

static const struct rest_dialect friendly = {
    .admit = admit_friends,
    .status = friend_status,
    .write_error = friend_error,
    .paging = friend_paging,
    .page_usual = 2,
    .page_max = 3,
    .write_page = friend_page,
    .body_max = 4096,
    .lenient = true,
};

/* --- rows --- */

static int say_hello(struct rest_call *c, struct err *err)
{
    (void)err;
    json_out_member_str(c->w, "friend", str_z(c->caller));
    json_out_member_u64(c->w, "labels", json_object_size(rest_json(c, "labels")));
    json_out_member_u64(c->w, "things", json_array_size(rest_json(c, "things")));
    json_out_member_bool(c->w, "name_given", rest_given(c, "name"));
    if (rest_bool(c, "loud"))
        json_out_member_bool(c->w, "loud", true);
    rest_header(c, STR("X-Hello"), STR("there"));
    return 0;
}

static int fail_unmodified(struct rest_call *c, struct err *err)
{
    (void)c;
    return err_set(err, ERR_NOT_MODIFIED, "no changes");
}

/* Refuses by what its row says, and ends with an error all the same. Its path has a value that the
 * row does not describe. */
static int refuse_and_fail(struct rest_call *c, struct err *err)
{
    rest_refuse(c, 409, "refused", c->row->more, (struct http_header){0});
    return err_set(err, ERR_DENIED, "this error is not sent");
}

/* Five items "a" to "e", read from a source that can begin behind a key. */
static int list_from_source(struct rest_call *c, struct err *err)
{
    char letter = rest_after(c).len ? (char)(rest_after(c).p[0] + 1) : 'a';
    size_t i = 0;

    (void)err;
    for (; i < rest_limit(c) && letter <= 'e'; i++, letter++) {
        rest_row_begin(c);
        json_out_member_str(c->w, "letter", str_n(&letter, 1));
        rest_item_end(c);
    }
    letter--;
    rest_page_end(c, letter < 'e', arena_str(c->arena, str_n(&letter, 1)));
    return 0;
}

static int count_words(struct rest_call *c, struct err *err)
{
    const json_t *words = rest_strings(c, "words"), *word;
    size_t i;

    (void)err;
    json_out_key(c->w, "words");
    json_out_open(c->w, '[');
    json_array_foreach(words, i, word) json_out_str(c->w, str_z(json_string_value(word)));
    json_out_close(c->w, ']');
    return 0;
}

/* Counts the bytes of the body as it arrives. */
static int count_stream(struct rest_call *c, struct err *err)
{
    struct reader *body = http_request_body(c->req);
    char piece[16 * 1024], text[32];
    size_t got, total = 0;
    int code;

    while ((code = reader_read(body, piece, sizeof(piece), &got, err)) == 0 && got)
        total += got;
    if (code < 0)
        return code;
    snprintf(text, sizeof(text), "%zu", total);
    rest_header(c, STR("X-Counted"), STR("yes"));
    return http_send(rest_take_answer(c, 203), str_z(text));
}

static int answer_head(struct rest_call *c, struct err *err)
{
    (void)err;
    rest_header(c, STR("X-Row"), STR("head"));
    return http_send(rest_take_answer(c, 200), STR_EMPTY);
}

static const struct rest_row rows[] = {
    {HTTP_POST, "/hello", REST_USER, "Says hello.", say_hello,
     .query = REST_FIELDS({"loud", "A switch.", REST_BOOLEAN}),
     .body = REST_FIELDS({"labels", "Labels.", REST_MAP, .min = 0, .max = 2},
                         {"things", "Things.", REST_OBJECTS,
                          .members = REST_FIELDS({"size", "A size.", REST_INTEGER, .max = 9})},
                         {"thing", "A thing.", REST_OBJECT,
                          .members = REST_FIELDS({"id", "Its id.", .required = true})},
                         {"name", "A name."})},
    {HTTP_GET, "/same", REST_USER, "Fails.", fail_unmodified},
    {HTTP_GET, "/refused/{thing}", REST_USER, "Refuses.", refuse_and_fail, .more = "by its row"},
    {HTTP_GET, "/letters", REST_ANYONE, "Letters.", list_from_source, .list = "letters",
     .by_source = true},
    {HTTP_GET, "/words", REST_ANYONE, "Words.", count_words,
     .query = REST_FIELDS({"words", "Words.", REST_STRINGS})},
    {HTTP_POST, "/stream", REST_ANYONE, "Counts its bytes.", count_stream, .stream_body = "Bytes."},
    {HTTP_GET, "/stream", REST_ANYONE, "Fails.", fail_unmodified},
    {HTTP_HEAD, "/stream", REST_ANYONE, "Has a row of its own.", answer_head},
};

static const struct rest_table table = {REST_ROWS(rows), .dialect = &friendly};

static int serve_dialect(struct http_request *req, void *ctx)
{
    struct rest_match match;
    struct err err = {0};
    int code = rest_find(&match, &table, 1, req, &err);

    (void)ctx;
    return code < 0 ? rest_send_failure(req, code, &err) : rest_run(&match, req);
}

struct dialect_case {
    const char *request, *body;
    int status;
    const char *answer;
};

static void check_dialect(const struct dialect_case *cases, size_t count, const char *header)
{
    struct lab lab = {0};

    lab_start(&lab, (struct http_server_options){.handler = serve_dialect});
    for (size_t i = 0; i < count; i++) {
        const char *body = cases[i].body ? cases[i].body : "";
        struct answer a = {0};
        int fd = lab_dial(&lab);

        lab_sayf(fd, "%s HTTP/1.1\r\nHost: a\r\n%sContent-Length: %zu\r\n\r\n%s", cases[i].request,
                 header, strlen(body), body);
        lab_read(fd, &a, false);
        CHECK_INT(a.status, cases[i].status);
        CHECK_STR(buf_str(&a.body), str_z(cases[i].answer));
        answer_release(&a);
        close(fd);
    }
    lab_end(&lab);
}

TEST(rest_dialect, the_dialect_decides_who_may_call_and_the_form_of_errors)
{
    static const struct dialect_case strangers[] = {
        {"POST /hello", "{", 401, "{\"oops\":\"who are you?\"}"},
        {"GET /letters?behind=d", NULL, 200,
         "{\"letters\":[{\"letter\":\"e\"}],\"on_page\":1,\"more\":false,\"go_on\":\"\"}"},
    };
    static const struct dialect_case friends[] = {
        {"POST /hello", "{\"labels\":{\"a\":\"b\"},\"things\":[{}]}", 200,
         "{\"friend\":\"ann\",\"labels\":1,\"things\":1,\"name_given\":false}"},
        {"GET /same", NULL, 418, "{\"oops\":\"no changes\"}"},
        {"GET /refused/x", NULL, 409, "{\"oops\":\"by its row\"}"},
    };
    static const struct dialect_case foes[] = {
        {"POST /hello", "{}", 403, "{\"oops\":\"not you\"}"},
    };

    check_dialect(strangers, ARRAY_SIZE(strangers), "");
    check_dialect(friends, ARRAY_SIZE(friends), "X-Friend: ann\r\n");
    check_dialect(foes, ARRAY_SIZE(foes), "X-Friend: foe\r\n");
}

TEST(rest_dialect, a_lenient_dialect_takes_bodies_as_many_programs_write_them)
{
    static const struct dialect_case cases[] = {
        {"POST /hello", "", 200,
         "{\"friend\":\"ann\",\"labels\":0,\"things\":0,\"name_given\":false}"},
        {"POST /hello", "{\"name\":null,\"other\":[1]}", 200,
         "{\"friend\":\"ann\",\"labels\":0,\"things\":0,\"name_given\":false}"},
        {"POST /hello?loud=True", "", 200,
         "{\"friend\":\"ann\",\"labels\":0,\"things\":0,\"name_given\":false,\"loud\":true}"},
        {"POST /hello?loud=0", "", 200,
         "{\"friend\":\"ann\",\"labels\":0,\"things\":0,\"name_given\":false}"},
        {"POST /hello?loud=yes", "", 400, "{\"oops\":\"loud must be true or false\"}"},
        {"POST /hello", "{\"name\":7}", 400, "{\"oops\":\"name must be a string\"}"},
        {"POST /hello", "{\"labels\":{\"a\":1}}", 400,
         "{\"oops\":\"labels must be an object whose members are strings\"}"},
        {"POST /hello", "{\"labels\":{\"a\":\"\",\"b\":\"\",\"c\":\"\"}}", 400,
         "{\"oops\":\"labels must have 0 to 2 members\"}"},
        {"POST /hello", "{\"labels\":[]}", 400,
         "{\"oops\":\"labels must be an object whose members are strings\"}"},
        {"POST /hello", "{\"things\":[1]}", 400, "{\"oops\":\"things must be a list of objects\"}"},
        {"POST /hello", "{\"things\":[{},{\"size\":9,\"other\":1},{\"size\":null}]}", 200,
         "{\"friend\":\"ann\",\"labels\":0,\"things\":3,\"name_given\":false}"},
        {"POST /hello", "{\"things\":[{},{\"size\":\"9\"}]}", 400,
         "{\"oops\":\"size must be a whole number\"}"},
        {"POST /hello", "{\"things\":[{\"size\":10}]}", 400, "{\"oops\":\"size must be 0 to 9\"}"},
        {"POST /hello", "{\"thing\":{\"id\":null}}", 400, "{\"oops\":\"thing.id is required\"}"},
        {"POST /hello", "{\"thing\":[]}", 400, "{\"oops\":\"thing must be an object\"}"},
        {"POST /hello", "[]", 400, "{\"oops\":\"the body must be a JSON object\"}"},
    };

    check_dialect(cases, ARRAY_SIZE(cases), "X-Friend: ann\r\n");
}

TEST(rest_dialect, lists_page_by_the_dialects_own_words)
{
    static const struct dialect_case cases[] = {
        {"GET /letters", NULL, 200,
         "{\"letters\":[{\"letter\":\"a\"},{\"letter\":\"b\"}],\"on_page\":2,\"more\":true,"
         "\"go_on\":\"b\"}"},
        {"GET /letters?amount=-1&behind=c", NULL, 200,
         "{\"letters\":[{\"letter\":\"d\"},{\"letter\":\"e\"}],\"on_page\":2,\"more\":false,"
         "\"go_on\":\"\"}"},
        {"GET /letters?amount=1000&behind=a&limit=1", NULL, 200,
         "{\"letters\":[{\"letter\":\"b\"},{\"letter\":\"c\"},{\"letter\":\"d\"}],\"on_page\":3,"
         "\"more\":true,\"go_on\":\"d\"}"},
        {"GET /letters?amount=x", NULL, 400, "{\"oops\":\"amount must be a whole number\"}"},
        {"GET /words", NULL, 200, "{\"words\":[]}"},
        {"GET /words?words=a%20b&words=c&words=", NULL, 200, "{\"words\":[\"a b\",\"c\"]}"},
        {"GET /words?words=a%ff", NULL, 400,
         "{\"oops\":\"words has too many values, or one that is not UTF-8\"}"},
    };

    check_dialect(cases, ARRAY_SIZE(cases), "");
}

TEST(rest_dialect, a_body_streams_past_the_limit_of_json_and_head_has_its_own_row)
{
    enum { SIZE = 3 * 1024 * 1024 };
    struct lab lab = {0};
    struct answer a = {0};
    char *body = xcalloc(1, SIZE);

    lab_start(&lab, (struct http_server_options){.handler = serve_dialect});
    int fd = lab_dial(&lab);
    lab_sayf(fd, "HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    lab_read(fd, &a, true);
    CHECK_INT(a.status, 200);
    CHECK_STR(http_header(&a.head, "X-Row"), STR("head"));
    lab_sayf(fd, "POST /stream HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", SIZE);
    lab_say(fd, str_n(body, SIZE));
    lab_read(fd, &a, false);
    CHECK_INT(a.status, 203);
    CHECK_STR(buf_str(&a.body), STR("3145728"));
    CHECK_STR(http_header(&a.head, "X-Counted"), STR("yes"));
    answer_release(&a);
    close(fd);
    lab_end(&lab);
    free(body);
}
