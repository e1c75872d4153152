#include "unit/archive/forge_lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Chooses the row that answers; the lab's lock is held. */
static const struct forge_line *line_for(struct forge_lab *l, const char *head)
{
    struct str target = str_z(head);

    target.len = strcspn(head, "\r\n");
    for (size_t i = 0; l->lines && l->lines[i].path; i++) {
        const struct forge_line *line = &l->lines[i];
        if (str_find(target, str_z(line->path)) < 0 || (line->with && !strstr(head, line->with)) ||
            (line->times && l->used[i] >= line->times))
            continue;
        l->used[i]++;
        return line;
    }
    return NULL;
}

static void serve(struct peer_conn *c, const void *ctx)
{
    struct forge_lab *l = (struct forge_lab *)ctx;
    struct peer_request r;

    while (peer_read(c, &r)) {
        struct buf answer = {0};
        mutex_lock(&l->lock);
        const struct forge_line *line = line_for(l, r.text.p);
        l->requests++;
        buf_append_str(&l->log, buf_str(&r.text));
        mutex_unlock(&l->lock);
        peer_request_release(&r);
        if (line && !line->answer)
            return;
        if (line && !line->answer[0]) {
            peer_wait_end(c);
            return;
        }
        if (!line)
            buf_append_z(&answer, "HTTP/1.1 404 Not Found\r\nContent-Length: 23\r\n\r\n"
                                  "{\"message\":\"Not Found\"}");
        else if (line->body)
            buf_appendf(&answer, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", line->answer,
                        strlen(line->body), line->body);
        else
            buf_appendf(&answer, "HTTP/1.1 %s", line->answer);
        peer_write(c, buf_str(&answer));
        buf_release(&answer);
        if (line && !line->body && !strstr(line->answer, "304"))
            return;
    }
}

void forge_lab_answers(struct forge_lab *l, const struct forge_line *lines)
{
    mutex_lock(&l->lock);
    l->lines = lines;
    memset(l->used, 0, sizeof(l->used));
    mutex_unlock(&l->lock);
}

void forge_lab_start(struct forge_lab *l, enum forge_kind kind, const struct forge_line *lines,
                     const char *const *tokens)
{
    static char key_file[256];
    struct str given[8], url;
    size_t count = 0;
    bool was_new;
    struct err err = {0};

    *l = (struct forge_lab){.timeout_ms = l->timeout_ms, .given = l->given};
    mutex_init(&l->lock, "forge_lab");
    l->lines = lines;
    l->four = l->given ? l->given : &l->own;
    if (!l->given)
        four_open_embedded(&l->own);
    l->peer = peer_start(serve, l, NULL);
    snprintf(key_file, sizeof(key_file), "%s/key", test_dir());
    CHECK_OK(forges_open(&l->forges,
                         &(struct forges_options){.config = l->four->stores[DB_CONFIG],
                                                  .app = l->four->stores[DB_APP],
                                                  .key_file = key_file,
                                                  .timeout_ms = l->timeout_ms},
                         &err));
    while (tokens && tokens[count]) {
        given[count] = str_z(tokens[count]);
        count++;
    }
    url = str_z(peer_url(l->peer));
    struct forge_change c = {.host = STR("forge.test"),
                             .api = arena_fmt(&l->arena, STR_FMT "/api", STR_ARG(url)),
                             .git = url,
                             .has_kind = true,
                             .kind = kind,
                             .tokens = given,
                             .token_count = count};
    CHECK_OK(forges_set(l->forges, &c, &was_new, &err));
    CHECK_OK(forge_session_open(&l->session, l->forges, STR("Forge.TEST"), NULL, &err));
}

void forge_lab_stop(struct forge_lab *l)
{
    forge_session_close(l->session);
    forges_close(l->forges);
    peer_stop(l->peer);
    if (!l->given)
        four_close(&l->own);
    arena_release(&l->arena);
    buf_release(&l->log);
    mutex_release(&l->lock);
}

unsigned forge_lab_count(struct forge_lab *l, const char *text)
{
    unsigned n = 0;

    mutex_lock(&l->lock);
    for (const char *p = l->log.p; p && (p = strstr(p, text)); p++)
        n++;
    mutex_unlock(&l->lock);
    return n;
}
