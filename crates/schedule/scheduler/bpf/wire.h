/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Messages between loader and scheduler: the entries of the maps. As in src/wire.rs. */
#ifndef WORKAHEAD_WIRE_H
#define WORKAHEAD_WIRE_H

/* Which threads are one aggregation group. */
enum wire_key {
	WIRE_ADDRESS_SPACE = 0,
	WIRE_CGROUP = 1,
	WIRE_PARENT = 2, /* processes of one parent, other than init and kthreadd */
	WIRE_TAG = 3,    /* those that have a tag, which goes before the others with any key */
};

/* Map `wa_settings`, one entry; may change at any time. */
struct settings {
	u64 bonus_ns;
	u64 slice_ns;
	u64 max_delay_ns; /* for how long aggregation may delay a wake-up; 0 for the paper's, no bound */
	u64 patience_ns; /* a thread that waits longer goes first */
	u64 preempt_ns;	 /* a thread that wakes up so far behind in vruntime preempts */
	u64 balance_ns;	 /* how often a busy CPU looks for a longer queue */
	u32 limit;
	u32 key;
	u32 scan_max; /* threads looked at per decision, at most */
	u32 survey;   /* whether chances beyond the bonus and co-running are counted: costs time */
	u32 cpus;     /* that there can be; fixed */
	u32 stop;     /* asks the loader to leave */
	u32 fault;    /* enum wire_fault */
	u32 tags;     /* whether there are any */
};

/* Injected faults, for tests. */
enum wire_fault { WIRE_RIGHT = 0, WIRE_ERROR = 1, WIRE_STALL = 2 };

/* Map `wa_roles`, by CPU; may change at any time. */
struct role {
	u32 role;  /* enum itas_role */
	u32 group; /* whose ia_mm it publishes or follows, below GROUPS_MAX */
};

#define GROUPS_MAX 256
#define BUCKETS 256	 /* four per power of two: percentiles within 25 % */
#define SCAN_BUCKETS 129 /* threads looked at: 0 to 127, and more */

/* Map `wa_stats`, by CPU; only that CPU writes. Counts unless the name has a unit. */
struct stats {
	u64 decisions;
	u64 chances; /* decisions with a member or companion in the queue */
	u64 taken;   /* chances on which one of them was chosen */
	u64 picked_head, picked_member, picked_companion;
	u64 kept;	/* decisions after which the same thread went on */
	u64 at_limit;	/* chances refused by the limit alone or with others */
	u64 overdue;	/* threads that went first because they had waited too long */
	u64 lost;	/* threads that were gone or not allowed here when they were chosen */
	u64 direct;	/* wake-ups that went to an idle CPU at once */
	u64 stolen;	/* threads taken from another CPU's queue by an idle one */
	u64 balanced;	/* threads taken from a longer queue by a busy one */
	u64 preempted;	/* wake-ups that preempted */
	u64 parked;	/* threads that waited for their control group's quota */
	u64 scanned;	/* threads looked at */
	u64 decide_ns;	/* time in decisions; survey only */
	u64 wait_max_ns; /* longest wait of a runnable thread */
	u64 switches;	 /* by every scheduling class */
	u64 user_switches, same_switches; /* between threads of groups; of the same group */
	u64 pair_ns, same_pair_ns; /* time beside another CPU that runs a group; the same; survey */
	u64 set_pair_ns, same_set_pair_ns; /* of these, with a CPU of the same set of roles */
	u64 migrations; /* runs on another CPU than the last one */
	u64 latency[BUCKETS];	   /* wake-up to run, ns */
	u64 scans[SCAN_BUCKETS];
	u64 latency_ns; /* their sum */
};

/* Map `wa_ended`, one entry. */
struct ended {
	s64 code;
	u32 kind; /* 0 while it runs; enum scx_exit_kind */
	u32 reserved;
	char reason[64];
	char message[256];
};

_Static_assert(sizeof(struct settings) == 80, "as in src/wire.rs");
_Static_assert(sizeof(struct role) == 8, "as in src/wire.rs");
_Static_assert(sizeof(struct stats) == 8 * (26 + BUCKETS + SCAN_BUCKETS + 1), "as in src/wire.rs");
_Static_assert(sizeof(struct ended) == 336, "as in src/wire.rs");

#endif
