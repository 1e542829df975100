(* The handlers as OCaml modules, to be compared with the Rust code.  *)
From Coq Require Import Arith Extraction ExtrOcamlBasic ExtrOcamlNatInt.
Require Import Network.
Require Raymond NaimiTrehel NeilsenMizuno SuzukiKasami LeLann.
Extraction Language OCaml.

(* Node 0, node 1, ... *)
Definition numbered : Nodes := {| node := nat; node_eq := Nat.eq_dec |}.

Separate Extraction numbered
  Raymond.do_request Raymond.do_release Raymond.do_receive Raymond.initial
  NaimiTrehel.do_request NaimiTrehel.do_release NaimiTrehel.do_receive NaimiTrehel.initial
  NeilsenMizuno.do_request NeilsenMizuno.do_release NeilsenMizuno.do_receive NeilsenMizuno.initial
  SuzukiKasami.do_request SuzukiKasami.do_release SuzukiKasami.do_receive SuzukiKasami.initial
  LeLann.do_request LeLann.do_release LeLann.do_receive LeLann.initial LeLann.first.
