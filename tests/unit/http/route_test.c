/* route: which row a request gets, and with what parameters. */
#include "http/route.h"
#include "unit/http/server_lab.h"

#include <unistd.h>

static int name_of_row(struct http_request *req, const struct route_params *params, void *ctx)
{
    return ERR_IO; /* the tests look at the row only */
}

static const struct route table[] = {
    {HTTP_GET, "/", name_of_row, false, "root"},
    {HTTP_GET, "/things/{name}", name_of_row, false, "thing"},
    {HTTP_PUT, "/things/{name}", name_of_row, false, "put-thing"},
    {HTTP_GET, "/things/{name}/parts/{part}", name_of_row, false, "part"},
    {HTTP_GET, "/things/special", name_of_row, false, "special"},
    {HTTP_GET, "/things/{name...}", name_of_row, false, "below"},
    {HTTP_POST, "/things/special", name_of_row, false, "post-special"},
};

/* Answers with the row's doc and the parameters, or the error's name. */
static int describe(struct http_request *req, void *ctx)
{
    const struct route *row;
    struct route_params params = {0};
    struct buf out = BUF_INIT(0);
    struct err err = {0};
    int code = route_match(&row, &params, table, ARRAY_SIZE(table), req, &err);

    buf_append_z(&out, code < 0 ? err_name(code) : row->doc);
    for (size_t i = 0; code == 0 && i < params.count; i++) {
        buf_append_char(&out, ' ');
        buf_append_str(&out, params.name[i]);
        buf_append_char(&out, '=');
        buf_append_str(&out, route_param(&params, i ? "part" : "name"));
    }
    code = http_send(req, buf_str(&out));
    buf_release(&out);
    return code;
}

TEST(route, exact_segments_win_and_parameters_are_decoded)
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
        {"DELETE /things/a", "UNSUPPORTED"},
        {"POST /things/a", "UNSUPPORTED"},
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

TEST(route, a_get_row_takes_head)
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
