/* Raymond 1989, sections 2 and 3, with the transitions of crates/algorithms/src/raymond/mod.rs without
 * variants. Node 0 has the privilege at the start; any message under way may arrive next.
 *
 *   -DN=5       nodes, 2 to 5
 *   -DR=2       how often each node may ask
 *   -DLINE      on a line (`--shape line`); else on a binary tree (`--shape kary:2`)
 *   -DMUTANT=1  who gives the privilege away keeps it too, and sends it twice: two nodes get inside
 *   -DMUTANT=2  who gives the privilege away does not ask for it again: somebody waits for ever
 *
 * A state of this model is a state of `soloist lab check`, one to one: each step is a d_step, there
 * is one process without locals, and nothing but the algorithm's state and the messages is stored.
 * A flag a node is a bit of a mask. At most one REQUEST and one PRIVILEGE are under way along an
 * edge in one direction, so the bag of messages is four bits an edge, kept with its lower node.
 *
 * A state in which nothing can happen although somebody was not served is an invalid end state.
 */

#ifndef N
#define N 5
#endif
#ifndef R
#define R 2
#endif
#ifndef MUTANT
#define MUTANT 0
#endif
#if N < 2 || N > 5
#error "N is 2 to 5"
#endif

#ifdef LINE
#define PARENT(i)	((i) - 1)
#define TOWARDS_0	{ 0, 0, 1, 2, 3 }
#else
#define PARENT(i)	(((i) - 1) / 2)
#define TOWARDS_0	{ 0, 0, 0, 1, 1 }
#endif

byte left[N] = R;		/* how often node i may still ask */
byte holder[N] = TOWARDS_0;	/* HOLDER */
short queue[N];			/* REQUEST_Q: three bits an entry, the node plus 1, the head lowest */
byte waiting;			/* who is in its own REQUEST_Q */
byte inside;			/* USING */
byte asked;			/* ASKED */
byte requests_up;		/* REQUEST from i to its parent */
byte requests_down;		/* REQUEST to i from its parent */
byte privilege_up;
byte privilege_down;

#define BIT(i)		(1 << (i))
#define HAS(set, i)	((set) & BIT(i))
#define SET(set, i)	set = set | BIT(i)
#define CLEAR(set, i)	set = set & ~BIT(i)

/* A node has at most three neighbours here, so that its queue has at most four entries. */
#define ENTRIES(q)	(((q) > 0) + ((q) > 7) + ((q) > 63) + ((q) > 511))
#define HEAD(q)		(((q) & 7) - 1)

inline push(i, who) {
	assert(queue[i] < 512);
	queue[i] = queue[i] | (((who) + 1) << (3 * ENTRIES(queue[i])))
}

/* The edge to the parent or the one to a child. */
inline send(i, to, up, down) {
	if
	:: i > 0 && to == PARENT(i) ->
		assert(!HAS(up, i));
		SET(up, i)
	:: else ->
		assert(PARENT(to) == i && !HAS(down, to));
		SET(down, to)
	fi
}

/* ASSIGN_PRIVILEGE, section 3.2. The head leaves the queue last, so that no variable is needed for it. */
inline assign_privilege(i) {
	if
	:: holder[i] == i && !HAS(inside, i) && queue[i] && HEAD(queue[i]) == i ->
		assert(!inside);
		CLEAR(waiting, i);
		CLEAR(asked, i);
		SET(inside, i);
		queue[i] = queue[i] >> 3
	:: holder[i] == i && !HAS(inside, i) && queue[i] && HEAD(queue[i]) != i ->
		send(i, HEAD(queue[i]), privilege_up, privilege_down);
#if MUTANT != 1
		holder[i] = HEAD(queue[i]);
#endif
#if MUTANT == 2
		SET(asked, i);
#else
		CLEAR(asked, i);
#endif
		queue[i] = queue[i] >> 3
	:: else
	fi
}

/* MAKE_REQUEST, section 3.3. */
inline make_request(i) {
	if
	:: holder[i] != i && queue[i] && !HAS(asked, i) ->
		SET(asked, i);
		send(i, holder[i], requests_up, requests_down)
	:: else
	fi
}

/* The four events of section 3.4. */

inline ask(i) {
	left[i]--;
	SET(waiting, i);
	push(i, i);
	assign_privilege(i);
	make_request(i)
}

inline take_request(from, to, way, edge) {
	CLEAR(way, edge);
	assert(holder[to] != from || HAS(asked, to));
	push(to, from);
	assign_privilege(to);
	make_request(to)
}

inline take_privilege(from, to, way, edge) {
	CLEAR(way, edge);
	assert(holder[to] == from && HAS(asked, to));
	holder[to] = to;
	CLEAR(asked, to);
	assign_privilege(to);
	make_request(to)
}

inline leave(i) {
	CLEAR(inside, i);
	assign_privilege(i);
	make_request(i)
}

#define NODE(i) \
	:: d_step { left[i] && !HAS(waiting, i) && !HAS(inside, i) -> ask(i) } \
	:: d_step { HAS(inside, i) -> leave(i) }

/* The edge between i and its parent. */
#define EDGE(i) \
	:: d_step { HAS(requests_up, i) -> take_request(i, PARENT(i), requests_up, i) } \
	:: d_step { HAS(requests_down, i) -> take_request(PARENT(i), i, requests_down, i) } \
	:: d_step { HAS(privilege_up, i) -> take_privilege(i, PARENT(i), privilege_up, i) } \
	:: d_step { HAS(privilege_down, i) -> take_privilege(PARENT(i), i, privilege_down, i) }

#if N == 2
#define NOBODY_WILL_ASK	(!left[0] && !left[1])
#elif N == 3
#define NOBODY_WILL_ASK	(!left[0] && !left[1] && !left[2])
#elif N == 4
#define NOBODY_WILL_ASK	(!left[0] && !left[1] && !left[2] && !left[3])
#else
#define NOBODY_WILL_ASK	(!left[0] && !left[1] && !left[2] && !left[3] && !left[4])
#endif

active proctype cluster() {
	do
	NODE(0) NODE(1) EDGE(1)
#if N > 2
	NODE(2) EDGE(2)
#endif
#if N > 3
	NODE(3) EDGE(3)
#endif
#if N > 4
	NODE(4) EDGE(4)
#endif
	/* Leads to the same state again: only here may the run end. */
	:: d_step { NOBODY_WILL_ASK && !waiting && !inside -> skip }
	od
}
