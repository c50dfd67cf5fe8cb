/* Starts the private Python of a bundle, wherever the bundle lies and whatever the host has.
 *
 *   <root>/sampan               runs `-m sampan` with its arguments; <root>/runtime lies beside it
 *   <runtime>/bin/<any name>    runs the Python with its arguments unchanged
 *
 * It finds itself by /proc/self/exe, so links to it work from anywhere. It uses the runtime's own dynamic loader
 * and libraries, and lets nothing of the host's loader, Python or locale settings through. Any failure is one line
 * in English and one in Chinese on stderr, and exit code 127.
 *
 * PYTHON is defined by the build, such as "python3.11".
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define LOADER "lib/sys/ld.so"

enum { FAILED = 127, ROOM = 3 * PATH_MAX };

extern char **environ;

static void say(const char *const *parts) {
    for (; *parts; parts++) {
        if (write(STDERR_FILENO, *parts, strlen(*parts)) < 0) {
            return; /* nobody to tell */
        }
    }
}

static int fail(const char *english, const char *chinese, const char *what) {
    const char *const message[] = {
        "sampan: cannot start: ", english, ": ", what, "\n", "sampan：无法启动：", chinese, "：", what, "\n", NULL,
    };
    say(message);
    return FAILED;
}

static int fail_to_run(const char *path) {
    switch (errno) {
    case ENOENT:
    case ENOTDIR:
        return fail("the folder is incomplete, unpack the package again; missing", "目录不完整，请重新解包；缺少", path);
    case EACCES:
    case EPERM:
        return fail("not permitted to execute (file mode, a noexec mount or a security module)",
                    "没有执行权限（文件权限、noexec 挂载或安全模块拦截）", path);
    case ENOEXEC:
        return fail("not for this machine's CPU architecture", "与本机 CPU 架构不符", path);
    case ENAMETOOLONG:
        return fail("the path is too long, move the folder to a shorter one", "路径过长，请移到较短的路径", path);
    case E2BIG:
        return fail("arguments and environment are too large", "参数与环境变量过大", path);
    case ENOMEM:
        return fail("out of memory", "内存不足", path);
    default:
        return fail(strerror(errno), "系统调用失败", path);
    }
}

/* to = a + b; 0 where it does not fit into ROOM bytes */
static int join(char *to, const char *a, const char *b) {
    size_t first = strlen(a), second = strlen(b);
    if (first + second >= ROOM) {
        errno = ENAMETOOLONG;
        return 0;
    }
    memmove(to, a, first);
    memcpy(to + first, b, second + 1);
    return 1;
}

/* Cut the last component off; the root folder becomes the empty text, so that paths can be put behind it. */
static void up(char *path) {
    char *slash = strrchr(path, '/');
    if (slash) {
        *slash = '\0';
    }
}

static int ends_with(const char *text, const char *end) {
    size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && !strcmp(text + length - wanted, end);
}

/* The folder of this executable, all links resolved. */
static int find_own_folder(char *folder) {
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX);
    if (length > 0 && length < PATH_MAX) {
        folder[length] = '\0';
    } else if (length == PATH_MAX || errno == ENAMETOOLONG) {
        errno = ENAMETOOLONG;
        return 0;
    } else { /* no /proc here: the kernel also tells the path that it was asked to execute */
        const char *called = (const char *)getauxval(AT_EXECFN);
        if (!called || !realpath(called, folder)) {
            return 0;
        }
    }
    up(folder);
    return 1;
}

static int begins_with(const char *text, const char *start) { return !strncmp(text, start, strlen(start)); }

/* What may not reach the private Python: it would load the host's libraries, modules or character sets. */
static int is_foreign(const char *variable) {
    static const char *const kept[] = {"PYTHONUNBUFFERED=", "PYTHONFAULTHANDLER=", "PYTHONHASHSEED=",
                                       "PYTHONWARNINGS=", "PYTHONASYNCIODEBUG=", NULL};
    for (const char *const *name = kept; *name; name++) {
        if (begins_with(variable, *name)) {
            return 0;
        }
    }
    return begins_with(variable, "LD_") || begins_with(variable, "PYTHON") || begins_with(variable, "SAMPAN_BUNDLE=") ||
           begins_with(variable, "GCONV_PATH=") || begins_with(variable, "LOCPATH=") ||
           begins_with(variable, "NLSPATH=");
}

/* The environment without what is foreign, and with our own settings. NULL where memory ran out. */
static char **surroundings(char *bundle) {
    size_t count = 0, used = 0;
    while (environ[count]) {
        count++;
    }
    char **clean = calloc(count + 5, sizeof *clean);
    if (!clean) {
        return NULL;
    }
    for (size_t each = 0; each < count; each++) {
        if (!is_foreign(environ[each])) {
            clean[used++] = environ[each];
        }
    }
    clean[used++] = "PYTHONDONTWRITEBYTECODE=1"; /* the bundle may be read-only, and is verified by its hashes */
    clean[used++] = "PYTHONNOUSERSITE=1";
    clean[used++] = "PYTHONUTF8=1"; /* the same in every locale */
    if (bundle) {
        clean[used++] = bundle;
    }
    return clean;
}

static int has_loader(const char *folder, const char *below) {
    static char path[ROOM];
    return join(path, folder, below) && !access(path, F_OK);
}

/* <runtime>/bin, and not a bundle whose own folder is called bin */
static int is_inside_runtime(const char *folder) {
    return !has_loader(folder, "/runtime/" LOADER) && ends_with(folder, "/bin") &&
           (has_loader(folder, "/../" LOADER) || ends_with(folder, "/runtime/bin"));
}

int main(int argc, char **argv) {
    static char folder[ROOM], runtime[ROOM], loader[ROOM], libraries[ROOM], itself[ROOM], python[ROOM], bundle[ROOM];

    if (!find_own_folder(folder)) {
        return fail_to_run(argc > 0 ? argv[0] : "sampan");
    }

    int program = !is_inside_runtime(folder);
    if (!join(runtime, folder, program ? "/runtime" : "")) {
        return fail_to_run(folder);
    }
    if (!program) {
        up(runtime);
    }
    if (!join(loader, runtime, "/" LOADER) || !join(libraries, runtime, "/lib/sys") ||
        !join(itself, runtime, "/bin/python3") || !join(python, runtime, "/libexec/" PYTHON)) {
        return fail_to_run(runtime);
    }
    const char *const wanted[] = {loader, python, NULL};
    for (const char *const *each = wanted; *each; each++) {
        if (access(*each, X_OK)) {
            return fail_to_run(*each);
        }
    }

    char *known_bundle = NULL;
    if (ends_with(runtime, "/runtime")) {
        join(bundle, "SAMPAN_BUNDLE=", runtime);
        up(bundle);
        if (ends_with(bundle, "=")) {
            join(bundle, bundle, "/"); /* unpacked at the root of a container */
        }
        known_bundle = bundle;
    }
    char **clean = surroundings(known_bundle);
    char **words = calloc((size_t)argc + 12, sizeof *words);
    if (!clean || !words) {
        errno = ENOMEM;
        return fail_to_run(loader);
    }
    size_t used = 0;
    words[used++] = loader;
    words[used++] = "--inhibit-cache"; /* the host's list of libraries */
    words[used++] = "--library-path";
    words[used++] = libraries;
    words[used++] = "--argv0"; /* becomes sys.executable, so child processes come through here too */
    words[used++] = itself;
    words[used++] = python;
    if (program) {
        words[used++] = "-P"; /* import nothing from the current folder */
        words[used++] = "-m";
        words[used++] = "sampan";
    }
    for (int each = 1; each < argc; each++) {
        words[used++] = argv[each];
    }
    execve(loader, words, clean);
    return fail_to_run(loader);
}
