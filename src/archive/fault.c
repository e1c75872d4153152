/* Turns failures of git servers into outcomes of the archive. */
#include "archive/fault.h"

#include "archive/pkt.h"

#include <stdio.h>

/* HTTP statuses whose outcome cannot be told from their first digit. */
static const struct {
    int status;
    enum archive_code code;
} fault_statuses[] = {
    {401, ARCHIVE_AUTH},    {403, ARCHIVE_AUTH}, {404, ARCHIVE_GONE}, {407, ARCHIVE_AUTH},
    {408, ARCHIVE_TIMEOUT}, {410, ARCHIVE_GONE}, {429, ARCHIVE_RATE}, {451, ARCHIVE_DMCA},
};

/* Words by which forges say that they have blocked a repository, in lower case. */
static const struct {
    const char *words;
    enum archive_code code;
} fault_words[] = {
    {"dmca", ARCHIVE_DMCA},
    {"terms of service", ARCHIVE_TOS},
    {"tos violation", ARCHIVE_TOS},
    {"\"tos\"", ARCHIVE_TOS},
    {"is disabled", ARCHIVE_DISABLED},
    {"has been disabled", ARCHIVE_DISABLED},
};

static enum archive_code fault_code_of_words(struct str words, enum archive_code otherwise)
{
    char lower[FETCH_WORDS_MAX * 4];
    size_t len = size_min(words.len, sizeof(lower));

    for (size_t i = 0; i < len; i++)
        lower[i] = words.p[i] >= 'A' && words.p[i] <= 'Z' ? (char)(words.p[i] + 32) : words.p[i];
    for (size_t i = 0; i < ARRAY_SIZE(fault_words); i++)
        if (str_find(str_n(lower, len), str_z(fault_words[i].words)) >= 0)
            return fault_words[i].code;
    return otherwise;
}

static enum archive_code fault_code_of_status(int status)
{
    for (size_t i = 0; i < ARRAY_SIZE(fault_statuses); i++)
        if (fault_statuses[i].status == status)
            return fault_statuses[i].code;
    return status / 100 == 5   ? ARCHIVE_HTTP_5XX
           : status / 100 == 3 ? ARCHIVE_REDIRECT
                               : ARCHIVE_PROTOCOL;
}

static void fault_set_words(struct fetch_fault *out, struct str words)
{
    struct buf text = {0};

    peer_words(&text, str_head(str_trim(words), FETCH_WORDS_MAX));
    struct str cut = str_head(buf_str(&text), FETCH_WORDS_MAX - 1);
    while (cut.len && !str_is_utf8(cut))
        cut.len--;
    snprintf(out->words, sizeof(out->words), STR_FMT, STR_ARG(cut));
    buf_release(&text);
}

void fetch_fault_answer(struct fetch_fault *out, const struct client_response *head,
                        struct str body)
{
    *out =
        (struct fetch_fault){.code = fault_code_of_status(head->status),
                             .http_status = head->status,
                             .retry_after_s = client_retry_after_s(head, FETCH_RETRY_AFTER_MAX_S)};
    if (out->retry_after_s >= 0 && (head->status == 403 || head->status == 503))
        out->code = ARCHIVE_RATE;
    else if (head->status == 403 || head->status == 451)
        out->code = fault_code_of_words(body, out->code);
    fault_set_words(out, body);
}

void fetch_fault_words(struct fetch_fault *out, struct str words)
{
    *out = (struct fetch_fault){.code = fault_code_of_words(words, ARCHIVE_PROTOCOL),
                                .retry_after_s = -1};
    fault_set_words(out, words);
}

void fetch_fault_network(struct fetch_fault *out, int code)
{
    *out = (struct fetch_fault){.retry_after_s = -1};
    out->code = code == ERR_DENIED      ? ARCHIVE_REDIRECT
                : code == ERR_TOO_LARGE ? ARCHIVE_PROTOCOL
                                        : archive_code_of_peer(code);
}
