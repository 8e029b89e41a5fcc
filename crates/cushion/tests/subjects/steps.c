/* A program that does what its arguments say, one after the other, and prints one line for
   each: the word, a space, a number. Blocks are kept until "free". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void *kept[1 << 16];
static int count;

static void say(const char *word, long long value) {
    char line[128];
    int n = snprintf(line, sizeof line, "%s %lld\n", word, value);
    if (write(1, line, n) != n) _exit(3);
}

/* 1 when the block was given; a block that is given must be usable at its ends. */
static int keep(char *block, size_t bytes) {
    if (!block) return 0;
    if (bytes) block[0] = block[bytes - 1] = 1;
    if (count < (int)(sizeof kept / sizeof *kept)) kept[count++] = block;
    return 1;
}

static long long data_bytes(void) {
    char line[256];
    long long kb = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmData: %lld kB", &kb) == 1) break;
    if (status) fclose(status);
    return kb * 1024;
}

/* After a request for memory: a limit that was raised for the loader is put back by the next one. */
static long long soft_limit(void) {
    struct rlimit limit;
    free(malloc(1));
    getrlimit(RLIMIT_DATA, &limit);
    return limit.rlim_cur == RLIM_INFINITY ? -1 : (long long)limit.rlim_cur;
}

static void *stay(void *unused) {
    (void)unused;
    for (;;) pause();
    return NULL;
}

static int start_thread(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 8 << 20);
    return pthread_create(&thread, &attributes, stay, NULL);
}

/* Allocates, checks and frees; the argument is a counter of what went wrong. */
static void *churn(void *wrong) {
    unsigned seed = (unsigned)(size_t)&seed;
    for (int i = 0; i < 10000; i++) {
        size_t bytes = 1 + rand_r(&seed) % (i % 64 ? 4096 : 300000);
        unsigned char *block = i % 3 ? malloc(bytes) : calloc(1, bytes);
        if (!block) { __atomic_fetch_add((int *)wrong, 1, __ATOMIC_SEQ_CST); continue; }
        memset(block, i & 255, bytes);
        unsigned char *larger = realloc(block, bytes * 2);
        if (larger) block = larger;
        if (!larger || block[0] != (i & 255) || block[bytes - 1] != (i & 255))
            __atomic_fetch_add((int *)wrong, 1, __ATOMIC_SEQ_CST);
        free(block);
    }
    return NULL;
}

/* Loads the library of the environment and lets go of it, until the process ends. */
static void *load_again_and_again(void *unused) {
    (void)unused;
    for (;;) {
        void *library = dlopen(getenv("LIBRARY"), RTLD_NOW);
        if (!library) { fprintf(stderr, "%s\n", dlerror()); _exit(7); }
        dlclose(library);
    }
}

/* Children that are forked while another thread loads; how many of them had no limit, or one that leaves more
   than n bytes. */
static long long unlimited_children(size_t n) {
    pthread_t thread;
    long long unlimited = 0;
    if (pthread_create(&thread, NULL, load_again_and_again, NULL)) _exit(4);
    for (int i = 0; i < 300; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            struct rlimit now;
            getrlimit(RLIMIT_DATA, &now);
            long long limit = now.rlim_cur == RLIM_INFINITY ? -1 : (long long)now.rlim_cur;
            _exit(limit < 0 || limit - data_bytes() > (long long)n);
        }
        if (child < 0 || waitpid(child, &status, 0) != child) _exit(6);
        unlimited += status != 0;
    }
    return unlimited;
}

static void do_step(const char *word, size_t n, char **rest) {
    void *block = NULL;
    if (!strcmp(word, "malloc")) say(word, keep(malloc(n), n));
    else if (!strcmp(word, "calloc")) say(word, keep(calloc(n / 16, 16), n / 16 * 16));
    else if (!strcmp(word, "realloc")) say(word, keep(realloc(NULL, n), n));
    else if (!strcmp(word, "reallocarray")) say(word, keep(reallocarray(NULL, n / 16, 16), n / 16 * 16));
    else if (!strcmp(word, "memalign")) say(word, keep(memalign(64, n), n));
    else if (!strcmp(word, "aligned_alloc")) say(word, keep(aligned_alloc(64, n), n));
    else if (!strcmp(word, "valloc")) say(word, keep(valloc(n), n));
    else if (!strcmp(word, "pvalloc")) say(word, keep(pvalloc(n), n));
    else if (!strcmp(word, "posix_memalign")) say(word, posix_memalign(&block, 64, n) == 0 && keep(block, n));
    else if (!strcmp(word, "badly_aligned")) say(word, posix_memalign(&block, 3, n));
    else if (!strcmp(word, "realloc_to_nothing")) say(word, realloc(malloc(n), 0) != NULL);
    else if (!strcmp(word, "overflow")) { errno = 0; block = reallocarray(NULL, (size_t)-1, n); say(word, block ? 0 : errno); }
    else if (!strcmp(word, "errno_of_malloc")) { errno = 0; block = malloc(n); say(word, errno); }
    else if (!strcmp(word, "mmap")) {
        block = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        say(word, block != MAP_FAILED && keep(block, n));
    } else if (!strcmp(word, "reserve")) {
        block = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        say(word, block != MAP_FAILED && keep(block, 0));
    } else if (!strcmp(word, "make_writable")) {
        block = mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        say(word, block != MAP_FAILED && mprotect(block, n, PROT_READ | PROT_WRITE) == 0);
    } else if (!strcmp(word, "make_code")) {
        block = mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        say(word, block != MAP_FAILED && mprotect(block, n, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    } else if (!strcmp(word, "large_stack")) {
        pthread_t thread;
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, n);
        say(word, pthread_create(&thread, &attributes, stay, NULL));
    } else if (!strcmp(word, "fill")) { /* blocks of n until one is refused; says how many bytes */
        long long sum = 0;
        while (keep(malloc(n), 0)) sum += n;
        say(word, sum);
    } else if (!strcmp(word, "free")) {
        while (count) free(kept[--count]);
        malloc_trim(0);
        say(word, 1);
    } else if (!strcmp(word, "thread")) say(word, start_thread());
    else if (!strcmp(word, "churn")) {
        static int wrong;
        pthread_t threads[64];
        for (size_t i = 0; i < n; i++)
            if (pthread_create(&threads[i], NULL, churn, &wrong)) _exit(4);
        for (size_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
        say(word, wrong);
    } else if (!strcmp(word, "limit")) say(word, soft_limit());
    else if (!strcmp(word, "room")) say(word, soft_limit() - data_bytes());
    else if (!strcmp(word, "wait")) {
        char line[64];
        say(word, 1);
        if (read(0, line, sizeof line) <= 0) _exit(5);
    } else if (!strcmp(word, "children")) { /* n at a time; each says its room, the last goes on */
        for (size_t i = 1; i <= n; i++) {
            pid_t child = fork();
            if (child == 0) {
                say("share", soft_limit() - data_bytes());
                if (i == n) return;
                _exit(0);
            }
            int status;
            if (child < 0 || waitpid(child, &status, 0) != child) _exit(6);
            if (i == n) { say("parent", soft_limit()); _exit(status != 0); }
        }
    } else if (!strcmp(word, "load")) { /* n times, letting go of it in between */
        for (size_t i = 0; i < n; i++) {
            void *library = dlopen(getenv("LIBRARY"), RTLD_NOW);
            if (!library) { fprintf(stderr, "%s\n", dlerror()); say(word, i); return; }
            if (i + 1 < n) dlclose(library);
        }
        free(malloc(1));
        say(word, n);
    } else if (!strcmp(word, "load_two")) { /* the library, and one beside it with a 2 behind its name */
        char other[512];
        snprintf(other, sizeof other, "%s2", getenv("LIBRARY"));
        say(word, (dlopen(getenv("LIBRARY"), RTLD_NOW) != NULL) + (dlopen(other, RTLD_NOW) != NULL));
    } else if (!strcmp(word, "unlimited_children")) say(word, unlimited_children(n));
    else if (!strcmp(word, "exec")) {
        rest[0] = "/proc/self/exe";
        execv(rest[0], rest);
        _exit(127);
    } else _exit(2);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        char word[64];
        unsigned long long n = 0;
        if (sscanf(argv[i], "%63[a-z_]:%llu", word, &n) < 1) return 2;
        do_step(word, n, argv + i);
    }
    fflush(NULL);
    _exit(0);
}
