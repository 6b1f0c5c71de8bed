/* SPDX-License-Identifier: GPL-2.0-only */
/* How to talk to sched_ext: the functions that the kernel offers, and how operations are written. */
#ifndef WORKAHEAD_KERNEL_H
#define WORKAHEAD_KERNEL_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* The queue of threads without quota: no CPU has this number. */
#define PARKED (1ULL << 32)

#define OPERATION(name, args...) SEC("struct_ops/" #name) BPF_PROG(name, ##args)
#define SLEEPING_OPERATION(name, args...) SEC("struct_ops.s/" #name) BPF_PROG(name, ##args)

s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
			   bool *is_idle) __ksym;
void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym __weak;
void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
			      u64 enq_flags) __ksym __weak;
bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, u64 dsq_id,
		      u64 enq_flags) __ksym __weak;
void scx_bpf_dsq_move_set_slice(struct bpf_iter_scx_dsq *it__iter, u64 slice) __ksym __weak;
void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it__iter, u64 vtime) __ksym __weak;
bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, u64 dsq_id,
			    u64 enq_flags) __ksym __weak;
bool scx_bpf_dsq_move_to_local(u64 dsq_id) __ksym __weak;
/* The same as Linux 6.12 calls them. */
void scx_bpf_dispatch(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym __weak;
void scx_bpf_dispatch_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
			    u64 enq_flags) __ksym __weak;
bool scx_bpf_dispatch_from_dsq(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p,
			       u64 dsq_id, u64 enq_flags) __ksym __weak;
void scx_bpf_dispatch_from_dsq_set_slice(struct bpf_iter_scx_dsq *it__iter,
					 u64 slice) __ksym __weak;
void scx_bpf_dispatch_from_dsq_set_vtime(struct bpf_iter_scx_dsq *it__iter,
					 u64 vtime) __ksym __weak;
bool scx_bpf_dispatch_vtime_from_dsq(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p,
				     u64 dsq_id, u64 enq_flags) __ksym __weak;
bool scx_bpf_consume(u64 dsq_id) __ksym __weak;
s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
u32 scx_bpf_reenqueue_local(void) __ksym;
s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
u64 scx_bpf_now(void) __ksym __weak; /* 6.14 */
void scx_bpf_error_bstr(char *fmt, unsigned long long *data, u32 data__sz) __ksym;
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags) __ksym;
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym;
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym;
struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *cpumask) __ksym;
u32 bpf_cpumask_any_distribute(const struct cpumask *cpumask) __ksym;

/* The one of both names that the kernel has. */
#define EITHER(now, before, ...) \
	(bpf_ksym_exists(now) ? now(__VA_ARGS__) : before(__VA_ARGS__))

static __always_inline void insert(struct task_struct *p, u64 queue, u64 slice, u64 flags)
{
	EITHER(scx_bpf_dsq_insert, scx_bpf_dispatch, p, queue, slice, flags);
}

static __always_inline void insert_at(struct task_struct *p, u64 queue, u64 slice, u64 vtime,
				      u64 flags)
{
	EITHER(scx_bpf_dsq_insert_vtime, scx_bpf_dispatch_vtime, p, queue, slice, vtime, flags);
}

/* To the end of a queue that is served in order, with a slice. */
static __always_inline bool move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 queue,
				 u64 slice)
{
	EITHER(scx_bpf_dsq_move_set_slice, scx_bpf_dispatch_from_dsq_set_slice, it, slice);
	return EITHER(scx_bpf_dsq_move, scx_bpf_dispatch_from_dsq, it, p, queue, 0);
}

/* To its place in a queue by vruntime. */
static __always_inline bool move_at(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 queue,
				    u64 vtime)
{
	EITHER(scx_bpf_dsq_move_set_vtime, scx_bpf_dispatch_from_dsq_set_vtime, it, vtime);
	return EITHER(scx_bpf_dsq_move_vtime, scx_bpf_dispatch_vtime_from_dsq, it, p, queue, 0);
}

static __always_inline bool take_first(u64 queue)
{
	return EITHER(scx_bpf_dsq_move_to_local, scx_bpf_consume, queue);
}

static __always_inline u64 clock(void)
{
	return bpf_ksym_exists(scx_bpf_now) ? scx_bpf_now() : bpf_ktime_get_ns();
}

#endif
