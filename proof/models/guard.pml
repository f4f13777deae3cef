/* A guard with one identity: three clients admit it while time passes, a sweeper frees memory.
 *
 * Holds: two answers "first" are at least a window apart (so one window lets one through), and an identity is not
 * seen any more when the window of its recording has passed (so nobody pushes it forward).
 *
 * bug CHECK_THEN_RECORD: check and record are two steps
 * bug RETRY_EXTENDS: an admit that finds the identity moves its time
 * bug WINDOW_CLOSED: the window is taken as closed at its end (seen while now - t <= w)
 * bug SWEEP_EARLY: the sweeper frees an entry one tick before its window has passed */
#define WINDOW 2
#define END 5 /* time stops here */
#define NONE 255

byte now = 0;
byte recorded = NONE; /* when the entry in memory was recorded */
byte first = NONE;    /* when "first" was last answered: what the world has seen happen */

#ifdef WINDOW_CLOSED
#define UNDER_GUARD (recorded != NONE && now - recorded <= WINDOW)
#else
#define UNDER_GUARD (recorded != NONE && now - recorded < WINDOW)
#endif

inline answered_first()
{
  assert(first == NONE || now - first >= WINDOW);
  first = now
}

inline answered_seen()
{
  assert(first != NONE && now - first < WINDOW)
}

active [3] proctype client()
{
  byte tries = 0;
  do
  :: tries < 2 ->
#ifdef CHECK_THEN_RECORD
     bool seen;
     atomic { seen = UNDER_GUARD };
     atomic {
       if
       :: seen -> skip
       :: else -> recorded = now; answered_first()
       fi;
       tries++
     }
#else
     atomic {
       if
       :: UNDER_GUARD ->
          answered_seen();
#ifdef RETRY_EXTENDS
          recorded = now
#else
          skip
#endif
       :: else -> recorded = now; answered_first()
       fi;
       tries++
     }
#endif
  :: tries == 2 -> break
  od
}

active proctype clock()
{
  do
  :: now < END -> now++
  :: now == END -> break
  od
}

active proctype sweeper()
{
end:
  do
#ifdef SWEEP_EARLY
  :: atomic { recorded != NONE && now - recorded >= WINDOW - 1 -> recorded = NONE }
#else
  :: atomic { recorded != NONE && now - recorded >= WINDOW -> recorded = NONE }
#endif
  od
}
