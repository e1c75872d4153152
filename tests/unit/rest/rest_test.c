/* Rows at work: values are checked before a row's function sees them, lists page, errors have one
 * form. */
#include "rest/rest.h"
#include "unit/http/server_lab.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- a table of rows that show each thing --- */

static int echo_values(struct rest_call *c, struct err *err)
{
    (void)err;
    json_out_member_str(c->w, "name", rest_text(c, "name"));
    json_out_member_i64(c->w, "size", rest_integer(c, "size"));
    json_out_member_bool(c->w, "force", rest_bool(c, "force"));
    json_out_member_f64(c->w, "factor", rest_number(c, "factor", 1));
    json_out_member_str(c->w, "style", rest_text(c, "style"));
    json_out_member_u64(c->w, "words", json_array_size(rest_strings(c, "words")));
    json_out_member_bool(c->w, "style_given", rest_given(c, "style"));
    return 0;
}

/* Ten items, "a" to "j". */
static int list_letters(struct rest_call *c, struct err *err)
{
    (void)err;
    for (char letter = 'a'; letter <= 'j' && !rest_full(c); letter++)
        if (rest_item(c, str_n(&letter, 1))) {
            json_out_member_str(c->w, "letter", str_n(&letter, 1));
            rest_item_end(c);
        }
    rest_list_end(c);
    json_out_member_u64(c->w, "count", 10);
    return 0;
}

static int list_numbers(struct rest_call *c, struct err *err)
{
    (void)err;
    for (size_t i = rest_skip(c); i < 5; i++)
        if (rest_item(c, STR_EMPTY)) {
            json_out_member_u64(c->w, "number", i);
            rest_item_end(c);
        }
    return 0;
}

static int fail_by_name(struct rest_call *c, struct err *err)
{
    struct str name = rest_text(c, "name");

    if (str_eq(name, STR("missing")))
        return err_set(err, ERR_NOT_FOUND, "the index has no row");
    if (str_eq(name, STR("teapot")))
        return rest_refuse(c, 418, "teapot", "short and stout",
                           (struct http_header){STR("X-Pot"), STR("tea")});
    if (str_eq(name, STR("other")))
        rest_status(c, 202);
    return str_eq(name, STR("busy")) ? err_set(err, ERR_BUSY, "later") : 0;
}

static int refuse_all(struct rest_call *c, struct err *err)
{
    (void)c;
    return err_set(err, ERR_UNSUPPORTED, "this weir has none");
}

static int send_raw(struct rest_call *c, struct err *err)
{
    (void)err;
    return rest_send(c, rest_raw(c));
}

static int read_undescribed(struct rest_call *c, struct err *err)
{
    (void)err;
    (void)rest_text(c, "nmae");
    return 0;
}

static const struct rest_field name_field[] = {{"name", "A name."}, {0}};

static const struct rest_row rows[] = {
    {HTTP_POST, "/echo/{name}", REST_ADMIN, "Answers its values.", echo_values,
     .in_path = name_field, .query = REST_FIELDS({"force", "A switch.", REST_BOOLEAN}),
     .body = REST_FIELDS({"size", "A size.", REST_INTEGER, .min = 1, .max = 9, .usual = 5},
                         {"factor", "A factor.", REST_NUMBER},
                         {"style", "A style.", .choices = REST_CHOICES("path", "host", "none")},
                         {"words", "Words.", REST_STRINGS, .min = 0, .max = 2},
                         {"must", "It must be there.", .required = true, .min = 1, .max = 4})},
    {HTTP_GET, "/letters", REST_ANYONE, "Letters.", list_letters, .list = "letters",
     .page_usual = 4, .page_max = 6},
    {HTTP_GET, "/numbers", REST_ANYONE, "Numbers.", list_numbers, .list = "numbers",
     .by_place = true},
    {HTTP_GET, "/fail/{name}", REST_ANYONE, "Fails.", fail_by_name, .in_path = name_field,
     .status = 200, .other_status = 202, .missing = "there is no such thing", .quick = true},
    {HTTP_DELETE, "/fail/{name}", REST_ANYONE, "Fails.", fail_by_name, .in_path = name_field,
     .status = 204},
    {HTTP_POST, "/none", REST_ANYONE, "Is not there.", echo_values, .needs = refuse_all,
     .body = name_field},
    {HTTP_POST, "/raw", REST_ANYONE, "Answers the body.", send_raw, .raw_body = "Bytes.",
     .raw_max = 10, .media = "text/plain"},
    {HTTP_GET, "/bug", REST_ANYONE, "Reads what its row does not have.", read_undescribed,
     .query = name_field},
};

static const struct rest_table table = {rows, ARRAY_SIZE(rows), NULL};

static int serve_rows(struct http_request *req, void *ctx)
{
    struct rest_match match;
    struct err err = {0};
    int code = rest_find(&match, &table, 1, req, &err);

    return code < 0 ? rest_send_failure(req, code, &err) : rest_run(&match, req);
}

/* Sends the request and checks status and body; a body of NULL is not compared. */
struct rest_case {
    const char *request, *body; /* "GET /path", and what is posted */
    int status;
    const char *answer;
};

static void check_case(struct lab *lab, const struct rest_case *test)
{
    struct answer a = {0};
    int fd = lab_dial(lab);

    lab_sayf(fd, "%s HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n%s", test->request,
             test->body ? strlen(test->body) : 0, test->body ? test->body : "");
    lab_read(fd, &a, false);
    CHECK_INT(a.status, test->status);
    if (test->answer && str_find(buf_str(&a.body), str_z(test->answer)) < 0)
        CHECK_STR(buf_str(&a.body), str_z(test->answer));
    answer_release(&a);
    close(fd);
}

static void check_cases(const struct rest_case *cases, size_t count)
{
    struct lab lab = {0};

    lab_start(&lab, (struct http_server_options){.handler = serve_rows});
    for (size_t i = 0; i < count; i++)
        check_case(&lab, &cases[i]);
    lab_end(&lab);
}

TEST(rest, a_function_gets_the_values_that_its_row_describes)
{
    static const struct rest_case cases[] = {
        {"POST /echo/x%20y?force=true",
         "{\"must\":\"a\",\"size\":7,\"factor\":0.5,\"style\":\"host\",\"words\":[\"a\",\"b\"]}",
         200,
         "{\"name\":\"x "
         "y\",\"size\":7,\"force\":true,\"factor\":0.5,\"style\":\"host\",\"words\":2,"
         "\"style_given\":true}"},
        {"POST /echo/x?force=", "{\"must\":\"a\"}", 200,
         "{\"name\":\"x\",\"size\":5,\"force\":false,\"factor\":1.0,\"style\":\"\",\"words\":0,"
         "\"style_given\":false}"},
        {"GET /letters?limit=6&other=1", NULL, 200, NULL}, /* anyone may make this call */
        {"DELETE /fail/none", "{}", 204, NULL},
    };

    check_cases(cases, ARRAY_SIZE(cases));
}

TEST(rest, values_of_the_wrong_kind_or_beyond_their_limits_are_refused)
{
    static const struct rest_case cases[] = {
        {"POST /echo/x?force=1", "{\"must\":\"a\"}", 400, "force must be true or false"},
        {"POST /echo/x?force=true&force=false", "{\"must\":\"a\"}", 400,
         "the query has force twice"},
        {"POST /echo/x?forse=true", "{\"must\":\"a\"}", 400,
         "this call takes no query parameter \\\"forse\\\"; did you mean \\\"force\\\"?"},
        {"POST /echo/x?other=1", "{\"must\":\"a\"}", 400,
         "this call takes no query parameter \\\"other\\\""},
        {"DELETE /fail/none", "{\"force\":true}", 400, "this call takes no member \\\"force\\\""},
        {"POST /echo/x", "{}", 400, "must is required"},
        {"POST /echo/x", "{\"must\":\"\"}", 400, "must must be 1 to 4 bytes long"},
        {"POST /echo/x", "{\"must\":null}", 400, "must must be a string"},
        {"POST /echo/x", "{\"must\":\"a\",\"size\":10}", 400, "size must be 1 to 9"},
        {"POST /echo/x", "{\"must\":\"a\",\"size\":\"7\"}", 400, "size must be a whole number"},
        {"POST /echo/x", "{\"must\":\"a\",\"size\":7.5}", 400, "size must be a whole number"},
        {"POST /echo/x", "{\"must\":\"a\",\"factor\":-1}", 400, "factor must be 0 or more"},
        {"POST /echo/x", "{\"must\":\"a\",\"style\":\"up\"}", 400,
         "style must be path, host or none, not 'up'"},
        {"POST /echo/x", "{\"must\":\"a\",\"words\":[\"a\",1]}", 400,
         "words must be a list of strings"},
        {"POST /echo/x", "{\"must\":\"a\",\"words\":[\"a\",\"b\",\"c\"]}", 400,
         "words must have 0 to 2 items"},
        {"POST /echo/x", "{\"must\":\"a\",\"stile\":\"path\"}", 400,
         "this call takes no member \\\"stile\\\"; did you mean \\\"style\\\"?"},
        {"POST /echo/x", "{\"must\":\"a\",\"name\":\"y\"}", 400,
         "this call takes no member \\\"name\\\""},
        {"POST /echo/x", "{\"must\":\"a\\u0000b\"}", 400, "must must not have a NUL"},
        {"POST /echo/x", "{\"must\":\"a\",\"words\":[\"a\\u0000\"]}", 400,
         "words must not have a NUL"},
        {"GET /letters?after=a%00", NULL, 400, "after must not have a NUL"},
        {"POST /echo/x", "[]", 400, "the body must be a JSON object"},
        {"POST /echo/x", "", 400, "this call needs a body, a JSON object"},
        {"POST /echo/x", "{\"must\":", 400, "the body is not JSON: line 1, column 8: "},
        {"POST /raw", "12345678901", 413, NULL},
    };

    check_cases(cases, ARRAY_SIZE(cases));
}

TEST(rest, every_list_pages_by_after_limit_and_next)
{
    static const struct rest_case cases[] = {
        {"GET /letters", NULL, 200,
         "{\"letters\":[{\"letter\":\"a\"},{\"letter\":\"b\"},{\"letter\":\"c\"},{\"letter\":\"d\"}"
         "],"
         "\"count\":10,\"next\":\"d\"}"},
        {"GET /letters?after=h", NULL, 200,
         "{\"letters\":[{\"letter\":\"i\"},{\"letter\":\"j\"}],\"count\":10,\"next\":\"\"}"},
        {"GET /letters?after=d&limit=6", NULL, 200,
         "{\"letter\":\"j\"}],\"count\":10,\"next\":\"\"}"},
        {"GET /letters?limit=7", NULL, 400, "limit must be 1 to 6"},
        {"GET /letters?limit=0", NULL, 400, "limit must be 1 to 6"},
        {"GET /numbers?limit=2", NULL, 200,
         "{\"numbers\":[{\"number\":0},{\"number\":1}],\"next\":\"2\"}"},
        {"GET /numbers?limit=2&after=2", NULL, 200,
         "{\"numbers\":[{\"number\":2},{\"number\":3}],\"next\":\"4\"}"},
        {"GET /numbers?limit=2&after=4", NULL, 200, "{\"numbers\":[{\"number\":4}],\"next\":\"\"}"},
        {"GET /numbers?after=d", NULL, 400, "after must be the next of another page"},
    };

    check_cases(cases, ARRAY_SIZE(cases));
}

TEST(rest, errors_have_one_form)
{
    static const struct rest_case cases[] = {
        {"GET /fail/missing", NULL, 404,
         "{\"error\":{\"code\":\"not_found\",\"message\":\"there is no such "
         "thing\",\"request_id\""},
        {"GET /fail/teapot", NULL, 418,
         "{\"error\":{\"code\":\"teapot\",\"message\":\"short and stout\",\"request_id\""},
        {"GET /fail/busy", NULL, 503, "{\"error\":{\"code\":\"busy\",\"message\":\"later\""},
        {"GET /fail/other", NULL, 202, "{}"},
        {"GET /fail/none", NULL, 200, "{}"},
        {"DELETE /fail/none", NULL, 204, ""},
        {"POST /none", "{", 501, "this weir has none"},
        {"POST /raw", "1234567890", 200, "1234567890"},
    };

    check_cases(cases, ARRAY_SIZE(cases));
}

/* In a process of its own, which it ends. */
TEST(rest, reading_a_value_that_the_row_does_not_describe_is_a_bug)
{
    static const struct rest_case cases[] = {{"GET /bug", NULL, 200, NULL}};
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        close(STDERR_FILENO);
        check_cases(cases, ARRAY_SIZE(cases));
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
