/* A program of loads and stores that are the same in every run and under every tool.
 *
 * There is no C library and no start-up code: nothing reads the environment, the clock or random
 * numbers. Its stack is an array of its own, so that no address depends on what the system put
 * on the first one.
 */

typedef unsigned long long word;

enum { WORDS = 1 << 15, STEPS = 40000 };

static word table[WORDS];
__attribute__((used, aligned(64))) static word stack[1 << 10];

/* A word that may lie across the end of a line. */
struct unaligned {
    word value;
} __attribute__((packed));

static word number(word *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 33;
}

__attribute__((used)) static void work(void)
{
    word state = 1, sum = 0;
    volatile word *words = table;
    for (word step = 0; step < STEPS; step++) {
        word at = number(&state) % WORDS;
        switch (number(&state) % 6) {
        case 0:
            words[at] = step;
            break;
        case 1:
            /* Read and written by one instruction. */
            __asm__ volatile("addq %1, %0" : "+m"(table[at]) : "r"(sum));
            break;
        case 2: {
            char *byte = (char *)table + number(&state) % (sizeof(table) - 8);
            sum += ((volatile struct unaligned *)byte)->value;
            break;
        }
        case 3: {
            char *byte = (char *)table + number(&state) % 4096;
            ((volatile struct unaligned *)byte)->value = sum;
            break;
        }
        case 4:
            sum += words[step % WORDS];
            break;
        default:
            sum += words[at];
        }
    }
    table[0] = sum;
}

/* exit(0), by number. */
__asm__(".globl _start\n"
        "_start:\n"
        "    lea stack+8192(%rip), %rsp\n"
        "    call work\n"
        "    mov $60, %eax\n"
        "    xor %edi, %edi\n"
        "    syscall\n");
