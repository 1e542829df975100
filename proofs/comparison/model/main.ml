(* Reads a case from the command line, as KEY=VALUE, and explores it with the model of that name. The
   texts of states and messages are those that Rust prints with {:?}. *)
module List = Stdlib.List
open Network
open Explore

let args =
  List.map (fun a -> let i = String.index a '=' in
      (String.sub a 0 i, String.sub a (i + 1) (String.length a - i - 1)))
    (List.tl (Array.to_list Sys.argv))
let arg key = try List.assoc key args with Not_found -> failwith ("missing argument " ^ key)
let numbers_of text = if text = "" then [] else List.map int_of_string (String.split_on_char ',' text)
let table key = Array.of_list (numbers_of (arg key))
let variant name = List.mem name (String.split_on_char ',' (arg "variants"))
let nodes = int_of_string (arg "nodes")

let case = {
  nodes;
  fifo = arg "channels" = "fifo";
  requests = numbers_of (arg "requests");
  roots = numbers_of (arg "roots");
}

(* A node is a number; the extracted code does not know its type. *)
let cluster = Extract.numbered
let o : int -> node = Obj.repr
let n : node -> int = Obj.obj
let out l = List.map (fun (dest, m) -> (n dest, m)) l
let opt r = Option.map (fun (s, l) -> (s, out l)) r
let pair (s, l) = (s, out l)
let all = List.init nodes Fun.id
let peers me = List.map o (List.filter (fun x -> x <> n me) all)

let spf = Printf.sprintf
let list f l = "[" ^ String.concat ", " (List.map f l) ^ "]"
let node x = string_of_int (n x)
let some f = function Some x -> spf "Some(%s)" (f x) | None -> "None"
let phase = function Idle -> "Idle" | Waiting -> "Waiting" | Inside -> "Inside"
let tidy_set f = let a = Array.init nodes (fun i -> f (o i)) in fun x -> a.(n x)
let each f = list (fun i -> string_of_int (f (o i))) all

let nothing _ _ = []
let same s = s

(* The neighbour of [me] on the way to [root], by a table with one row per node. *)
let towards root me = o (table "next_hop").(n me * nodes + root)

let raymond () =
  let open Raymond in
  let strategies = { greedy = variant "greedy"; piggyback = variant "piggyback" } in
  run {
    initial = (fun root held me -> initial cluster (towards root) (o root) held (o me));
    first = nothing;
    request = (fun me s -> opt (do_request cluster strategies (o me) s));
    release = (fun me s -> opt (do_release cluster strategies (o me) s));
    receive = (fun me s from m -> pair (do_receive cluster strategies (o me) s (o from) m));
    tidy = same;
    state = (fun _ s -> spf "holder: Some(%s), request_q: %s, phase: %s, asked: %b"
      (node s.holder) (list node s.queue) (phase s.ph) s.asked);
    message = (function Request -> "Request" | Privilege -> "Privilege"
      | PrivilegeRequest -> "PrivilegeRequest");
  } case

(* Rust represents nil by the node itself. *)
let naimi_trehel () =
  let open NaimiTrehel in
  let or_self me = function Some x -> node x | None -> string_of_int me in
  run {
    initial = (fun root held me -> initial cluster (o root) held (o me));
    first = nothing;
    request = (fun me s -> opt (do_request cluster (o me) s));
    release = (fun me s -> opt (do_release cluster (o me) s));
    receive = (fun me s from m -> pair (do_receive cluster (o me) s (o from) m));
    tidy = same;
    state = (fun me s -> spf "father: %s, next: %s, phase: %s, token_present: %b"
      (or_self me s.father) (or_self me s.next) (phase s.ph) s.token);
    message = (function Request origin -> spf "Request(%s)" (node origin) | Token -> "Token");
  } case

let neilsen_mizuno () =
  let open NeilsenMizuno in
  run {
    initial = (fun root held me -> initial cluster (towards root) (o root) held (o me));
    first = nothing;
    request = (fun me s -> opt (do_request cluster (o me) s));
    release = (fun me s -> opt (do_release cluster (o me) s));
    receive = (fun me s from m -> pair (do_receive cluster (o me) s (o from) m));
    tidy = same;
    state = (fun _ s -> spf "last: %s, follow: %s, phase: %s, holding: %b"
      (some node s.last) (some node s.follow) (phase s.ph) s.holding);
    message = (function Request origin -> spf "Request(%s)" (node origin) | Privilege -> "Privilege");
  } case

let suzuki_kasami () =
  let open SuzukiKasami in
  let in_turn me = List.init (nodes - 1) (fun i -> o ((n me + 1 + i) mod nodes)) in
  let token t = spf "Token { ln: %s, queue: %s }" (each t.ln) (list node t.queue) in
  run {
    initial = (fun root held me -> initial cluster (o root) held (o me));
    first = nothing;
    request = (fun me s -> opt (do_request cluster peers (o me) s));
    release = (fun me s -> opt (do_release cluster in_turn (o me) s));
    receive = (fun me s from m -> pair (do_receive cluster (o me) s (o from) m));
    tidy = (fun s -> { s with rn = tidy_set s.rn;
      token = Option.map (fun t -> { t with ln = tidy_set t.ln }) s.token });
    state = (fun _ s -> spf "phase: %s, rn: %s, token: %s" (phase s.ph) (each s.rn) (some token s.token));
    message = (function Request k -> spf "Request(%d)" k | Privilege t -> spf "Privilege(%s)" (token t));
  } case

let le_lann () =
  let open LeLann in
  let right me = o (table "right").(n me) in
  let model root =
    let rests = if variant "resting" then Some (o root) else None in {
    initial = (fun root held me -> initial cluster right rests (o root) held (o me));
    first = (fun root held -> out (snd (first cluster right rests (o root) held)));
    request = (fun me s -> opt (do_request cluster right rests (o me) s));
    release = (fun me s -> opt (do_release cluster right rests (o me) s));
    receive = (fun me s from m -> pair (do_receive cluster right rests (o me) s (o from) m));
    tidy = same;
    state = (fun _ s -> spf "phase: %s, token: %b, alerted: %b, again: %b" (phase s.ph) s.token s.alerted s.again);
    message = (function Request -> "Request" | Token -> "Token"
      | RestingToken again -> spf "RestingToken { again: %b }" again);
  } in
  (* The resting place is a parameter, so each start is a case of its own. *)
  run (model (List.hd case.roots)) case

(* Tables with one row per node; a negative number is none. *)
let optional i = if i < 0 then None else Some (o i)
let row_of key me x = optional (table key).(n me * nodes + n x)
(* One list per node: numbers separated by points, lists by semicolons. *)
let lists key =
  let numbers text = if text = "" then [] else List.map int_of_string (String.split_on_char '.' text) in
  let a = Array.of_list (List.map numbers (String.split_on_char ';' (arg key))) in
  fun me -> List.map o a.(n me)
let members_of f = "{" ^ String.concat ", " (List.filter_map (fun i -> if f (o i) then Some (string_of_int i) else None) all) ^ "}"
let request_id (k, x) = spf "(%d,%s)" k (node x)
let order = Extract.by_number

(* Calls that nest in a narrow torus; more are never needed. *)
let depth = 100
let in_columns key me column = o (table key).(n me * int_of_string (arg "columns") + column)

let neamatollahi_circulating () =
  let open Neamatollahi in
  let published = variant "as-published" and alone = nodes = 1 in
  let right me = o (table "right").(n me) in
  let rows = int_of_string (arg "rows") and columns = int_of_string (arg "columns") in
  let row_length me = (table "row_length").(n me) and position me = (table "position").(n me) in
  let in_row = in_columns "in_row" and below = in_columns "in_row_below" in
  let token t = spf "Token { row_counter: %d, col_counter: %d, chg_col: %b, column: %d }"
    t.row_counter t.col_counter t.chg_col t.column in
  run {
    initial = (fun root held me -> initial cluster published alone right rows columns row_length position
      in_row below depth (o root) held (o me));
    first = (fun root held -> out (snd (first cluster published alone right rows columns row_length position
      in_row below depth (o root) held)));
    request = (fun me s -> opt (do_request cluster right (o me) s));
    release = (fun me s -> opt (do_release cluster published alone right rows columns row_length position
      in_row below depth (o me) s));
    receive = (fun me s from m -> pair (do_receive cluster published alone right rows columns row_length position
      in_row below depth (o me) s (o from) m));
    tidy = same;
    state = (fun _ s -> spf "phase: %s, alert: %s, late: %s, token: %s, resting: None" (phase s.ph)
      (some node s.alert) (some node s.late) (some token s.token));
    message = (function Request x -> spf "Request(%s)" (node x) | Token t -> spf "Token(%s)" (token t));
  } case

let neamatollahi_resting () =
  let open NeamatollahiResting in
  (* Home is a parameter, so each start is a case of its own. *)
  let home = o (List.hd case.roots) in
  let right me = o (table "right").(n me) in
  let one_row = int_of_string (arg "rows") = 1 in
  let column = (table "position").(n home) in
  let is_home me = me = home in
  let is_gate me = in_columns "in_row" me column = me in
  let gate_below me = in_columns "in_row_below" me column in
  let token t = spf "RestingToken { in_row: %b, row_again: %b, again: %b }" t.in_row t.row_again t.again in
  run {
    initial = (fun root held me -> initial cluster (o root) held (o me));
    first = nothing;
    request = (fun me s -> opt (do_request cluster one_row right is_home is_gate gate_below depth (o me) s));
    release = (fun me s -> opt (do_release cluster one_row right is_home gate_below depth (o me) s));
    receive = (fun me s from m ->
      pair (do_receive cluster one_row right is_home is_gate gate_below depth (o me) s (o from) m));
    tidy = same;
    state = (fun _ s -> spf "phase: %s, alert: None, late: None, token: None, resting: Some(Resting { alerted: %b, blocked: %b, token_in_row: %b, called: %b, token: %s })"
      (phase s.ph) s.alerted s.blocked s.token_in_row s.called (some token s.token));
    message = (function Request x -> spf "Request(%s)" (node x) | Token t -> spf "RestingToken(%s)" (token t)
      | Call -> "Call");
  } case

let raymond_initialize () =
  let open RaymondInitialize in
  let strategies = { Raymond.greedy = variant "greedy"; piggyback = variant "piggyback" } in
  let neighbours = lists "neighbours" in
  run {
    initial = (fun root held me -> initial cluster (o root) held (o me));
    first = (fun root _ -> out (first cluster neighbours (o root)));
    request = (fun me s -> opt (ido_request cluster strategies (o me) s));
    release = (fun me s -> opt (ido_release cluster strategies (o me) s));
    receive = (fun me s from m -> pair (ido_receive cluster strategies neighbours (o me) s (o from) m));
    tidy = same;
    state = (fun _ s -> let c = s.core in spf "holder: %s, request_q: %s, phase: %s, asked: %b"
      (if s.known then some node (Some c.Raymond.holder) else "None")
      (list node c.Raymond.queue) (phase c.Raymond.ph) c.Raymond.asked);
    message = (function Initialize -> "Initialize" | Plain Raymond.Request -> "Request"
      | Plain Raymond.Privilege -> "Privilege" | Plain Raymond.PrivilegeRequest -> "PrivilegeRequest");
  } case

let chaudhuri_karaata () =
  let open ChaudhuriKaraata in
  let published = variant "as-published" and sides = lists "sides" in
  let head_towards = row_of "head_towards" and towards_member = row_of "towards_member" in
  let towards_head me = optional (table "towards_head").(n me) in
  let is_head me = towards_head me = None in
  let token = function
    | Red (towards, asked) -> spf "Red { towards: %s, asked: %b }" (node towards) asked
    | Green -> "Green"
    | Yellow granted -> spf "Yellow { granted: %s }" (node granted) in
  let head h = spf "Head { token: %s, queue: %s }" (token h.tok) (list node h.queue) in
  run {
    initial = (fun root held me -> initial cluster (fun x -> head_towards x (o root)) is_head (o root) held (o me));
    first = nothing;
    request = (fun me s -> opt (do_request cluster published sides head_towards towards_head towards_member (o me) s));
    release = (fun me s -> opt (do_release cluster published head_towards towards_head towards_member (o me) s));
    receive = (fun me s from m ->
      pair (do_receive cluster published sides head_towards towards_head towards_member (o me) s (o from) m));
    tidy = same;
    state = (fun _ s -> spf "phase: %s, head: %s" (phase s.ph) (some head s.hd));
    message = (function Request x -> spf "Request(%s)" (node x) | Permit x -> spf "Permit(%s)" (node x)
      | Interchange x -> spf "Interchange(%s)" (node x) | Release x -> spf "Release(%s)" (node x));
  } case

let ricart_agrawala () =
  let open RicartAgrawala in
  run {
    initial = (fun root held me -> initial cluster (o root) held (o me));
    first = nothing;
    request = (fun me s -> opt (do_request cluster peers (o me) s));
    release = (fun me s -> opt (do_release cluster peers (o me) s));
    receive = (fun me s from m -> pair (do_receive cluster order peers (o me) s (o from) m));
    tidy = (fun s -> { s with awaited = tidy_set s.awaited; deferred = tidy_set s.deferred });
    state = (fun _ s ->
      spf "phase: %s, my_sequence_number: %d, highest_sequence_number_seen: %d, awaited: %s, reply_deferred: %s"
        (phase s.ph) s.my s.seen (members_of s.awaited) (members_of s.deferred));
    message = (function Request k -> spf "Request(%d)" k | Reply -> "Reply");
  } case

let carvalho_roucairol () =
  let open CarvalhoRoucairol in
  let step root x = (n x + nodes - root) mod nodes in
  let has root x y = variant "staircase" && step root x < step root y in
  run {
    initial = (fun root held me -> initial cluster (has root) (o root) held (o me));
    first = nothing;
    request = (fun me s -> opt (do_request cluster peers (o me) s));
    release = (fun me s -> opt (do_release cluster peers (o me) s));
    receive = (fun me s from m -> pair (do_receive cluster order peers (o me) s (o from) m));
    tidy = (fun s -> { s with missing = tidy_set s.missing; deferred = tidy_set s.deferred });
    state = (fun _ s ->
      spf "phase: %s, my_sequence_number: %d, highest_sequence_number_seen: %d, missing: %s, reply_deferred: %s"
        (phase s.ph) s.my s.seen (members_of s.missing) (members_of s.deferred));
    message = (function Request k -> spf "Request(%d)" k | Reply -> "Reply");
  } case

let lamport () =
  let open Lamport in
  let spare = variant "spare-acks" in
  run {
    initial = (fun root held me -> initial cluster (o root) held (o me));
    first = nothing;
    request = (fun me s -> opt (do_request cluster order peers (o me) s));
    release = (fun me s -> opt (do_release cluster peers (o me) s));
    receive = (fun me s from m -> pair (do_receive cluster order spare peers (o me) s (o from) m));
    tidy = (fun s -> { s with heard = tidy_set s.heard });
    state = (fun _ s -> spf "phase: %s, clock: %d, my_timestamp: %d, shown_to_all: %d, queue: %s, heard_later: %s"
      (phase s.ph) s.clock s.my s.shown (list request_id s.queue) (members_of s.heard));
    message = (function Request t -> spf "Request { time: %d }" t | Ack t -> spf "Ack { time: %d }" t
      | Release (t, r) -> spf "Release { time: %d, request: %d }" t r);
  } case

let lodha_kshemkalyani () =
  let open LodhaKshemkalyaniPair in
  let open LodhaKshemkalyani in
  let everywhere = variant "clock-everywhere" in
  (* Rust names requests with their node, the model only with their number. *)
  let by me = List.map (fun (dest, m) -> (n dest, (o me, m))) in
  let own x = some (fun k -> request_id (k, x)) in
  (* Rust's checks remember which node started inside; the model does not need it. *)
  let keep started me (s, l) = ((started, s), by me l) in
  run {
    initial = (fun root held me ->
      ((if held then Some root else None), initial cluster (o root) held (o me)));
    first = nothing;
    request = (fun me (started, s) ->
      Option.map (keep started me) (do_request cluster peers (o me) s));
    release = (fun me (started, s) ->
      Option.map (keep started me) (do_release cluster order everywhere peers (o me) s));
    receive = (fun me (started, s) from (_, m) ->
      keep started me (do_receive cluster order everywhere peers (o me) s (o from) m));
    tidy = (fun (started, s) ->
      (started, { s with rv = tidy_set s.rv; deferred = tidy_set s.deferred }));
    state = (fun me (started, s) ->
      spf "started_inside: %s, phase: %s, my_sequence_number: %d, highest_sequence_number_seen: %d, rv: %s, lrq: %s, deferred: %s, last_satisfied: %s, done: %s"
        (some string_of_int started) (phase s.ph) s.my s.seen (members_of s.rv) (list request_id s.lrq) (members_of s.deferred)
        (own (o me) s.last) (some request_id s.coq_done));
    message = (fun (x, m) -> match m with
      | Request (k, r) -> spf "Request { request: %s, satisfied: %s, had_yours: None }" (request_id (k, x)) (own x r)
      | Reply (r, h) -> spf "Reply { satisfied: %s, highest: %d, errands: [] }" (own x r) h
      | Flush (r, h) -> spf "Flush { satisfied: %s, highest: %d, errands: [] }" (request_id (r, x)) h);
  } case

let maekawa () =
  let open Maekawa in
  let members = lists "members" in
  let standing = function SOpen -> "Open" | SLocked -> "Locked"
    | SLockedInquired -> "LockedInquired" | SInquired -> "Inquired" in
  run {
    initial = (fun root held me -> initial cluster members (o root) held (o me));
    first = nothing;
    request = (fun me s -> opt (do_request cluster order members depth (o me) s));
    release = (fun me s -> opt (do_release cluster order members depth (o me) s));
    receive = (fun me s from m -> pair (do_receive cluster order members depth (o me) s (o from) m));
    tidy = (fun s -> { s with at_member = tidy_set s.at_member });
    state = (fun me s ->
      spf "phase: %s, sequence_number: %d, highest_sequence_number_seen: %d, members: %s, failed: %b, locking_request: %s, inquired: %b, waiting_queue: %s"
        (phase s.ph) s.my s.seen (list (fun m -> standing (s.at_member m)) (members (o me))) s.failed
        (some request_id s.locking) s.inquired (list request_id s.waiting));
    message = (function Request k -> spf "Request(%d)" k | Locked k -> spf "Locked(%d)" k
      | Failed k -> spf "Failed(%d)" k | Inquire k -> spf "Inquire(%d)" k
      | Relinquish k -> spf "Relinquish(%d)" k | Release k -> spf "Release(%d)" k);
  } case

let () =
  match arg "algorithm" with
  | "raymond" -> if variant "initialize" then raymond_initialize () else raymond ()
  | "naimi-trehel" -> naimi_trehel ()
  | "neilsen-mizuno" -> neilsen_mizuno ()
  | "suzuki-kasami" -> suzuki_kasami ()
  | "le-lann" -> le_lann ()
  | "neamatollahi" -> if variant "resting" then neamatollahi_resting () else neamatollahi_circulating ()
  | "chaudhuri-karaata" -> chaudhuri_karaata ()
  | "ricart-agrawala" -> ricart_agrawala ()
  | "carvalho-roucairol" -> carvalho_roucairol ()
  | "lamport" -> lamport ()
  | "lodha-kshemkalyani" -> lodha_kshemkalyani ()
  | "maekawa" -> maekawa ()
  | other -> failwith ("no model of " ^ other)
