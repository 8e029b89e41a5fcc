/* A program that does what its first argument says while the guard pauses it and has it page itself out, and says
   what it noticed of that: one line for each thing, a word and a number. It continues when a line comes on its input. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 24 << 20, SIGNAL = 34 + 10, THREADS = 4 };

static unsigned *block;
static volatile int *go_on; /* shared with children */
static unsigned word;
static volatile sig_atomic_t caught;

static void say(const char *what, long value) {
    char line[64];
    int n = snprintf(line, sizeof line, "%s %ld\n", what, value);
    if (write(1, line, n) != n) _exit(3);
}

static void fill(unsigned seed) {
    for (unsigned i = 0; i < BYTES / sizeof *block; i++) block[i] = i * 2654435761u + seed;
}

static int is_intact(unsigned seed) {
    for (unsigned i = 0; i < BYTES / sizeof *block; i++)
        if (block[i] != i * 2654435761u + seed) return 0;
    return 1;
}

static long futex(unsigned *at, int operation, unsigned value, const struct timespec *time) {
    return syscall(SYS_futex, at, operation, value, time, NULL, 0);
}

/* The result of a call, or minus its error. */
static long result(long value) { return value < 0 ? -errno : value; }

static void *wait_for_line(void *unused) {
    char line[8];
    (void)unused;
    say("line", result(read(0, line, sizeof line)));
    *go_on = 1;
    word = 1;
    futex(&word, FUTEX_WAKE, 1, NULL);
    return NULL;
}

static void *spin(void *unused) {
    (void)unused;
    while (!*go_on) {}
    return NULL;
}

static void on_signal(int signal) { caught += signal == SIGNAL; }

static void in_background(pthread_t *thread, void *(*body)(void *)) {
    if (pthread_create(thread, NULL, body, NULL)) _exit(4);
}

static void work(const char *mode) {
    pthread_t reader, threads[THREADS];
    struct timespec second = {1, 0}, minute = {60, 0};
    char line[8];
    say("ready", getpid());
    if (!strcmp(mode, "read")) say("read", result(read(0, line, sizeof line)));
    else if (!strcmp(mode, "poll")) {
        struct pollfd input = {.fd = 0, .events = POLLIN};
        say("poll", result(poll(&input, 1, -1)));
    } else if (!strcmp(mode, "select")) {
        fd_set inputs;
        FD_ZERO(&inputs);
        FD_SET(0, &inputs);
        say("select", result(select(1, &inputs, NULL, NULL, NULL)));
    } else if (!strcmp(mode, "sleep")) say("sleep", result(nanosleep(&second, NULL)));
    else {
        in_background(&reader, wait_for_line);
        if (!strcmp(mode, "futex")) say("futex", result(futex(&word, FUTEX_WAIT, 0, NULL)));
        else if (!strcmp(mode, "timed_futex")) say("futex", result(futex(&word, FUTEX_WAIT, 0, &minute)));
        else if (!strcmp(mode, "threads")) {
            for (int i = 0; i < THREADS; i++) in_background(&threads[i], spin);
            for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        } else spin(NULL);
        pthread_join(reader, NULL);
    }
}

/* Two children that work on memory of their own; the parent waits for both. */
static void with_children(void) {
    pid_t children[2];
    for (int i = 0; i < 2; i++)
        if ((children[i] = fork()) == 0) {
            fill(i + 1);
            say("ready", getpid());
            spin(NULL);
            _exit(is_intact(i + 1) ? 0 : 1);
        }
    work("spin");
    for (int i = 0; i < 2; i++) {
        int status;
        say("waited", result(waitpid(children[i], &status, 0)) == children[i]);
        say("child", status);
    }
}

/* Starts this program again, in this process. */
static int exec_self(char *path, char *mode) {
    char *arguments[] = {path, mode, NULL};
    execv(path, arguments);
    return 6;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    struct sigaction action = {.sa_handler = on_signal}, found;
    block = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    go_on = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fill(0);
    if (!strcmp(mode, "ignored_before_exec")) {
        signal(SIGNAL, SIG_IGN);
        return exec_self(argv[0], "inherited");
    }
    if (!strcmp(mode, "exec_without_cushion")) {
        unsetenv("LD_PRELOAD");
        return exec_self(argv[0], "own_handler");
    }
    if (!strcmp(mode, "failed_exec")) exec_self("/nowhere", "spin");
    /* Only the first words are filled. */
    sigset_t before, after;
    memset(&before, 0, sizeof before);
    memset(&after, 0, sizeof after);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    if (sigaction(SIGNAL, NULL, &found)) return 5;
    say("default", found.sa_handler == SIG_DFL && found.sa_flags == 0);
    if (!strcmp(mode, "own_sigaction")) {
        sigaction(SIGNAL, &action, &found);
        say("before", found.sa_handler == SIG_DFL);
        sigaction(SIGNAL, NULL, &found);
        say("own", found.sa_handler == on_signal);
    } else if (!strcmp(mode, "own_signal")) {
        say("before", signal(SIGNAL, on_signal) == SIG_DFL);
        say("own", signal(SIGNAL, on_signal) == on_signal);
    } else if (!strcmp(mode, "own_handler")) {
        sigaction(SIGNAL, &action, NULL);
    } else if (!strcmp(mode, "ignored") || !strcmp(mode, "inherited")) {
        if (!strcmp(mode, "ignored")) signal(SIGNAL, SIG_IGN);
        sigaction(SIGNAL, NULL, &found);
        say("ignored", found.sa_handler == SIG_IGN);
    } else if (!strcmp(mode, "blocked")) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGNAL);
        pthread_sigmask(SIG_BLOCK, &set, NULL);
    }
    if (!strcmp(mode, "children")) with_children();
    else work(mode);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    say("mask", !memcmp(&before, &after, sizeof before) || !strcmp(mode, "blocked"));
    say("caught", caught);
    say("intact", is_intact(0));
    return 0;
}
