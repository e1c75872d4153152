/* Which row a request gets, and with what values of its path. */
#include "rest/rest.h"
#include "unit/http/server_lab.h"

#include <unistd.h>

static const struct rest_row rows[] = {
    {HTTP_GET, "/", REST_ANYONE, "root"},
    {HTTP_GET, "/things/{name}", REST_ANYONE, "thing"},
    {HTTP_PUT, "/things/{name}", REST_ANYONE, "put-thing"},
    {HTTP_GET, "/things/{name}/parts/{part}", REST_ANYONE, "part"},
    {HTTP_GET, "/things/special", REST_ANYONE, "special"},
};
static const struct rest_row more_rows[] = {
    {HTTP_GET, "/things/{name...}", REST_ANYONE, "below"},
    {HTTP_POST, "/things/special", REST_ANYONE, "post-special"},
};
static const struct rest_table tables[] = {{rows, ARRAY_SIZE(rows), NULL},
                                           {more_rows, ARRAY_SIZE(more_rows), NULL}};

/* Answers with the row's doc and the values of its path, or the error's name. */
static int describe(struct http_request *req, void *ctx)
{
    struct rest_match match = {0};
    struct buf out = BUF_INIT(0);
    struct err err = {0};
    int code = rest_find(&match, tables, ARRAY_SIZE(tables), req, &err);

    buf_append_z(&out, code < 0 ? err_name(code) : match.row->doc);
    for (size_t i = 0; code == 0 && i < match.path.count; i++) {
        buf_append_char(&out, ' ');
        buf_append_str(&out, match.path.name[i]);
        buf_append_char(&out, '=');
        buf_append_str(&out, match.path.value[i]);
    }
    if (code == ERR_UNSUPPORTED) {
        buf_append_char(&out, ' ');
        rest_allowed(&out, tables, ARRAY_SIZE(tables), req);
    }
    code = http_send(req, buf_str(&out));
    buf_release(&out);
    return code;
}

TEST(rest_path, exact_segments_win_and_parameters_are_decoded)
{
    static const struct {
        const char *request, *answer;
    } cases[] = {
        {"GET /", "root"},
        {"GET /things/a", "thing name=a"},
        {"GET /things/a%20b%2fc", "thing name=a b/c"},
        {"PUT /things/a", "put-thing name=a"},
        {"GET /things/special", "special"},
        {"GET /things/speci%61l", "special"},
        {"PUT /things/special", "put-thing name=special"},
        {"GET /things/a/parts/7", "part name=a part=7"},
        {"GET /things/a/b%2fc/d", "below name=a/b/c/d"},
        {"GET /things/", "below name="},
        {"GET /things/a/", "below name=a/"},
        {"DELETE /things/a", "UNSUPPORTED GET, PUT"},
        {"POST /things/a/b/c", "UNSUPPORTED GET"},
        {"GET /things", "NOT_FOUND"},
        {"GET /other", "NOT_FOUND"},
        {"GET //", "NOT_FOUND"},
        {"GET /things/%zz", "PARSE"},
        {"GET /things/a%00b", "PARSE"},
    };
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){.handler = describe});
    int fd = lab_dial(&lab);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        lab_sayf(fd, "%s HTTP/1.1\r\nHost: a\r\n\r\n", cases[i].request);
        lab_read(fd, &a, false);
        CHECK_STR(buf_str(&a.body), str_z(cases[i].answer));
    }
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(rest_path, a_get_row_takes_head)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){.handler = describe});
    int fd = lab_dial(&lab);
    lab_ask(fd, &a, STR("HEAD /things/special HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
    CHECK_INT(a.head.content_length, strlen("special"));
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}
