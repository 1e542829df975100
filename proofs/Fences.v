(* Fences rise in each algorithm: the theorem of Fence.v, applied to each theorem on mutual
   exclusion.  *)
From Coq Require Import List Sorted.
Require Import Network Fence.
Require Raymond NaimiTrehel NeilsenMizuno SuzukiKasami LeLann.

Section Fences.
Context {N : Nodes}.
Variable c : channels.

Theorem raymond_fences_rise {strategies : Raymond.Strategies} root f :
  freachable Raymond.raymond c (Raymond.one_start root) f -> StronglySorted gt (log f).
Proof. apply fences_rise, Raymond.raymond_mutual_exclusion. Qed.

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
End Fences.
