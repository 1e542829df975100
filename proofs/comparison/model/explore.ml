(* Visits every reachable state of a small cluster, and prints each distinct call of a handler once:
   node, state, event, next state, messages sent. Only the model decides what happens. *)
module List = Stdlib.List

type ('s, 'm) model = {
  initial : int -> bool -> int -> 's; (* where the token starts, whether that node is inside, node *)
  first : int -> bool -> (int * 'm) list; (* what that node sends at the start *)
  request : int -> 's -> ('s * (int * 'm) list) option;
  release : int -> 's -> ('s * (int * 'm) list) option;
  receive : int -> 's -> int -> 'm -> 's * (int * 'm) list;
  tidy : 's -> 's; (* replaces functions by tables *)
  state : int -> 's -> string;
  message : 'm -> string;
}

type case = {
  nodes : int;
  fifo : bool;
  requests : int list; (* how often each node may request; less than 0: always *)
  roots : int list;
}

(* Numbers for texts, so that the key of a state of the cluster is short. *)
let numbers : (string, int) Hashtbl.t = Hashtbl.create 10000
let number text =
  match Hashtbl.find_opt numbers text with
  | Some n -> n
  | None ->
      let n = Hashtbl.length numbers in
      Hashtbl.add numbers text n;
      n

type ('s, 'm) packet = { from : int; dest : int; content : 'm; text : string; id : int }
type ('s, 'm) local = { value : 's; show : string; key : int }

let run (model : ('s, 'm) model) (case : case) =
  let local n value =
    let value = model.tidy value in
    let show = model.state n value in
    { value; show; key = number show } in
  let packet from (dest, content) =
    let text = model.message content in
    { from; dest; content; text; id = number text } in
  (* Channels that preserve order are lists, oldest first; others are bags. *)
  let order a b =
    let c = compare (a.from, a.dest) (b.from, b.dest) in
    if c <> 0 || case.fifo then c else compare a.id b.id in
  let key (nodes, net, left) =
    let b = Buffer.create 64 in
    let add i = Buffer.add_string b (string_of_int i); Buffer.add_char b ' ' in
    Array.iter (fun l -> add l.key) nodes;
    List.iter (fun p -> add p.from; add p.dest; add p.id) net;
    List.iter add left;
    Buffer.contents b in
  let seen = Hashtbl.create 100000 and todo = Queue.create () in
  let visit s =
    let k = key s in
    if not (Hashtbl.mem seen k) then (Hashtbl.add seen k (); Queue.add s todo) in
  let calls = Hashtbl.create 100000 and steps = ref 0 in
  let sends out = String.concat "; " (List.map (fun p -> Printf.sprintf "%d: %s" p.dest p.text) out) in
  let call n before event after out =
    incr steps;
    let line = Printf.sprintf "%d | %s | %s | %s | %s" n before.show event after.show (sends out) in
    if not (Hashtbl.mem calls line) then (Hashtbl.add calls line (); print_endline line) in
  List.iter (fun root -> List.iter (fun held ->
    let nodes = Array.init case.nodes (fun n -> local n (model.initial root held n)) in
    let out = List.map (packet root) (model.first root held) in
    Array.iteri (fun n l ->
      Printf.printf "start %d %b | %d | %s | %s\n" root held n l.show (if n = root then sends out else "")) nodes;
    visit (nodes, List.stable_sort order out, case.requests)) [false; true]) case.roots;
  while not (Queue.is_empty todo) do
    let (nodes, net, left) = Queue.pop todo in
    let next n event (value, out) net left =
      let after = local n value and out = List.map (packet n) out in
      call n nodes.(n) event after out;
      let nodes' = Array.copy nodes in
      nodes'.(n) <- after;
      visit (nodes', List.stable_sort order (net @ out), left) in
    Array.iteri (fun n l ->
      if List.nth left n <> 0 then
        (match model.request n l.value with
         | Some r -> next n "request" r net (List.mapi (fun i k -> if i = n && k > 0 then k - 1 else k) left)
         | None -> ());
      match model.release n l.value with
      | Some r -> next n "release" r net left
      | None -> ()) nodes;
    let rec deliver earlier = function
      | [] -> ()
      | p :: later ->
          let same q = q.from = p.from && q.dest = p.dest && (case.fifo || q.id = p.id) in
          if not (List.exists same earlier) then
            next p.dest (Printf.sprintf "from %d: %s" p.from p.text)
              (model.receive p.dest nodes.(p.dest).value p.from p.content)
              (List.rev_append earlier later) left;
          deliver (p :: earlier) later in
    deliver [] net
  done;
  Printf.printf "total %d %d\n" (Hashtbl.length seen) !steps
