/* Threads that allocate, write, and free; built with one allocator or another, or a sanitizer. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *work(void *seed) {
    unsigned state = *(unsigned *)seed, sum = 0;
    for (int i = 0; i < 2000; i++) {
        state = state * 1103515245 + 12345;
        size_t bytes = 1 + state % (i % 100 ? 4000 : 3000000);
        unsigned char *block = i % 2 ? malloc(bytes) : calloc(1, bytes);
        if (!block) return "no memory";
        memset(block, i & 255, bytes);
        block = realloc(block, bytes + 100);
        if (!block) return "no memory";
        sum += block[bytes - 1];
        free(block);
    }
    *(unsigned *)seed = sum;
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    unsigned seeds[4] = {1, 2, 3, 4};
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, work, &seeds[i])) return puts("no thread"), 1;
    for (int i = 0; i < 4; i++) {
        void *trouble = NULL;
        pthread_join(threads[i], &trouble);
        printf("%u %s\n", seeds[i], trouble ? (char *)trouble : "well");
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        free(malloc(5000000));
        _exit(4);
    }
    int status;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status) + 1;
}
