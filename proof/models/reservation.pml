/* One resource with one unit, two clients with a token each, a store that crashes.
 *
 * A client places a hold with its token and asks again until it has an answer; then it confirms with a second
 * token, likewise. Answers get lost. Time passes, holds become overdue, a sweeper and a place that meets an overdue hold
 * expire it. A crash forgets what is not committed.
 *
 * Holds: a token has at most one effect, an answer given twice is the same, at most one unit is taken, and
 * what is confirmed was confirmed before its time was over.
 *
 * bug TOKEN_AFTER_EFFECT: the effect is committed first and the token after it
 * bug TOKEN_BEFORE_EFFECT: the token is committed first, with its answer, and the effect after it
 * bug FAILURE_NOT_CACHED: a refusal is not remembered, so a retry may be told something else
 * bug CONFIRM_LATE: confirm does not look at the time
 * bug EXPIRE_TWICE: the sweeper looks and expires in two steps, without looking again */
#define CLIENTS 2
#define DURATION 2
#define END 4
mtype = { NOTHING, YES, NO, HELD, CONFIRMED, EXPIRED };

byte now = 0;
mtype hold[CLIENTS];   /* the hold that each client's token made */
byte placed[CLIENTS];
byte taken = 0;        /* units */
mtype place_token[CLIENTS], confirm_token[CLIENTS]; /* the remembered answers */
byte effects[CLIENTS], confirms[CLIENTS];           /* how often it really happened */
byte crashes = 0;

init {
  byte i;
  atomic {
    for (i : 0 .. CLIENTS - 1) {
      hold[i] = NOTHING; place_token[i] = NOTHING; confirm_token[i] = NOTHING
    }
    for (i : 0 .. CLIENTS - 1) { run client(i) }
    run clock(); run sweeper(); run power()
  }
}

/* Units are taken by exactly the holds that are held or confirmed. */
#define TAKES(i) ((hold[i] == HELD || hold[i] == CONFIRMED) -> 1 : 0)
inline count_units()
{
  assert(taken == TAKES(0) + TAKES(1) && taken <= 1)
}

inline free_overdue()
{
  byte o;
  for (o : 0 .. CLIENTS - 1) {
    if
    :: hold[o] == HELD && now - placed[o] >= DURATION -> hold[o] = EXPIRED; taken--
    :: else -> skip
    fi
  }
}

inline place_effect(me, answer)
{
  free_overdue();
  if
  :: taken == 0 -> taken++; hold[me] = HELD; placed[me] = now; effects[me]++; answer = YES
  :: else -> answer = NO
  fi;
  count_units();
  assert(effects[me] <= 1)
}

inline remember_place(me, answer)
{
#ifdef FAILURE_NOT_CACHED
  if :: answer == YES -> place_token[me] = answer :: else -> skip fi
#else
  place_token[me] = answer
#endif
}

inline confirm_effect(me, answer)
{
  if
#ifdef CONFIRM_LATE
  :: hold[me] == HELD -> hold[me] = CONFIRMED; confirms[me]++; answer = YES; assert(now - placed[me] < DURATION)
#else
  :: hold[me] == HELD && now - placed[me] < DURATION ->
     hold[me] = CONFIRMED; confirms[me]++; answer = YES; assert(now - placed[me] < DURATION)
#endif
  :: else -> answer = NO
  fi;
  assert(confirms[me] <= 1)
}

proctype client(byte me)
{
  mtype answer = NOTHING, before = NOTHING;
  byte tries = 0, crash_seen = 0;

  do
  :: tries < 2 ->
#ifdef TOKEN_AFTER_EFFECT
     bool known;
     atomic { known = place_token[me] != NOTHING; answer = place_token[me]; crash_seen = crashes };
     if
     :: known -> skip
     :: else ->
        atomic { place_effect(me, answer) };
        atomic { if :: crash_seen == crashes -> remember_place(me, answer) :: else -> skip fi }
     fi;
#else
#ifdef TOKEN_BEFORE_EFFECT
     atomic {
       crash_seen = crashes;
       if
       :: place_token[me] != NOTHING -> answer = place_token[me]; crash_seen = 255
       :: else -> place_token[me] = YES; answer = YES
       fi
     };
     atomic { if :: crash_seen == crashes -> place_effect(me, answer) :: else -> skip fi };
#else
     atomic {
       if
       :: place_token[me] != NOTHING -> answer = place_token[me]
       :: else -> place_effect(me, answer); remember_place(me, answer)
       fi
     };
#endif
#endif
     atomic {
       tries++;
       if
       :: answer = NOTHING /* the answer got lost on its way */
       :: answer != NOTHING ->
          assert(before == NOTHING || before == answer);
          assert(answer != YES || effects[me] == 1);
          before = answer
       fi
     }
  :: tries == 2 -> break
  od;

  tries = 0; before = NOTHING;
  do
  :: tries < 2 ->
     atomic {
       if
       :: confirm_token[me] != NOTHING -> answer = confirm_token[me]
       :: else -> confirm_effect(me, answer); confirm_token[me] = answer
       fi;
       tries++;
       assert(before == NOTHING || before == answer);
       before = answer
     }
  :: tries == 2 -> break
  od
}

proctype clock()
{
  do
  :: now < END -> now++
  :: now == END -> break
  od
}

/* Whatever was between two commits when the power went is not carried on with. */
proctype power()
{
  if
  :: crashes++
  :: skip
  fi
}

proctype sweeper()
{
end:
  do
#ifdef EXPIRE_TWICE
  :: hold[0] == HELD && now - placed[0] >= DURATION -> atomic { hold[0] = EXPIRED; taken--; count_units() }
#else
  :: atomic { hold[0] == HELD && now - placed[0] >= DURATION -> hold[0] = EXPIRED; taken--; count_units() }
#endif
  :: atomic { hold[1] == HELD && now - placed[1] >= DURATION -> hold[1] = EXPIRED; taken--; count_units() }
  od
}
