/* A store in a C program: an entry found by its key, and a row of an ordered table.
 *
 *   cc quick_start.c $(pkg-config --cflags --libs entresol) -o quick_start
 *   ./quick_start data.file
 */
#include <entresol.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Requests and records of the header, as words. */
enum { PUT = 2, GET = 1, WAITS = 16, FOUND = 1, HEAD_WORDS = 8 };

static int64_t at(const void *bytes)
{
    return (int64_t)(intptr_t)bytes;
}

/* The result of a call, unless that is a failure: a text. */
static int64_t checked(int64_t result)
{
    if (result < 0) {
        const uint64_t *text = (const uint64_t *)(intptr_t)-result;
        fprintf(stderr, "%.*s\n", (int)text[1], (const char *)(text + 2));
        entresol_text_release(-result);
        exit(1);
    }
    return result;
}

/* One request whose answer is there at once; where the answer is. */
static const uint64_t *ask(int64_t store, uint64_t operation, const char *key, const char *value)
{
    static uint64_t answer[512];
    uint64_t request[16] = {operation | WAITS};
    request[4] = (uint64_t)at(key);
    request[5] = strlen(key);
    request[6] = (uint64_t)at(value);
    request[7] = strlen(value);
    request[14] = (uint64_t)at(answer);
    request[15] = sizeof answer;
    if (checked(entresol_store_submit(store, at(request), 1)) != 1) {
        fprintf(stderr, "the answer has to be reaped; expected it at once\n");
        exit(1);
    }
    return answer;
}

static void put_row(int64_t store, int64_t table, const char *key, const char *value)
{
    struct {
        int64_t table;
        uint32_t kind, key_bytes, value_bytes, zero;
        char bytes[64];
    } change = {table, 1, (uint32_t)strlen(key), (uint32_t)strlen(value), 0, ""};
    snprintf(change.bytes, sizeof change.bytes, "%s%s", key, value);
    int64_t bytes = 24 + (int64_t)strlen(change.bytes);
    uint64_t words[5] = {(uint64_t)at(&change), (uint64_t)bytes};
    checked(entresol_tables_write(store, at(words)));
}

int main(int count, char **arguments)
{
    const char *path = count > 1 ? arguments[1] : "data.file";
    char options[4096];
    snprintf(options, sizeof options, "devices=%s\ncapacity=%d\nmemory=%d\njournal=%d", path,
            64 << 20, 64 << 20, 8 << 20);
    int64_t store = checked(entresol_store_open(at(options), (int64_t)strlen(options)));

    ask(store, PUT, "greeting", "hello from flash");
    const uint64_t *entry = ask(store, GET, "greeting", "");
    if (entry[2] == FOUND) {
        printf("%.*s\n", (int)entry[7], (const char *)(entry + HEAD_WORDS));
    }

    int64_t table = checked(entresol_table_open(store, at("cities"), 6));
    put_row(store, table, "ann", "Ulm");
    struct {
        uint32_t base_bytes, parts;
        char base[64];
    } row;
    if (checked(entresol_table_get(table, at("ann"), 3, at(&row), sizeof row)) > 0) {
        printf("%.*s\n", (int)row.base_bytes, row.base);
    }
    checked(entresol_table_close(table));
    checked(entresol_store_close(store));
    return (int)checked(entresol_store_release(store));
}
