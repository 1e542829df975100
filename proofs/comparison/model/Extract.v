(* The handlers as OCaml modules, to be compared with the Rust code.  *)
From Coq Require Import Arith Extraction ExtrOcamlBasic ExtrOcamlNatInt ExtrOcamlZInt.
Require Import Network Order.
Require Raymond RaymondInitialize NaimiTrehel NeilsenMizuno SuzukiKasami LeLann ChaudhuriKaraata
  Neamatollahi NeamatollahiResting.
Require RicartAgrawala CarvalhoRoucairol Lamport LodhaKshemkalyani Maekawa.
Extraction Language OCaml.

(* Node 0, node 1, ... *)
Definition numbered : Nodes := {| node := nat; node_eq := Nat.eq_dec |}.

Lemma same (a b : nat) : a = b -> a = b.
Proof. auto. Qed.
Definition by_number : NodeOrder numbered := {| rank := (fun n => n) : @node numbered -> nat; rank_inj := same |}.

Separate Extraction numbered by_number
  Raymond.do_request Raymond.do_release Raymond.do_receive Raymond.initial
  RaymondInitialize.ido_request RaymondInitialize.ido_release RaymondInitialize.ido_receive
  RaymondInitialize.initial RaymondInitialize.first
  NaimiTrehel.do_request NaimiTrehel.do_release NaimiTrehel.do_receive NaimiTrehel.initial
  NeilsenMizuno.do_request NeilsenMizuno.do_release NeilsenMizuno.do_receive NeilsenMizuno.initial
  SuzukiKasami.do_request SuzukiKasami.do_release SuzukiKasami.do_receive SuzukiKasami.initial
  LeLann.do_request LeLann.do_release LeLann.do_receive LeLann.initial LeLann.first
  Neamatollahi.do_request Neamatollahi.do_release Neamatollahi.do_receive Neamatollahi.initial Neamatollahi.first
  NeamatollahiResting.do_request NeamatollahiResting.do_release NeamatollahiResting.do_receive
  NeamatollahiResting.initial
  ChaudhuriKaraata.do_request ChaudhuriKaraata.do_release ChaudhuriKaraata.do_receive ChaudhuriKaraata.initial
  RicartAgrawala.do_request RicartAgrawala.do_release RicartAgrawala.do_receive RicartAgrawala.initial
  CarvalhoRoucairol.do_request CarvalhoRoucairol.do_release CarvalhoRoucairol.do_receive CarvalhoRoucairol.initial
  Lamport.do_request Lamport.do_release Lamport.do_receive Lamport.initial
  LodhaKshemkalyani.do_request LodhaKshemkalyani.do_release LodhaKshemkalyani.do_receive
  LodhaKshemkalyani.initial
  Maekawa.do_request Maekawa.do_release Maekawa.do_receive Maekawa.initial.
