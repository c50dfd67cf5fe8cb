/* What a program needs to run on a bare kernel, without any C library: entry, five system calls, four functions on
 * text. Building a libc for a launcher would take a minute for each architecture.
 */
#ifndef KERNEL_H
#define KERNEL_H

typedef __SIZE_TYPE__ size_t;

/* <errno.h> of both architectures */
enum {
    EPERM = 1,
    ENOENT = 2,
    E2BIG = 7,
    ENOEXEC = 8,
    ENOMEM = 12,
    EACCES = 13,
    ENOTDIR = 20,
    ENAMETOOLONG = 36,
    ELOOP = 40,
};

/* access(2), openat(2), <linux/limits.h>, <elf.h> */
enum { F_OK = 0, X_OK = 1, AT_FDCWD = -100, PATH_MAX = 4096, AT_EXECFN = 31, STDERR = 2 };

#if defined(__x86_64__)

enum { SYS_write = 1, SYS_execve = 59, SYS_exit_group = 231, SYS_readlinkat = 267, SYS_faccessat = 269 };

__asm__(".globl _start\n"
        "_start:\n"
        "    xor %ebp, %ebp\n"
        "    mov %rsp, %rdi\n"
        "    and $-16, %rsp\n"
        "    call start\n");

static long call(long number, long a, long b, long c, long d) {
    long result;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}

#elif defined(__aarch64__)

enum { SYS_write = 64, SYS_execve = 221, SYS_exit_group = 94, SYS_readlinkat = 78, SYS_faccessat = 48 };

__asm__(".globl _start\n"
        "_start:\n"
        "    mov x29, #0\n"
        "    mov x30, #0\n"
        "    mov x0, sp\n"
        "    and sp, x0, #-16\n"
        "    b start\n");

static long call(long number, long a, long b, long c, long d) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
}

#else
#error "no system calls known for this architecture"
#endif

/* The compiler itself calls these two by name. */
void *memcpy(void *to, const void *from, size_t count) {
    char *out = to;
    for (const char *in = from; count; count--) {
        *out++ = *in++;
    }
    return to;
}

void *memset(void *to, int value, size_t count) {
    for (char *out = to; count; count--) {
        *out++ = (char)value;
    }
    return to;
}

static size_t length_of(const char *text) {
    size_t length = 0;
    while (text[length]) {
        length++;
    }
    return length;
}

static int begins_with(const char *text, const char *start) {
    while (*start && *text == *start) {
        text++;
        start++;
    }
    return !*start;
}

static int ends_with(const char *text, const char *end) {
    size_t length = length_of(text), wanted = length_of(end);
    return length >= wanted && begins_with(text + length - wanted, end);
}

/* Nobody reads what this returns where it fails: there is nobody left to tell. */
static void write_error(const char *text) { call(SYS_write, STDERR, (long)text, (long)length_of(text), 0); }

/* 0, or the error's number */
static int access_error(const char *path, int mode) {
    return (int)-call(SYS_faccessat, AT_FDCWD, (long)path, mode, 0);
}

/* The bytes written to target, or the error's number below 0 */
static long read_link(const char *path, char *target, size_t room) {
    return call(SYS_readlinkat, AT_FDCWD, (long)path, (long)target, (long)room);
}

/* Returns only where it failed: the error's number */
static int execute(const char *path, const char *const *words, const char *const *variables) {
    return (int)-call(SYS_execve, (long)path, (long)words, (long)variables, 0);
}

__attribute__((noreturn)) static void leave(int code) {
    for (;;) {
        call(SYS_exit_group, code, 0, 0, 0);
    }
}

#endif
