/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shares of control groups: cpu.weight down the tree, and cpu.max.
 *
 *   weight of a thread = its own × of each group above it: cpu.weight / what is busy in the group
 *
 *   root ─┬─ A  cpu.weight 100 ─┬─ a1   100 × 100/200 = 50        the root's threads and groups
 *         │                     └─ a2                   50        weigh what they say
 *         └─ b                         100
 *
 * Weights and quotas are read where the kernel's own scheduler keeps them, which has them on every
 * kernel; the busy weight and the used time are kept here. A thread whose group has used up its
 * quota is parked until the period is over that pays for it.
 */
#ifndef WORKAHEAD_SHARES_H
#define WORKAHEAD_SHARES_H

#include "state.h"

/* Groups above a thread, at most; those further up are taken for the root. */
#define DEPTH_MAX 8
/* A weight of 1, in the unit of effective weights. */
#define WEIGHT_ONE 1024
/* `shares` of a weight of 100. */
#define SHARES_USUAL (1024UL << 10)
#define NO_QUOTA (~0ULL)
/* A group's debt is paid within this time: the kernel's watchdog doesn't wait for longer. */
#define DEBT_NS_MAX 2000000000ULL
/* How often the parked are looked at, and whether there are any. */
#define LOOK_NS 2000000ULL
#define LOOK_IDLE_NS 100000000ULL

struct share {
	u64 load;      /* weights of its runnable threads and of its busy groups */
	u64 counted;   /* weight by which the group above it counts it while it is busy */
	u64 above;     /* that group, 0 for the root */
	u64 used;      /* ns of CPU time, since period_at */
	u64 period_at; /* ns */
};

/* By the address of the kernel's task_group, which is compared only. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, struct share);
} wa_shares SEC(".maps");

struct parking {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct parking);
} wa_parking SEC(".maps");

/* Whether a quota was ever seen: without one, nobody looks. */
u32 quotas;
/* Whether somebody will let the parked go on. */
u32 can_park;

/* Kernels are built without either. */
static __always_inline u64 weight_of_group(struct task_group *group)
{
	u64 weight = 100;

	if (bpf_core_field_exists(group->shares))
		weight = (u64)group->shares * 100 / SHARES_USUAL;
	return weight ?: 1;
}

/* Without its groups. */
static __always_inline u64 own_weight(struct task_struct *p)
{
	return (u64)(p->scx.weight ?: 100) * WEIGHT_ONE;
}

static __always_inline u64 quota_of(struct task_group *group)
{
	return bpf_core_field_exists(group->cfs_bandwidth) ? group->cfs_bandwidth.quota : NO_QUOTA;
}

static __always_inline u64 period_of(struct task_group *group)
{
	return group->cfs_bandwidth.period ?: 1;
}

/* The control group of a thread that has the cpu controller, NULL for the root. */
static __always_inline struct task_group *group_above(struct task_struct *p)
{
	return bpf_core_field_exists(p->sched_task_group) ? p->sched_task_group : NULL;
}

static __always_inline struct share *share_of(struct task_group *group, bool made)
{
	struct share new = {}, *share;
	u64 key = (u64)group;

	share = bpf_map_lookup_elem(&wa_shares, &key);
	if (share || !made)
		return share;
	if (group->parent && group->parent->parent)
		new.above = (u64)group->parent;
	bpf_map_update_elem(&wa_shares, &key, &new, BPF_ANY);
	return bpf_map_lookup_elem(&wa_shares, &key);
}

/* Whether the group is not the root, and quotas and weights mean something. */
static __always_inline bool is_group(struct task_group *group)
{
	return group && group->parent;
}

/* A thread of this weight became runnable: a group that becomes busy is counted in the one above. */
static __always_inline void add_load(struct task_group *group, u64 weight)
{
	struct share *share;
	u32 i;

	bpf_for(i, 0, DEPTH_MAX) {
		if (!is_group(group))
			return;
		share = share_of(group, true);
		if (!share || __sync_fetch_and_add(&share->load, weight))
			return;
		weight = weight_of_group(group);
		share->counted = weight;
		group = group->parent;
	}
}

static __always_inline void take_load(u64 group, u64 weight)
{
	struct share *share;
	u32 i;

	bpf_for(i, 0, DEPTH_MAX) {
		if (!group)
			return;
		share = bpf_map_lookup_elem(&wa_shares, &group);
		if (!share || share->load < weight)
			return; /* forgotten meanwhile, for groups that were busier */
		if (__sync_fetch_and_add(&share->load, -weight) != weight)
			return;
		weight = share->counted;
		group = share->above;
	}
}

/*
 * Functions that the verifier takes on their own: their loops would be walked through in each way
 * that leads to them.
 *
 * Weight of a thread in the tree, in units of WEIGHT_ONE; `limited` if a group above has a quota.
 */
__noinline u64 effective_weight(struct cpu *cpu __arg_nonnull, struct task_struct *p __arg_trusted)
{
	struct task_group *group = group_above(p);
	u64 weight = own_weight(p), load;
	struct share *share;
	u32 i;

	cpu->limited = 0;
	bpf_for(i, 0, DEPTH_MAX) {
		if (!is_group(group))
			break;
		share = share_of(group, false);
		load = share ? share->load : 0;
		if (load)
			weight = weight * weight_of_group(group) / load;
		if (quota_of(group) != NO_QUOTA)
			cpu->limited = 1;
		group = group->parent;
	}
	return weight ?: 1;
}

/* A task's part of a CPU's load, in one word, which is exchanged: two CPUs that move it, wake it up
 * or end it at the same time don't both take it out of the old one's load. */
#define BURDEN_BITS 48

static __always_inline u64 burden_weight(u64 burden)
{
	return burden & ((1ULL << BURDEN_BITS) - 1);
}

/* Makes the task part of the load of a CPU, NOWHERE for none. */
static __always_inline void burden(struct task *task, s32 on, u64 weight)
{
	u64 new = on == NOWHERE ? 0 : (u64)(on + 1) << BURDEN_BITS | burden_weight(weight);
	struct cpu *cpu;
	u64 old;

	if (task->burdens == new)
		return;
	old = __sync_lock_test_and_set(&task->burdens, new);
	cpu = old ? cpu_of((s32)(old >> BURDEN_BITS) - 1) : NULL;
	if (cpu)
		__sync_fetch_and_add(&cpu->load, -burden_weight(old));
	cpu = new ? cpu_of(on) : NULL;
	if (cpu)
		__sync_fetch_and_add(&cpu->load, burden_weight(new));
}

/* Weighs the running thread, which changes with what is busy in its groups: also one that goes on
 * slice after slice. */
static __always_inline void weigh(s32 me, struct cpu *cpu, struct task_struct *p, struct task *task)
{
	cpu->weight = task->weight = effective_weight(cpu, p);
	burden(task, me, cpu->weight);
}

/* Makes a waiting thread part of the load of a CPU, by what it weighed when it ran last. */
static __always_inline void burden_waiting(struct task *task, s32 on, struct task_struct *p)
{
	burden(task, on, task->weight ?: own_weight(p));
}

/* Moves the period of a group on to now; a debt stays, as far as it can be paid. */
static __always_inline void move_on(struct share *share, u64 period, u64 quota, u64 now)
{
	u64 at = share->period_at, periods, paid, used;

	if ((s64)(now - at) < (s64)period)
		return;
	periods = (now - at) / period;
	if (__sync_val_compare_and_swap(&share->period_at, at, at + periods * period) != at)
		return;
	paid = periods < DEBT_NS_MAX / period + 1 ? periods * quota : ~0ULL;
	used = share->used;
	share->used = used > paid ? used - paid : 0;
	if (share->used > DEBT_NS_MAX / period * quota)
		share->used = DEBT_NS_MAX / period * quota;
}

/* Books CPU time of a thread on all groups above it that have a quota. */
__noinline int use(struct task_struct *p __arg_trusted, u64 ran, u64 now)
{
	struct task_group *group = group_above(p);
	struct share *share;
	u64 quota;
	u32 i;

	bpf_for(i, 0, DEPTH_MAX) {
		if (!is_group(group))
			break;
		quota = quota_of(group);
		if (quota != NO_QUOTA) {
			share = share_of(group, true);
			if (share) {
				move_on(share, period_of(group), quota, now);
				__sync_fetch_and_add(&share->used, ran);
			}
		}
		group = group->parent;
	}
	return 0;
}

/* Until when a thread has no quota, 0 where it has. */
__noinline u64 parked_until(struct task_struct *p __arg_trusted, u64 now)
{
	struct task_group *group = group_above(p);
	u64 until = 0, period, quota, owed, paid;
	struct share *share;
	u32 i;

	bpf_for(i, 0, DEPTH_MAX) {
		if (!can_park || !is_group(group))
			break;
		quota = quota_of(group);
		if (quota != NO_QUOTA && quota) {
			quotas = 1;
			period = period_of(group);
			share = share_of(group, true);
			if (share) {
				move_on(share, period, quota, now);
				owed = share->used / quota * period;
				paid = share->period_at + (owed < DEBT_NS_MAX ? owed : DEBT_NS_MAX);
				if (share->used >= quota && itas_before(until, paid))
					until = paid;
			}
		}
		group = group->parent;
	}
	return until;
}

/* Time of the running thread as vruntime. */
static __always_inline u64 virtual_time(u64 ran, u64 weight)
{
	return ran * 100 * WEIGHT_ONE / (weight ?: 100 * WEIGHT_ONE);
}

/* Charges the running thread for the time since it was charged last. */
static __always_inline void charge(struct task_struct *p, struct task *task, struct cpu *cpu,
				   u64 now)
{
	u64 ran = now - cpu->started;

	if ((s64)ran > 0) {
		task->vruntime += virtual_time(ran, cpu->weight);
		if (cpu->passing)
			cpu->passed += ran;
		if (cpu->limited)
			use(p, ran, now);
	}
	cpu->started = now;
	cpu->vruntime = task->vruntime;
}

#endif
