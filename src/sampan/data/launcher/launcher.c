/* Starts the private Python of a bundle, wherever the bundle lies and whatever the host has.
 *
 *   <root>/sampan               runs `-m sampan` with its arguments; <root>/runtime lies beside it
 *   <runtime>/bin/<any name>    runs the Python with its arguments unchanged
 *
 * It finds itself by /proc/self/exe, so links to it work from anywhere. It uses the runtime's own dynamic loader
 * and libraries, and lets nothing of the host's loader, Python or character-set settings through. Any failure is one
 * line in English and one in Chinese on stderr, and exit code 127.
 *
 * PYTHON is defined by the build, such as "python3.11".
 */
#include "kernel.h"

#define LOADER "lib/sys/ld.so"

enum { FAILED = 127, ROOM = 2 * PATH_MAX };

static int fail(int error, const char *what) {
    const char *english = "the system refused", *chinese = "系统调用失败";
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        english = "the folder is incomplete, unpack the package again; missing";
        chinese = "目录不完整，请重新解包；缺少";
        break;
    case EACCES:
    case EPERM:
        english = "not permitted to execute (file mode, a noexec mount or a security module)";
        chinese = "没有执行权限（文件权限、noexec 挂载或安全模块拦截）";
        break;
    case ENOEXEC:
        english = "not for this machine's CPU architecture";
        chinese = "与本机 CPU 架构不符";
        break;
    case ENAMETOOLONG:
        english = "the path is too long, move the folder to a shorter one";
        chinese = "路径过长，请移到较短的路径";
        break;
    case E2BIG:
        english = "arguments and environment are too large";
        chinese = "参数与环境变量过大";
        break;
    case ENOMEM:
        english = "out of memory";
        chinese = "内存不足";
        break;
    case ELOOP:
        english = "too many links on the way";
        chinese = "符号链接层数过多";
        break;
    }
    const char *const parts[] = {"sampan: cannot start: ", english, ": ", what, "\n",
                                 "sampan：无法启动：",      chinese, "：", what, "\n"};
    for (size_t each = 0; each < sizeof parts / sizeof *parts; each++) {
        write_error(parts[each]);
    }
    return FAILED;
}

/* to = a + b, where to may be a; 0 where it does not fit into ROOM bytes */
static int join(char *to, const char *a, const char *b) {
    size_t first = length_of(a), second = length_of(b);
    if (first + second >= ROOM) {
        return 0;
    }
    if (to != a) {
        memcpy(to, a, first);
    }
    memcpy(to + first, b, second + 1);
    return 1;
}

/* Cut the last component off; the root folder becomes the empty text, so that paths can be put behind it. */
static void up(char *path) {
    size_t end = length_of(path);
    while (end && path[end] != '/') {
        end--;
    }
    path[end] = '\0';
}

/* The folder of this executable, its links resolved; 0 or the error's number. */
static int find_own_folder(char *folder, const char *called) {
    long length = read_link("/proc/self/exe", folder, PATH_MAX);
    if (length >= PATH_MAX) {
        return ENAMETOOLONG;
    }
    if (length > 0) {
        folder[length] = '\0';
    } else if (-length == ENAMETOOLONG || !called || !join(folder, called, "")) {
        return ENAMETOOLONG;
    } /* else there is no /proc: take the path that the kernel was asked to execute */
    up(folder);
    return 0;
}

/* What may not reach the private Python: it would load the host's libraries, modules or character sets. */
static int is_foreign(const char *variable) {
    static const char *const kept[] = {"PYTHONUNBUFFERED=", "PYTHONFAULTHANDLER=", "PYTHONHASHSEED=",
                                       "PYTHONWARNINGS=", "PYTHONASYNCIODEBUG="};
    static const char *const foreign[] = {"LD_", "PYTHON", "SAMPAN_BUNDLE=", "GCONV_PATH=", "LOCPATH=", "NLSPATH="};
    for (size_t each = 0; each < sizeof kept / sizeof *kept; each++) {
        if (begins_with(variable, kept[each])) {
            return 0;
        }
    }
    for (size_t each = 0; each < sizeof foreign / sizeof *foreign; each++) {
        if (begins_with(variable, foreign[each])) {
            return 1;
        }
    }
    return 0;
}

static int has_loader(const char *folder, const char *below) {
    static char path[ROOM];
    return join(path, folder, below) && !access_error(path, F_OK);
}

/* <runtime>/bin, and not a bundle whose own folder is called bin */
static int is_inside_runtime(const char *folder) {
    return !has_loader(folder, "/runtime/" LOADER) && ends_with(folder, "/bin") &&
           (has_loader(folder, "/../" LOADER) || ends_with(folder, "/runtime/bin"));
}

static int run(size_t argc, const char *const *argv, const char *const *variables, const char *called) {
    static char folder[ROOM], runtime[ROOM], loader[ROOM], libraries[ROOM], itself[ROOM], python[ROOM], bundle[ROOM];

    int error = find_own_folder(folder, called);
    if (error) {
        return fail(error, argc ? argv[0] : "sampan");
    }
    int program = !is_inside_runtime(folder);
    if (!join(runtime, folder, program ? "/runtime" : "")) {
        return fail(ENAMETOOLONG, folder);
    }
    if (!program) {
        up(runtime);
    }
    if (!join(loader, runtime, "/" LOADER) || !join(libraries, runtime, "/lib/sys") ||
        !join(itself, runtime, "/bin/python3") || !join(python, runtime, "/libexec/" PYTHON)) {
        return fail(ENAMETOOLONG, runtime);
    }
    if ((error = access_error(loader, X_OK))) {
        return fail(error, loader);
    }
    if ((error = access_error(python, X_OK))) {
        return fail(error, python);
    }

    size_t count = 0, used = 0;
    while (variables[count]) {
        count++;
    }
    const char *clean[count + 5];
    for (size_t each = 0; each < count; each++) {
        if (!is_foreign(variables[each])) {
            clean[used++] = variables[each];
        }
    }
    clean[used++] = "PYTHONDONTWRITEBYTECODE=1"; /* the bundle may be read-only, and is verified by its hashes */
    clean[used++] = "PYTHONNOUSERSITE=1";
    clean[used++] = "PYTHONUTF8=1"; /* the same in every locale */
    if (ends_with(runtime, "/runtime") && join(bundle, "SAMPAN_BUNDLE=", runtime)) {
        up(bundle);
        if (ends_with(bundle, "=")) {
            join(bundle, bundle, "/"); /* unpacked at the root of a container */
        }
        clean[used++] = bundle;
    }
    clean[used] = 0;

    const char *words[argc + 12];
    used = 0;
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
    for (size_t each = 1; each < argc; each++) {
        words[used++] = argv[each];
    }
    words[used] = 0;
    return fail(execute(loader, words, clean), loader);
}

/* The kernel leaves on the stack: argc, argv, 0, environment, 0, pairs of the auxiliary vector. */
__attribute__((used, noreturn)) void start(long *stack) {
    size_t argc = (size_t)stack[0];
    const char *const *argv = (const char *const *)(stack + 1);
    const char *const *variables = argv + argc + 1;
    const char *const *end = variables;
    while (*end) {
        end++;
    }
    const char *called = 0;
    for (const long *pair = (const long *)(end + 1); pair[0]; pair += 2) {
        if (pair[0] == AT_EXECFN) {
            called = (const char *)pair[1];
        }
    }
    leave(run(argc, argv, variables, called));
}
