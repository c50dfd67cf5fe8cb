/* sampan probe: which CPU features can really be executed here?
 *
 * For each line of the table it forks a child that executes that one instruction and ends. The parent prints a line
 * "<feature> <what became of the child>": ran, illegal (SIGILL), hung (ended after one second), died (of
 * another signal, a memory fault say: then nothing is known), untried.
 * It opens no file and no connection, starts no other program, reads no input, and needs no C library.
 */

#if defined(__x86_64__)
#define ARCHITECTURE "x86_64"
#define TABLE "x86_64.h"
enum { SYS_write = 1, SYS_rt_sigaction = 13, SYS_rt_sigprocmask = 14, SYS_setitimer = 38, SYS_clone = 56 };
enum { SYS_wait4 = 61, SYS_exit_group = 231 };

__asm__(".globl _start\n_start:\n    xor %ebp, %ebp\n    and $-16, %rsp\n    call start\n");

static long call(long number, long a, long b, long c, long d) {
    long result;
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth)
                     : "rcx", "r11", "memory");
    return result;
}

#else /* the system calls of arm64 and LoongArch have the same numbers */
enum { SYS_write = 64, SYS_exit_group = 94, SYS_setitimer = 103, SYS_rt_sigaction = 134, SYS_rt_sigprocmask = 135 };
enum { SYS_clone = 220, SYS_wait4 = 260 };

#if defined(__aarch64__)
#define ARCHITECTURE "aarch64"
#define TABLE "aarch64.h"
#define REGISTER(n) "x" #n
#define NUMBER "x8"
#define TRAP "svc 0"
/* All that the assembler shall know; the compiler goes on to use the oldest CPU's instructions only. */
__asm__(".arch armv8.6-a+crypto+fp16fml+rcpc+sha3+sm4+sve2+flagm+sb+i8mm+bf16\n"
        ".globl _start\n_start:\n    mov x29, #0\n    mov x30, #0\n    b start\n");
#elif defined(__loongarch64)
#define ARCHITECTURE "loongarch64"
#define TABLE "loongarch64.h"
#define REGISTER(n) "$a" #n
#define NUMBER "$a7"
#define TRAP "syscall 0"
__asm__(".globl _start\n_start:\n    move $fp, $zero\n    b start\n");
#else
#error "no table for this architecture"
#endif

static long call(long number, long a, long b, long c, long d) {
    register long what __asm__(NUMBER) = number;
    register long first __asm__(REGISTER(0)) = a;
    register long second __asm__(REGISTER(1)) = b;
    register long third __asm__(REGISTER(2)) = c;
    register long fourth __asm__(REGISTER(3)) = d;
    register long fifth __asm__(REGISTER(4)) = 0;
    __asm__ volatile(TRAP
                     : "+r"(first)
                     : "r"(what), "r"(second), "r"(third), "r"(fourth), "r"(fifth)
                     : "memory", "cc");
    return first;
}
#endif

/* The instructions themselves, each between a name and a return. */
#define TRY(name, code) __asm__(".text\n.balign 16\ntry_" #name ":\n" code "\n    ret\n");
#include TABLE
#undef TRY
#define TRY(name, code) extern void try_##name(void *);
#include TABLE
#undef TRY

static const struct {
    const char *name;
    void (*run)(void *);
} table[] = {
#define TRY(name, code) {#name, try_##name},
#include TABLE
};

/* <signal.h>, <sys/time.h> as the kernel has them */
enum { SIGILL = 4, SIGTRAP = 5, SIGBUS = 7, SIGFPE = 8, SIGSEGV = 11, SIGALRM = 14, SIGCHLD = 17, SIG_SETMASK = 2 };
static const int caught[] = {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGALRM};
static char memory[1024] __attribute__((aligned(64))); /* for instructions that read or write memory */

__attribute__((noreturn)) static void leave(int code) {
    for (;;) {
        call(SYS_exit_group, code, 0, 0, 0);
    }
}

/* A child leaves with its signal's number: nothing is dumped, nothing is written to the kernel's log. */
static void watch(void) {
    const unsigned long nothing = 0;
    const long one_second[4] = {0, 0, 1, 0};
    call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&nothing, 0, sizeof nothing);
    for (unsigned i = 0; i < sizeof caught / sizeof *caught; i++) {
        /* handler, flags (SA_RESTORER, which x86-64 insists on), restorer or mask, mask */
        unsigned long action[4] = {(unsigned long)leave, 0x04000000, 0, 0};
#if defined(__loongarch64)
        action[1] = 0;
#endif
        call(SYS_rt_sigaction, caught[i], (long)action, 0, sizeof nothing);
    }
    call(SYS_setitimer, 0, (long)one_second, 0, 0);
}

static void print(const char *text) {
    unsigned long length = 0;
    while (text[length]) {
        length++;
    }
    call(SYS_write, 1, (long)text, (long)length, 0);
}

static const char *outcome(int status) {
    int code = status & 0x7f ? status & 0x7f : status >> 8 & 0xff;
    switch (code) {
    case 0:
        return " ran\n";
    case SIGILL:
        return " illegal\n";
    case SIGALRM:
        return " hung\n";
    default:
        return " died\n";
    }
}

__attribute__((noreturn, used)) static void start(void) {
    print("sampan-probe 1 " ARCHITECTURE "\n");
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
        int status = 0;
        long child = call(SYS_clone, SIGCHLD, 0, 0, 0);
        if (child == 0) {
            watch();
            table[i].run(memory);
            leave(0);
        }
        print(table[i].name);
        print(child < 0 || call(SYS_wait4, child, (long)&status, 0, 0) != child ? " untried\n" : outcome(status));
    }
    leave(0);
}
