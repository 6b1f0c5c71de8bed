/* SPDX-License-Identifier: GPL-2.0-only */
/* What is counted beyond the decisions: latencies, switches, and which groups ran at the same time. */
#ifndef WORKAHEAD_SURVEY_H
#define WORKAHEAD_SURVEY_H

#include "state.h"

/* Buckets that grow by a quarter of a power of two. */
static __always_inline u32 bucket_of(u64 value)
{
	u64 rest = value;
	u32 power = 0;

	if (value < 4)
		return value;
	if (rest >> 32) { power += 32; rest >>= 32; }
	if (rest >> 16) { power += 16; rest >>= 16; }
	if (rest >> 8) { power += 8; rest >>= 8; }
	if (rest >> 4) { power += 4; rest >>= 4; }
	if (rest >> 2) { power += 2; rest >>= 2; }
	if (rest >> 1) power += 1;
	return (power - 1) * 4 + ((value >> (power - 2)) & 3);
}

static __always_inline void note_run(struct stats *stats, struct task *task, u64 now)
{
	u64 wait;

	if (task->queued_at) {
		wait = now - task->queued_at;
		if ((s64)wait > 0 && wait > stats->wait_max_ns)
			stats->wait_max_ns = wait;
		task->queued_at = 0;
	}
	if (task->woken_at) {
		wait = now - task->woken_at;
		stats->latency[bucket_of((s64)wait > 0 ? wait : 0) & (BUCKETS - 1)]++;
		task->woken_at = 0;
	}
}

static __always_inline void note_scan(struct stats *stats, u32 scanned)
{
	stats->scanned += scanned;
	stats->scans[scanned < SCAN_BUCKETS ? scanned : SCAN_BUCKETS - 1]++;
}

/* Between two switches on either of them, two CPUs run what they ran: that time is a pair's, and it
 * is booked at the later switch. */
static __always_inline void note_pairs(struct stats *stats, struct cpu *here, u32 me,
				      struct settings *set, u64 now)
{
	struct cpu *there;
	u64 since;
	u32 i;

	bpf_for(i, 0, set->cpus) {
		there = i == me ? NULL : cpu_of(i);
		if (!there || !there->group)
			continue;
		since = there->switched_at > here->switched_at ? there->switched_at
							       : here->switched_at;
		if ((s64)(now - since) <= 0)
			continue;
		stats->pair_ns += now - since;
		if (there->group == here->group)
			stats->same_pair_ns += now - since;
	}
}

static __always_inline void note_switch(struct task_struct *prev, struct task_struct *next)
{
	s32 me = bpf_get_smp_processor_id();
	struct settings *set = the_settings();
	struct stats *stats = stats_of(me);
	struct cpu *here = cpu_of(me);
	u64 group, before, now;

	if (!set || !stats || !here)
		return;
	group = group_of(next, set->key);
	before = group_of(prev, set->key);
	stats->switches++;
	if (group && before) {
		stats->user_switches++;
		stats->same_switches += group == before;
	}
	if (set->survey) {
		now = bpf_ktime_get_ns();
		if (here->group)
			note_pairs(stats, here, me, set, now);
		here->switched_at = now;
	}
	here->group = group;
}

#endif
