/* A claim on one key: three workers begin, act outside, and settle with their fence. A worker may die, come back late,
 * extend its lease, or say that it does not know what happened (abandon). Leases and retentions end, and a sweeper
 * tells of claims that became unknown. An abandon is durable only after its commit: a crash before it takes it back.
 *
 * Holds: fences rise strictly, also after the claim was forgotten; only the newest fence settles or abandons; a settled
 * claim never changes, and is remembered for its retention, no shorter and no longer; an unsettled claim is never
 * forgotten; under the policy "unknown" the outside effect is begun at most once, and under "retry" a second one only
 * after the first one's lease has ended; an abandoned claim is not in progress; each claim that becomes unknown is told
 * once, and what is told stays so after a crash; nothing blocks the key for ever (there is no bad end state).
 *
 * bug NO_FENCE: complete does not compare the fence
 * bug FENCE_NOT_RISING: a takeover gets the fence that was there
 * bug FENCE_FORGOTTEN: fences begin again when the claim is forgotten
 * bug UNKNOWN_RETRIES: an abandoned claim under "unknown" is begun again
 * bug TAKE_RUNNING: begin takes over before the lease has run out
 * bug ABANDON_WAITS: an abandoned claim is in progress until its lease ends
 * bug ABANDON_STALE: abandon does not compare the fence
 * bug ABANDON_UNTOLD: the sweeper does not notice that an abandon has ended the lease
 * bug TOLD_ONCE: a claim that was told and got a heartbeat is not told again
 * bug TOLD_EARLY: the sweeper tells of an abandon that is not durable
 * bug FORGET_UNKNOWN: a claim that nobody settled is forgotten
 * bug RETENTION_SHORT: a settled claim is remembered for the window, not for its retention
 * bug RETRY_EXTENDS: a replay begins the retention again */
#define WORKERS 3
#define LEASE 1
#define WINDOW 1
#define RETENTION 2
#define END 3
mtype = { FREE, STARTED, DONE };
mtype state = FREE;
byte now = 0;
byte fence = 0;     /* of the newest begin */
byte lease_end = 0; /* of the newest begin */
byte expires = 0;   /* when the settled claim is forgotten */
bool told = false;  /* the sweeper has told that this lease has ended */
bool retry;         /* the policy, chosen at the start */

/* An abandon that is not committed: the end of the lease before it. */
bool pending = false;
byte before;

/* What the rules say, beside what the store does. */
byte highest = 0;   /* the fence that was given last */
byte begun = 0;     /* outside effects that were begun since the key was new */
byte answer = 0;    /* the stored response: the fence of the worker that wrote it */
byte promised = 0;  /* the settled claim is remembered until then */
byte abandoned = 0; /* the fence that was abandoned */
bool owed = false;  /* the claim has become unknown, and nobody was told */

#define UNKNOWN (state == STARTED && now >= lease_end)

init {
  byte i;
  atomic {
    if :: retry = false :: retry = true fi;
    for (i : 1 .. WORKERS) { run worker() }
    run time(); run sweeper(); run committer(); run crash()
  }
  timeout -> assert(!UNKNOWN || (told && !owed))
}

proctype time()
{
  do
  :: atomic { now < END -> now++; if :: state == STARTED && now == lease_end -> owed = true :: else fi }
  :: break
  od
}

inline forget()
{
  if
  :: state == DONE && now >= expires ->
     assert(now >= promised);
     state = FREE; begun = 0; answer = 0; expires = 0; promised = 0
#ifdef FENCE_FORGOTTEN
     ; fence = 0
#endif
#ifdef FORGET_UNKNOWN
  :: state == STARTED && now >= lease_end + WINDOW -> state = FREE
#endif
  :: else
  fi
}

inline begin()
{
  forget();
  if
  :: state == DONE -> /* the stored answer */
     assert(now < promised);
#ifdef RETRY_EXTENDS
     expires = now + RETENTION;
#endif
     goto over
  :: state == STARTED && now < lease_end -> /* in progress */
     assert(fence != abandoned);
#ifdef TAKE_RUNNING
     if :: retry -> fence++ :: else -> goto over fi
#else
     goto over
#endif
  :: UNKNOWN && retry ->
#ifndef FENCE_NOT_RISING
     fence++
#endif
  :: UNKNOWN && !retry -> /* outcome unknown */
#ifdef UNKNOWN_RETRIES
     fence++
#else
     goto over
#endif
  :: state == FREE -> fence++
  fi;
  mine = fence;
  assert(mine > highest);
  assert(state == FREE || now >= lease_end);
  begun++;
  assert(retry || begun == 1);
  highest = mine;
  state = STARTED; lease_end = now + LEASE;
  told = false; owed = false; pending = false; before = 0; abandoned = 0 /* commits are in order */
}

inline abandon()
{
  if
#ifdef ABANDON_STALE
  :: state == STARTED && now < lease_end ->
#else
  :: state == STARTED && mine == fence && now < lease_end ->
#endif
     assert(mine == highest);
     before = lease_end; pending = true; abandoned = mine; owed = true;
#ifndef ABANDON_WAITS
     lease_end = now;
#endif
#ifdef ABANDON_UNTOLD
     told = true
#else
     told = false
#endif
  :: else /* stale, settled, or unknown already */
  fi
}

inline heartbeat()
{
  if
  :: state == STARTED && mine == fence ->
     lease_end = now + LEASE;
#ifndef TOLD_ONCE
     told = false;
#endif
     owed = false; pending = false; before = 0; abandoned = 0
  :: else
  fi
}

inline complete()
{
  if
#ifdef NO_FENCE
  :: state == STARTED ->
#else
  :: state == STARTED && mine == fence ->
#endif
     assert(mine == highest);
     assert(answer == 0);
     state = DONE; answer = mine; promised = now + RETENTION;
     lease_end = 0; told = false; owed = false; pending = false; before = 0; abandoned = 0;
#ifdef RETENTION_SHORT
     expires = now + WINDOW
#else
     expires = now + RETENTION
#endif
  :: else /* stale */
  fi
}

proctype worker()
{
  byte mine = 0;
  atomic { begin() };
  if
  :: atomic { skip; heartbeat() }
  :: atomic { skip; abandon() }
  :: skip
  fi;
  if
  :: skip /* stalls for ever, or dies; after an abandon: leaves it to others */
  :: atomic { skip; complete() }
  fi;
over:
  mine = 0
}

proctype sweeper()
{
end:
  do
#ifdef TOLD_EARLY
  :: atomic { UNKNOWN && !told -> assert(owed); told = true; owed = false }
#else
  :: atomic { UNKNOWN && !told && !pending -> assert(owed); told = true; owed = false }
#endif
  od
}

proctype committer()
{
end:
  do
  :: atomic { pending -> pending = false; before = 0 }
  od
}

proctype crash()
{
  if
  :: atomic {
       pending -> /* the abandon is lost: the lease ends when it would have ended */
       assert(!told || now >= before);
       lease_end = before; pending = false; abandoned = 0; told = false; owed = UNKNOWN
     }
  :: skip
  fi
}
