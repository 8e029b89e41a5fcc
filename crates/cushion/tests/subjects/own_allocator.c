/* A program with an allocator of its own, which the loader calls instead of the cushion's. Loads the library of the
   environment, and prints whether it could. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char pool[16 << 20];
static size_t used;

void *malloc(size_t bytes) {
    size_t rounded = (bytes + 31) & ~(size_t)15;
    size_t at = __atomic_fetch_add(&used, rounded, __ATOMIC_SEQ_CST);
    if (at + rounded > sizeof pool) return NULL;
    *(size_t *)(pool + at) = bytes;
    return pool + at + 16;
}

void free(void *block) { (void)block; }

void *calloc(size_t count, size_t size) { return malloc(count * size); }

void *realloc(void *old, size_t bytes) {
    void *block = malloc(bytes);
    if (old && block) {
        size_t before = ((size_t *)old)[-2];
        memcpy(block, old, before < bytes ? before : bytes);
    }
    return block;
}

int main(void) {
    void *library = dlopen(getenv("LIBRARY"), RTLD_NOW);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    printf("load %d\n", library != NULL);
    fflush(stdout);
    _exit(0);
}
