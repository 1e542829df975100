(* Fences rise in each algorithm: the theorem of Fence.v, applied to each theorem on mutual
   exclusion.  *)
From Coq Require Import List Sorted.
Require Import Network Fence Order.
Require Raymond RaymondInitialize NaimiTrehel NeilsenMizuno SuzukiKasami LeLann ChaudhuriKaraata.
Require Neamatollahi NeamatollahiResting.
Require RicartAgrawala CarvalhoRoucairol Lamport LodhaKshemkalyani Maekawa.

Section Fences.
Context {N : Nodes}.
Variable c : channels.

Theorem raymond_fences_rise {strategies : Raymond.Strategies} root f :
  freachable Raymond.raymond c (Raymond.one_start root) f -> StronglySorted gt (log f).
Proof. apply fences_rise, Raymond.raymond_mutual_exclusion. Qed.

Theorem raymond_initialize_fences_rise {strategies : Raymond.Strategies} neighbours root held f :
  let A := RaymondInitialize.raymond_initialize neighbours in
  freachable A c
    (begins_sending (A:=A) (RaymondInitialize.initial root held) root (RaymondInitialize.first neighbours root)) f ->
  StronglySorted gt (log f).
Proof. intros A. apply fences_rise, RaymondInitialize.raymond_initialize_mutual_exclusion. Qed.

Theorem naimi_trehel_fences_rise root held f :
  freachable NaimiTrehel.naimi_trehel c (begins (A:=NaimiTrehel.naimi_trehel) (NaimiTrehel.initial root held)) f ->
  StronglySorted gt (log f).
Proof. apply fences_rise, NaimiTrehel.naimi_trehel_mutual_exclusion. Qed.

Theorem neilsen_mizuno_fences_rise towards root held f :
  freachable NeilsenMizuno.neilsen_mizuno c
    (begins (A:=NeilsenMizuno.neilsen_mizuno) (NeilsenMizuno.initial towards root held)) f ->
  StronglySorted gt (log f).
Proof. apply fences_rise, NeilsenMizuno.neilsen_mizuno_mutual_exclusion. Qed.

Theorem suzuki_kasami_fences_rise peers in_turn root held f :
  freachable (SuzukiKasami.suzuki_kasami peers in_turn) c
    (begins (A:=SuzukiKasami.suzuki_kasami peers in_turn) (SuzukiKasami.initial root held)) f ->
  StronglySorted gt (log f).
Proof. apply fences_rise, SuzukiKasami.suzuki_kasami_mutual_exclusion. Qed.

Theorem le_lann_fences_rise right resting_place root held f :
  freachable (LeLann.le_lann right resting_place) c
    (begins_sending (A:=LeLann.le_lann right resting_place) (LeLann.initial right resting_place root held)
       root (snd (LeLann.first right resting_place root held))) f ->
  StronglySorted gt (log f).
Proof. apply fences_rise, LeLann.le_lann_mutual_exclusion. Qed.

Theorem neamatollahi_fences_rise as_published alone right rows columns row_length position in_row in_row_below
    depth root held f :
  let A := Neamatollahi.neamatollahi as_published alone right rows columns row_length position in_row
             in_row_below depth in
  let start := Neamatollahi.first as_published alone right rows columns row_length position in_row
                 in_row_below depth root held in
  freachable A c
    (begins_sending (A:=A) (Neamatollahi.initial as_published alone right rows columns row_length position
       in_row in_row_below depth root held) root (snd start)) f ->
  StronglySorted gt (log f).
Proof. intros A start. apply fences_rise, Neamatollahi.neamatollahi_mutual_exclusion. Qed.

Theorem neamatollahi_resting_fences_rise one_row right is_home is_gate gate_below depth root held f :
  let A := NeamatollahiResting.neamatollahi_resting one_row right is_home is_gate gate_below depth in
  freachable A c (begins (A:=A) (NeamatollahiResting.initial root held)) f ->
  StronglySorted gt (log f).
Proof. intros A. apply fences_rise, NeamatollahiResting.neamatollahi_resting_mutual_exclusion. Qed.

Theorem chaudhuri_karaata_fences_rise as_published sides head_towards towards_head towards_member towards is_head
    root held f :
  (forall n, towards_member n n = None) ->
  (forall x y, is_head x = true -> is_head y = true -> towards x = None -> towards y = None -> x = y) ->
  (is_head root = true -> towards root = None) ->
  let A := ChaudhuriKaraata.chaudhuri_karaata as_published sides head_towards towards_head towards_member in
  freachable A c (begins (A:=A) (ChaudhuriKaraata.initial towards is_head root held)) f ->
  StronglySorted gt (log f).
Proof. intros H1 H2 H3 A. apply fences_rise. intros g. now apply ChaudhuriKaraata.chaudhuri_karaata_mutual_exclusion. Qed.

Theorem ricart_agrawala_fences_rise {O : NodeOrder N} peers root held f :
  (forall n x, In x (peers n) <-> x <> n) -> (forall n, NoDup (peers n)) ->
  let A := RicartAgrawala.ricart_agrawala peers in
  freachable A c (begins (A:=A) (RicartAgrawala.initial root held)) f ->
  StronglySorted gt (log f).
Proof. intros H1 H2 A. apply fences_rise. intros g. now apply RicartAgrawala.ricart_agrawala_mutual_exclusion. Qed.

Theorem carvalho_roucairol_fences_rise {O : NodeOrder N} peers has root held f :
  (forall n x, In x (peers n) <-> x <> n) -> (forall n, NoDup (peers n)) ->
  (forall x y, x <> y -> has x y = true -> has y x = false) ->
  let A := CarvalhoRoucairol.carvalho_roucairol peers in
  freachable A c (begins (A:=A) (CarvalhoRoucairol.initial has root held)) f ->
  StronglySorted gt (log f).
Proof.
  intros H1 H2 H3 A. apply fences_rise. intros g.
  now apply CarvalhoRoucairol.carvalho_roucairol_mutual_exclusion.
Qed.

Theorem lamport_fences_rise {O : NodeOrder N} spare_acks peers root held f :
  (forall n x, In x (peers n) <-> x <> n) -> (forall n, NoDup (peers n)) ->
  let A := Lamport.lamport spare_acks peers in
  freachable A Fifo (begins (A:=A) (Lamport.initial root held)) f ->
  StronglySorted gt (log f).
Proof. intros H1 H2 A. apply fences_rise. intros g. now apply Lamport.lamport_mutual_exclusion. Qed.

Theorem lodha_kshemkalyani_fences_rise {O : NodeOrder N} clock_everywhere peers root held f :
  (forall n x, In x (peers n) <-> x <> n) -> (forall n, NoDup (peers n)) ->
  let A := LodhaKshemkalyani.lodha_kshemkalyani clock_everywhere peers in
  freachable A Fifo (begins (A:=A) (LodhaKshemkalyani.initial root held)) f ->
  StronglySorted gt (log f).
Proof.
  intros H1 H2 A. apply fences_rise. intros g.
  now apply LodhaKshemkalyani.lodha_kshemkalyani_mutual_exclusion.
Qed.

Theorem maekawa_fences_rise {O : NodeOrder N} members depth root held f :
  (forall n, NoDup (members n)) -> (forall x y, exists m, In m (members x) /\ In m (members y)) ->
  let A := Maekawa.maekawa members depth in
  freachable A c (begins (A:=A) (Maekawa.initial members root held)) f ->
  StronglySorted gt (log f).
Proof. intros H1 H2 A. apply fences_rise. intros g. now apply Maekawa.maekawa_mutual_exclusion. Qed.
End Fences.
