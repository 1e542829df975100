/* Ricart and Agrawala 1981, with the transitions of crates/algorithms/src/ricart_agrawala.rs.
 *
 *   -DN=4       nodes, 2 to 5
 *   -DR=1       how often each node may ask
 *   -DFIFO      messages between two nodes keep their order; else any may arrive next
 *   -DMUTANT=1  no tie-break between equal sequence numbers: two nodes get inside
 *   -DMUTANT=2  a deferred reply is never sent: somebody waits for ever
 *
 * A state of this model is a state of `soloist lab check`, one to one: each step is a d_step, there
 * is one process without locals, and nothing but the algorithm's state and the messages is stored.
 * Sets of nodes are bit masks. At most one REQUEST and one REPLY are under way from i to j (i asks
 * again only after j replied), so the bag of messages is two bits a channel. A REQUEST needs no
 * number: as long as it is under way, its sender waits and keeps `own`.
 *
 * A state in which nothing can happen although somebody was not served is an invalid end state.
 */

#ifndef N
#define N 4
#endif
#ifndef R
#define R 1
#endif
#ifndef MUTANT
#define MUTANT 0
#endif
#if N < 2 || N > 5
#error "N is 2 to 5"
#endif

byte left[N] = R;	/* how often node i may still ask */
byte own[N];		/* number of its latest request */
byte seen[N];		/* highest number it saw */
byte awaited[N];	/* whose replies it waits for; it waits exactly while there are any */
byte deferred[N];	/* to whom it owes a reply */
byte inside;
byte requests[N];	/* to whom a REQUEST of node i is under way */
byte replies[N];	/* to whom a REPLY of node i is under way */

#define BIT(i)		(1 << (i))
#define EVERYBODY	(BIT(N) - 1)
#define HAS(set, i)	((set) & BIT(i))
#define CLEAR(set, i)	set = set & ~BIT(i)

#ifdef FIFO
byte overdue[N];	/* where both are under way from i, and the REPLY set out first */
#define NOTE_OVERDUE(i)		overdue[i] = replies[i]
#define CLEAR_OVERDUE(i, j)	CLEAR(overdue[i], j)
#define REQUEST_IS_FIRST(i, j)	(!HAS(overdue[i], j))
#define REPLY_IS_FIRST(i, j)	(!HAS(requests[i], j) || HAS(overdue[i], j))
#else
#define NOTE_OVERDUE(i)		skip
#define CLEAR_OVERDUE(i, j)	skip
#define REQUEST_IS_FIRST(i, j)	true
#define REPLY_IS_FIRST(i, j)	true
#endif

#if MUTANT == 1
#define BEFORE(j, i)	(own[j] < own[i])
#else
#define BEFORE(j, i)	(own[j] < own[i] || (own[j] == own[i] && (j) < (i)))
#endif

inline ask(i) {
	left[i]--;
	seen[i]++;
	own[i] = seen[i];
	awaited[i] = EVERYBODY & ~BIT(i);
	NOTE_OVERDUE(i);
	assert(!requests[i]);
	requests[i] = awaited[i]
}

inline leave(i) {
	CLEAR(inside, i);
#if MUTANT != 2
	assert(!(replies[i] & deferred[i]));
	replies[i] = replies[i] | deferred[i];
#endif
	deferred[i] = 0
}

/* A REQUEST of i arrives at j. */
inline take_request(i, j) {
	CLEAR(requests[i], j);
	assert(!HAS(deferred[j], i));
	seen[j] = (own[i] > seen[j] -> own[i] : seen[j]);
	if
	:: HAS(inside, j) || (awaited[j] && BEFORE(j, i)) ->
		deferred[j] = deferred[j] | BIT(i)
	:: else ->
		assert(!HAS(replies[j], i));
		replies[j] = replies[j] | BIT(i)
	fi
}

/* A REPLY of i arrives at j. */
inline take_reply(i, j) {
	CLEAR(replies[i], j);
	CLEAR_OVERDUE(i, j);
	assert(HAS(awaited[j], i));
	CLEAR(awaited[j], i);
	if
	:: !awaited[j] ->
		assert(!inside);
		inside = BIT(j)
	:: else
	fi
}

#define NODE(i) \
	:: d_step { left[i] && !awaited[i] && !HAS(inside, i) -> ask(i) } \
	:: d_step { HAS(inside, i) -> leave(i) }

#define CHANNEL(i, j) \
	:: d_step { HAS(requests[i], j) && REQUEST_IS_FIRST(i, j) -> take_request(i, j) } \
	:: d_step { HAS(replies[i], j) && REPLY_IS_FIRST(i, j) -> take_reply(i, j) }

#define BETWEEN(i, j)	CHANNEL(i, j) CHANNEL(j, i)

#define SERVED(i)	(!left[i] && !awaited[i] && !HAS(inside, i))
#if N == 2
#define ALL_SERVED	(SERVED(0) && SERVED(1))
#elif N == 3
#define ALL_SERVED	(SERVED(0) && SERVED(1) && SERVED(2))
#elif N == 4
#define ALL_SERVED	(SERVED(0) && SERVED(1) && SERVED(2) && SERVED(3))
#else
#define ALL_SERVED	(SERVED(0) && SERVED(1) && SERVED(2) && SERVED(3) && SERVED(4))
#endif

active proctype cluster() {
	do
	NODE(0) NODE(1) BETWEEN(0, 1)
#if N > 2
	NODE(2) BETWEEN(0, 2) BETWEEN(1, 2)
#endif
#if N > 3
	NODE(3) BETWEEN(0, 3) BETWEEN(1, 3) BETWEEN(2, 3)
#endif
#if N > 4
	NODE(4) BETWEEN(0, 4) BETWEEN(1, 4) BETWEEN(2, 4) BETWEEN(3, 4)
#endif
	/* Leads to the same state again: only here may the run end. */
	:: d_step { ALL_SERVED -> skip }
	od
}
