/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The header's functions with names that a linker knows, for Rust. */
#include "itas.h"

_Static_assert(sizeof(struct itas_tunables) == 24, "as in ffi.rs");
_Static_assert(sizeof(struct itas_thread) == 32, "as in ffi.rs");
_Static_assert(sizeof(struct itas_view) == 72, "as in ffi.rs");
_Static_assert(sizeof(struct itas_choice) == 24, "as in ffi.rs");

itas_u64 workahead_itas_bonus_of_slice(itas_u64 slice, itas_u32 per_mille)
{
	return itas_bonus_of_slice(slice, per_mille);
}

int workahead_itas_before(itas_u64 a, itas_u64 b)
{
	return itas_before(a, b);
}

int workahead_itas_beats(itas_u64 candidate, itas_u64 rival, itas_u64 bonus)
{
	return itas_beats(candidate, rival, bonus);
}

itas_s64 workahead_itas_slack(itas_u64 bound, itas_u32 weight, itas_u64 credit, itas_u64 turn)
{
	return itas_slack(bound, weight, credit, turn);
}

itas_u32 workahead_itas_see(struct itas_view *view, const struct itas_thread *thread,
			    itas_u64 reach)
{
	return itas_see(view, thread, reach);
}

itas_u32 workahead_itas_see_current(struct itas_view *view, const struct itas_thread *thread,
				    itas_u64 reach)
{
	return itas_see_current(view, thread, reach);
}

void workahead_itas_choose(const struct itas_view *view, itas_u32 role, itas_u32 count,
			   const struct itas_tunables *tunables, struct itas_choice *choice)
{
	*choice = itas_choose(view, role, count, tunables);
}

itas_u32 workahead_itas_count_after(itas_u32 count, itas_u32 change)
{
	return itas_count_after(count, change);
}
