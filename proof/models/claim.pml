/* A claim on one key: three workers begin, act outside, and complete with their fence; a worker may stall for ever or
 * come back late; its lease runs out.
 *
 * Holds: fences rise strictly; only the newest fence settles; a settled claim never changes; under the policy
 * "unknown" the outside effect is begun at most once, and under "retry" a second one is begun only after the
 * first one's lease ran out; a stalled worker does not block the key for ever (there is no bad end state).
 *
 * bug NO_FENCE: complete does not compare the fence
 * bug FENCE_NOT_RISING: a takeover gets the fence that was there
 * bug UNKNOWN_RETRIES: an abandoned claim under "unknown" is begun again
 * bug TAKE_RUNNING: begin takes over before the lease has run out */
#define WORKERS 3
mtype = { FREE, STARTED, DONE };
mtype state = FREE;
byte fence = 0;       /* of the newest begin */
byte lease_over = 0;  /* has the lease of the newest begin run out? */
byte begun = 0;       /* outside effects that were begun */
byte answer = 0;      /* the stored response: the fence of the one who wrote it */
bool retry;           /* the policy, chosen at the start */

init {
  atomic {
    if :: retry = true :: retry = false fi;
    byte i;
    for (i : 1 .. WORKERS) { run worker() }
    run time()
  }
}

proctype time()
{
  byte ticks = 0;
  do
  :: ticks < 3 && state == STARTED && !lease_over -> lease_over = 1; ticks++
  :: ticks == 3 || state == DONE -> break
  :: true -> break
  od
}

proctype worker()
{
  byte mine = 0, old;
  atomic {
    old = fence;
    if
    :: state == DONE -> goto over /* the stored answer */
#ifdef TAKE_RUNNING
    :: state == STARTED && !lease_over && retry ->
#else
    :: state == STARTED && !lease_over -> goto over /* in progress */
    :: state == STARTED && lease_over && retry ->
#endif
       assert(lease_over);
#ifndef FENCE_NOT_RISING
       fence++;
#endif
       mine = fence
#ifdef TAKE_RUNNING
    :: state == STARTED && !lease_over && !retry -> goto over
    :: state == STARTED && lease_over && retry -> fence++; mine = fence
#endif
#ifdef UNKNOWN_RETRIES
    :: state == STARTED && lease_over && !retry -> fence++; mine = fence
#else
    :: state == STARTED && lease_over && !retry -> goto over /* outcome unknown */
#endif
    :: state == FREE -> fence++; mine = fence
    fi;
    assert(fence > old);
    state = STARTED; lease_over = 0; begun++;
    assert(retry || begun == 1)
  };
  if
  :: goto over /* stalls for ever, or dies */
  :: skip
  fi;
  atomic {
    if
#ifdef NO_FENCE
    :: state == STARTED ->
#else
    :: state == STARTED && mine == fence ->
#endif
       assert(mine == fence);
       assert(answer == 0);
       state = DONE; answer = mine
    :: else -> skip /* stale */
    fi
  };
over:
  skip
}
