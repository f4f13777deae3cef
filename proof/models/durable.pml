/* The answer comes after the disk: clients, one batch that is gathered while another is written, a crash at any
 * moment, retries of one token, and a reader.
 *
 * Holds: whatever anybody was told, also by a replay or a read of somebody else's effect, is there after the crash; and
 * the token's effect happens once.
 *
 * bug ANSWER_EARLY: answers go out when the batch is written, before it is synced
 * bug REPLAY_EARLY: a replay is answered from memory, though the first call's batch is not durable yet
 * bug READ_EARLY: a read is answered from memory likewise
 * bug SEAL_LATE: what is decided while the batch is being written is marked durable with it */
#define CLIENTS 2
byte memory = 0;   /* effects of the token, as decided (in memory) */
byte position = 0; /* which batch the effect is in: 1, 2, ...; 0: none */
byte gather = 1;   /* the batch that is being gathered */
byte durable = 0;  /* every batch up to here is on disk */
bool disk = false; /* the effect is on disk */
bool written = false; /* the batch in flight has the effect, and is written but not synced */
byte flight = 0;   /* the batch being written; 0: none */
bool told = false; /* somebody has been told about the effect */
bool crashed = false, back = false;

init {
  byte i;
  atomic {
    for (i : 1 .. CLIENTS) { run client() }
    run reader(); run writer(); run crash()
  }
}

#ifdef ANSWER_EARLY
#define MAY_SAY(p) (durable >= p || (flight == p && written))
#else
#define MAY_SAY(p) (durable >= p)
#endif

proctype client()
{
  byte needs = 0, tries = 0;
  do
  :: tries < 2 ->
     tries++;
     atomic {
       if
       :: crashed && !back -> goto over
       :: else -> skip
       fi;
       if
       :: memory > 0 ->
          needs = position; /* a replay: needs what it repeats */
#ifdef REPLAY_EARLY
          told = true; needs = 0
#endif
       :: else ->
          memory++; position = gather; needs = gather
       fi;
       assert(memory <= 1)
     };
     if
     :: needs > 0 && MAY_SAY(needs) && !crashed -> told = true
     :: crashed -> skip /* the answer never came: ask again */
     :: skip            /* the client gives up waiting and asks again */
     fi
  :: tries == 2 -> break
  od;
over:
  skip
}

proctype reader()
{
  byte needs;
  atomic {
    if
    :: !crashed && memory > 0 ->
       needs = position;
#ifdef READ_EARLY
       told = true
#else
       skip
#endif
    :: crashed -> goto over
    fi
  };
  if
  :: MAY_SAY(needs) && !crashed -> told = true
  :: crashed -> skip
  fi;
over:
  skip
}

proctype writer()
{
  bool has;
end:
  do
  :: atomic { !crashed && position == gather && flight == 0 ->
       flight = gather; has = true; gather++ } ; /* sealed: the next decisions go to the next batch */
     atomic { if :: !crashed -> written = has :: else -> goto over fi };
     atomic { if :: !crashed -> disk = disk || written; durable = flight; flight = 0; written = false :: else -> goto over fi }
#ifdef SEAL_LATE
  :: atomic { !crashed && position == 0 && flight == 0 && gather < 4 -> flight = gather } ; /* begins with nothing, and is open still */
     atomic { if :: !crashed -> written = (position != 0) :: else -> goto over fi };
     atomic { if :: !crashed -> disk = disk || written; durable = flight; gather++; flight = 0; written = false
              :: else -> goto over fi }
#endif
  od;
over:
  skip
}

proctype crash()
{
  atomic {
    crashed = true;
    /* What was written and not synced may be on the disk or not. */
    if
    :: written -> disk = true
    :: skip
    fi;
    assert(!told || disk);
    memory = (disk -> 1 : 0);
    position = (disk -> durable : 0);
    back = true
  }
}
