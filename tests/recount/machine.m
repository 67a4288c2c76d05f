-- The protocol of the machine in its base modes, written again in Murphi from what the rules mean.
-- `tests.recount.model` puts sizes, discipline and prompts in front: D, H, W, R, P, K, J, RESETS, PINNING, ABORTS,
-- PREEMPTS, INVALIDATE, EVICT, BLANK, and the functions length(r) and key_of(r, i).
--
-- Names: blocks and workers are scalarsets, so that rumur itself merges what differs in their names. Jobs stand in
-- their table by age, and a job that leaves it moves the younger ones up: they have no other id. At depth 1, with
-- output from all workers, there is one launched step at most.

type
  DB: scalarset(D);      -- device blocks
  HB: scalarset(H);      -- host blocks
  WK: scalarset(W);      -- workers
  RQ: 0..R-1;            -- requests
  POS: 0..P-1;           -- positions of a table
  JX: 0..J-1;            -- jobs, oldest first
  KEY: 0..K;             -- 0: none
  CONTENT: 0..2*K;       -- 0: never written; k: of key k; K + k: the same, from before an invalidate reset
  PHASE: enum { ABSENT, WAITING, LOADING, RUNNING, DRAINING, DONE };
  VIEW: enum { LIVE, ABANDONED, FORGOTTEN };
  PROGRESS: enum { QUEUED, LAUNCHED, COPIED, REPORTED };

var
  dref: array[DB] of 0..31; dkey: array[DB] of KEY; dq: array[0..D-1] of DB; dn: 0..D;
  href: array[HB] of 0..31; hkey: array[HB] of KEY; hq: array[0..H-1] of HB; hn: 0..H;
  dc: array[WK] of array[DB] of CONTENT;
  hc: array[WK] of array[HB] of CONTENT;
  req: array[RQ] of record
    phase: PHASE;
    table: array[POS] of DB;   -- undefined where the request holds nothing
    computed: 0..P;
    offered: 0..P;             -- leading blocks that stores have passed
    returns: boolean;          -- DRAINING: it will wait again
  end;
  job: array[JX] of record
    load: boolean;
    owner: 0..R;               -- R: nobody
    awaited: boolean;          -- its owner waits for it
    n: 0..P;
    dev: array[POS] of DB; host: array[POS] of HB; key: array[POS] of KEY;
    view: VIEW;
    progress: array[WK] of PROGRESS;
    fence: boolean;            -- later launches wait for its copies
    after_step: boolean;       -- its copies wait for the launched step
    after: array[JX] of boolean;
    before_step: boolean;      -- the launched step waits for its copies
  end;
  jn: 0..J;
  launched: boolean;
  ran: array[WK] of boolean;
  share: array[RQ] of record on: boolean; table: array[POS] of DB; start: 0..P; left: boolean; old: boolean; end;
  resets: 0..RESETS;

-- pools ---------------------------------------------------------------------------------------------------------

procedure d_release(b: DB); begin
  assert dref[b] > 0 "device block released twice";
  dref[b] := dref[b] - 1;
  if dref[b] = 0 then dq[dn] := b; dn := dn + 1; end;
end;

procedure h_release(b: HB); begin
  assert href[b] > 0 "host block released twice";
  href[b] := href[b] - 1;
  if href[b] = 0 then hq[hn] := b; hn := hn + 1; end;
end;

procedure d_touch(b: DB); var met: boolean; begin
  if dref[b] = 0 then
    met := false;
    for i: 0..D-1 do
      if i < dn then
        if met then dq[i-1] := dq[i]; elsif dq[i] = b then met := true; end;
      end;
    end;
    assert met "free device block outside the queue";
    undefine dq[dn-1];
    dn := dn - 1;
  end;
  dref[b] := dref[b] + 1;
end;

procedure h_touch(b: HB); var met: boolean; begin
  if href[b] = 0 then
    met := false;
    for i: 0..H-1 do
      if i < hn then
        if met then hq[i-1] := hq[i]; elsif hq[i] = b then met := true; end;
      end;
    end;
    assert met "free host block outside the queue";
    undefine hq[hn-1];
    hn := hn - 1;
  end;
  href[b] := href[b] + 1;
end;

function d_take(): DB; var b: DB; begin
  b := dq[0];
  d_touch(b);
  dkey[b] := 0;
  return b;
end;

function h_take(): HB; var b: HB; begin
  b := hq[0];
  h_touch(b);
  hkey[b] := 0;
  return b;
end;

function d_has(k: KEY): boolean; begin return exists b: DB do dkey[b] = k end; end;
function h_has(k: KEY): boolean; begin return exists b: HB do hkey[b] = k end; end;

-- jobs ----------------------------------------------------------------------------------------------------------

function everywhere(j: JX; least: PROGRESS): boolean; begin
  for w: WK do
    if least = COPIED & (job[j].progress[w] = QUEUED | job[j].progress[w] = LAUNCHED) then return false; end;
    if least = REPORTED & job[j].progress[w] != REPORTED then return false; end;
  end;
  return true;
end;

function is_queued(j: JX): boolean; begin return exists w: WK do job[j].progress[w] = QUEUED end; end;

function waits(r: RQ): boolean; begin
  for j: JX do if j < jn & job[j].owner = r & job[j].awaited then return true; end; end;
  return false;
end;

procedure waits_no_more(r: RQ); begin
  for j: JX do if j < jn & job[j].owner = r then job[j].awaited := false; end; end;
end;

procedure job_gone(gone: JX); begin
  for j: JX do if j >= gone & j + 1 < jn then job[j] := job[j+1]; end; end;
  jn := jn - 1;
  undefine job[jn];
  for j: JX do
    if j < jn then
      assert !(j < gone & job[j].after[gone]) "a job waits for one that is gone";
      for i: JX do if i >= gone & i + 1 < J then job[j].after[i] := job[j].after[i+1]; end; end;
      job[j].after[J-1] := false;
    end;
  end;
end;

-- What the job owns: pinning, all its blocks; fencing, those on the host.
procedure holdings_released(j: JX); var i: POS; begin
  for x: POS do
    i := P - 1 - x;
    if i < job[j].n then
      if PINNING = 1 then d_release(job[j].dev[i]); end;
      h_release(job[j].host[i]);
    end;
  end;
end;

procedure forget(j: JX); begin
  holdings_released(j);
  job[j].view := FORGOTTEN;
  job[j].fence := !everywhere(j, COPIED);
end;

-- requests ------------------------------------------------------------------------------------------------------

function holds_table(r: RQ): boolean; begin
  return req[r].phase = LOADING | req[r].phase = RUNNING | req[r].phase = DRAINING;
end;

function in_step(r: RQ): boolean; begin
  if !launched then return false; end;
  if !share[r].on then return false; end;
  return !share[r].left;
end;

procedure table_released(r: RQ); var i: POS; begin
  for x: POS do
    i := P - 1 - x;
    if i < length(r) then d_release(req[r].table[i]); end;
  end;
end;

procedure becomes(r: RQ; p: PHASE); begin
  req[r].phase := p;
  undefine req[r].table;
  req[r].computed := 0;
  req[r].offered := 0;
  req[r].returns := false;
end;

-- Blocks that the launched step still writes are from now on the step's.
procedure table_let_go(r: RQ; p: PHASE); begin
  if in_step(r) then share[r].left := true; else table_released(r); end;
  becomes(r, p);
end;

function load_of(r: RQ): 0..J; begin
  for j: JX do if j < jn & job[j].load & job[j].owner = r & job[j].awaited then return j; end; end;
  return J;
end;

procedure loading_left(r: RQ; p: PHASE); var j: 0..J; begin
  j := load_of(r);
  if j = J then table_let_go(r, p);
  elsif is_queued(j) then
    holdings_released(j);
    job_gone(j);
    table_let_go(r, p);
  elsif PINNING = 1 then
    job[j].view := ABANDONED;
    job[j].awaited := false;
    table_let_go(r, p);
  else
    job[j].view := ABANDONED;
    req[r].phase := DRAINING;
    req[r].returns := p = WAITING;
  end;
end;

-- contents ------------------------------------------------------------------------------------------------------

function step_writes(b: DB): boolean; begin
  for r: RQ do if share[r].on then
    for i: POS do if i >= share[r].start & i < length(r) & share[r].table[i] = b then return true; end; end;
  end; end;
  return false;
end;

-- Some operation, or somebody who hits the block, may still read what the worker's copy of it holds now.
function d_read(w: WK; b: DB): boolean; begin
  if dkey[b] != 0 then return true; end;
  for r: RQ do
    if req[r].phase = RUNNING | req[r].phase = LOADING then
      for i: POS do if i < req[r].computed & req[r].table[i] = b then return true; end; end;
    end;
    if launched & share[r].on then
      for i: POS do
        if i < length(r) & share[r].table[i] = b then
          if ran[w] & !share[r].left then return true; end;
          if !ran[w] & i < share[r].start then return true; end;
        end;
      end;
    end;
  end;
  for j: JX do if j < jn then
    for i: POS do if i < job[j].n & job[j].dev[i] = b then
      if job[j].load then
        if job[j].view = LIVE & (job[j].progress[w] = COPIED | job[j].progress[w] = REPORTED) then return true; end;
      elsif job[j].progress[w] = LAUNCHED then
        if !(job[j].after_step & !ran[w] & step_writes(b)) then return true; end;
      end;
    end; end;
  end; end;
  return false;
end;

function h_read(w: WK; b: HB): boolean; begin
  if hkey[b] != 0 then return true; end;
  for j: JX do if j < jn then
    for i: POS do if i < job[j].n & job[j].host[i] = b then
      if job[j].progress[w] = QUEUED | job[j].progress[w] = LAUNCHED then
        if job[j].load then return true; end;
      elsif !job[j].load & job[j].view = LIVE then return true; end;
    end; end;
  end; end;
  return false;
end;

procedure settle(); begin
  if BLANK = 1 then
    for w: WK do
      for b: DB do if !d_read(w, b) then dc[w][b] := 0; end; end;
      for b: HB do if !h_read(w, b) then hc[w][b] := 0; end; end;
    end;
  end;
end;

-- admission -----------------------------------------------------------------------------------------------------

function d_hits(r: RQ): 0..P; begin
  for i: POS do if i < length(r) then
    if !d_has(key_of(r, i)) then return i; end;
  end; end;
  return length(r);
end;

function fits(r: RQ): boolean; var hits: 0..P; free: 0..D; begin
  hits := d_hits(r);
  free := dn;
  for i: POS do if i < hits then
    for b: DB do if dkey[b] = key_of(r, i) & dref[b] = 0 then free := free - 1; end; end;
  end; end;
  return length(r) - hits <= free;
end;

-- launch --------------------------------------------------------------------------------------------------------

function on_its_way(k: KEY): boolean; begin
  for j: JX do if j < jn & !job[j].load & job[j].view = LIVE then
    for i: POS do if i < job[j].n & job[j].key[i] = k then return true; end; end;
  end; end;
  return false;
end;

function wants_compute(r: RQ): boolean; begin return req[r].phase = RUNNING & req[r].computed < length(r); end;

function has_store(r: RQ): boolean; begin
  if hn = 0 | req[r].phase != RUNNING then return false; end;
  for i: POS do if i >= req[r].offered & i < length(r) then
    if !h_has(key_of(r, i)) & !on_its_way(key_of(r, i)) then return true; end;
  end; end;
  return false;
end;

function has_work(): boolean; begin
  for r: RQ do if wants_compute(r) | has_store(r) then return true; end; end;
  for j: JX do if j < jn then
    if is_queued(j) then return true; end;
  end; end;
  return false;
end;

-- The job was there before the launch, and touches a block with it that one of them writes. first: the first of the
-- jobs that this launch makes.
function conflicts(j: JX; first: 0..J): boolean; begin
  for i: POS do if i < job[j].n then
    for r: RQ do if launched & share[r].on then
      for x: POS do if x < length(r) & share[r].table[x] = job[j].dev[i] then
        if job[j].load | x >= share[r].start then return true; end;
      end; end;
    end; end;
    for o: JX do if o < jn then
      if o >= first | is_queued(o) then
        for x: POS do if x < job[o].n then
          if job[o].dev[x] = job[j].dev[i] & (job[j].load | job[o].load) then return true; end;
          if job[o].host[x] = job[j].host[i] & !(job[j].load & job[o].load) then return true; end;
        end; end;
      end;
    end; end;
  end; end;
  return false;
end;

-- start ---------------------------------------------------------------------------------------------------------

startstate begin
  undefine dq; undefine hq; undefine job; undefine ran; undefine share;
  dn := 0; hn := 0; jn := 0; launched := false; resets := RESETS;
  for b: DB do dref[b] := 0; dkey[b] := 0; dq[dn] := b; dn := dn + 1; end;
  for b: HB do href[b] := 0; hkey[b] := 0; hq[hn] := b; hn := hn + 1; end;
  for w: WK do
    for b: DB do dc[w][b] := 0; end;
    for b: HB do hc[w][b] := 0; end;
  end;
  for r: RQ do becomes(r, ABSENT); end;
end;

-- the scheduler and its clients -----------------------------------------------------------------------------------

ruleset r: RQ do

rule "submit" req[r].phase = ABSENT ==> begin req[r].phase := WAITING; end;

rule "admit" req[r].phase = WAITING & !waits(r) & fits(r) ==>
var hits: 0..P; upto: 0..P; begin
  hits := d_hits(r);
  for i: POS do if i < hits then
    for b: DB do if dkey[b] = key_of(r, i) then req[r].table[i] := b; end; end;
  end; end;
  for i: POS do if i < hits then d_touch(req[r].table[i]); end; end;
  upto := hits;
  for i: POS do if i = upto & i < length(r) then
    if h_has(key_of(r, i)) then upto := upto + 1; end;
  end; end;
  for i: POS do if i >= hits & i < length(r) then req[r].table[i] := d_take(); end; end;
  req[r].computed := hits;
  req[r].phase := RUNNING;
  if upto > hits then
    req[r].phase := LOADING;
    job[jn].load := true; job[jn].owner := r; job[jn].awaited := true; job[jn].n := upto - hits;
    job[jn].view := LIVE; job[jn].fence := false; job[jn].after_step := false; job[jn].before_step := false;
    for w: WK do job[jn].progress[w] := QUEUED; end;
    for j: JX do job[jn].after[j] := false; end;
    for i: POS do if i >= hits & i < upto then
      job[jn].dev[i-hits] := req[r].table[i];
      job[jn].key[i-hits] := key_of(r, i);
      for b: HB do if hkey[b] = key_of(r, i) then job[jn].host[i-hits] := b; end; end;
      h_touch(job[jn].host[i-hits]);
      if PINNING = 1 then d_touch(req[r].table[i]); end;
    end; end;
    jn := jn + 1;
  end;
  settle();
end;

rule "wake" req[r].phase = LOADING & !waits(r) ==> begin req[r].phase := RUNNING; settle(); end;

rule "finish" req[r].phase = RUNNING & req[r].computed = length(r) & !in_step(r) ==> begin
  waits_no_more(r);
  table_let_go(r, DONE);
  settle();
end;

rule "preempt" PREEMPTS = 1 & (req[r].phase = RUNNING | req[r].phase = LOADING) ==> begin
  if req[r].phase = LOADING then loading_left(r, WAITING); else table_let_go(r, WAITING); end;
  settle();
end;

rule "abort" ABORTS = 1 & (req[r].phase = WAITING | req[r].phase = LOADING | req[r].phase = RUNNING
                           | (req[r].phase = DRAINING & req[r].returns)) ==> begin
  switch req[r].phase
    case WAITING: waits_no_more(r); becomes(r, DONE);
    case LOADING: loading_left(r, DONE);
    case RUNNING: waits_no_more(r); table_let_go(r, DONE);
    case DRAINING: req[r].returns := false;
  end;
  settle();
end;

end;

rule "launch" !launched & has_work() ==>
var first: 0..J; computes: boolean; full: boolean; n: 0..P; flush: array[JX] of boolean; begin
  first := jn;
  computes := false;
  for r: RQ do if wants_compute(r) then computes := true; end; end;
  if computes then
    launched := true;
    for w: WK do ran[w] := false; end;
    for r: RQ do
      share[r].on := wants_compute(r);
      if share[r].on then
        share[r].table := req[r].table; share[r].start := req[r].computed;
        share[r].left := false; share[r].old := false;
      end;
    end;
  end;
  for r: RQ do if req[r].phase = RUNNING then
    full := false;
    n := 0;
    for i: POS do if i >= req[r].offered & i < length(r) & !full then
      if !h_has(key_of(r, i)) & !on_its_way(key_of(r, i)) then
        if hn = 0 then full := true;
        else
          job[jn].dev[n] := req[r].table[i]; job[jn].key[n] := key_of(r, i); job[jn].host[n] := h_take();
          n := n + 1;
        end;
      end;
      if !full then req[r].offered := i + 1; end;
    end; end;
    if n > 0 then
      job[jn].load := false; job[jn].n := n; job[jn].view := LIVE;
      job[jn].fence := false; job[jn].after_step := computes; job[jn].before_step := false;
      for w: WK do job[jn].progress[w] := LAUNCHED; end;
      for j: JX do job[jn].after[j] := false; end;
      if PINNING = 1 then
        job[jn].owner := R; job[jn].awaited := false;
        for i: POS do if i < n then d_touch(job[jn].dev[i]); end; end;
      else
        job[jn].owner := r; job[jn].awaited := true;
      end;
      jn := jn + 1;
    end;
  end; end;
  for j: JX do
    flush[j] := false;
    if PINNING = 0 & j < first then
      if !is_queued(j) & !everywhere(j, COPIED) then flush[j] := job[j].fence | conflicts(j, first); end;
    end;
  end;
  for j: JX do if j < jn then
    if j >= first | is_queued(j) then
      for o: JX do job[j].after[o] := flush[o]; end;
      for w: WK do job[j].progress[w] := LAUNCHED; end;
    elsif flush[j] then
      job[j].fence := true;
      job[j].before_step := computes;
    end;
  end; end;
  settle();
end;

rule "handle output" launched & (forall w: WK do ran[w] end) ==> var x: POS; begin
  for r: RQ do if share[r].on then
    if share[r].left then
      for i: POS do
        x := P - 1 - i;
        if x < length(r) then d_release(share[r].table[x]); end;
      end;
    else
      req[r].computed := length(r);
      if !share[r].old then
        for i: POS do if i >= share[r].start & i < length(r) then
          if !d_has(key_of(r, i)) then dkey[share[r].table[i]] := key_of(r, i); end;
        end; end;
      end;
    end;
  end; end;
  launched := false;
  undefine ran;
  undefine share;
  for j: JX do if j < jn then job[j].after_step := false; end; end;
  settle();
end;

ruleset invalidates: boolean do
rule "reset" resets > 0 & (invalidates -> INVALIDATE = 1) & (!invalidates -> EVICT = 1) ==> var j: 0..J; begin
  for r: RQ do
    switch req[r].phase
      case WAITING: waits_no_more(r);
      case LOADING:
        j := load_of(r);
        if j != J then
          if is_queued(j) then holdings_released(j); job_gone(j);
          elsif PINNING = 1 then job[j].view := ABANDONED;
          else forget(j);
          end;
        end;
        waits_no_more(r);
        table_let_go(r, WAITING);
      case DRAINING:
        waits_no_more(r);
        table_released(r);
        if req[r].returns then becomes(r, WAITING); else becomes(r, DONE); end;
      case RUNNING:
        waits_no_more(r);
        table_let_go(r, WAITING);
    end;
  end;
  for i: JX do if i < jn then
    if PINNING = 1 then job[i].view := ABANDONED;
    elsif job[i].view != FORGOTTEN then forget(i);
    end;
  end; end;
  for b: DB do dkey[b] := 0; end;
  for b: HB do hkey[b] := 0; end;
  if invalidates then
    for w: WK do
      for b: DB do if dc[w][b] > 0 & dc[w][b] <= K then dc[w][b] := dc[w][b] + K; end; end;
      for b: HB do if hc[w][b] > 0 & hc[w][b] <= K then hc[w][b] := hc[w][b] + K; end; end;
    end;
    if launched then
      for r: RQ do if share[r].on then share[r].old := true; end; end;
    end;
  end;
  resets := resets - 1;
  settle();
end;
end;

-- the workers -----------------------------------------------------------------------------------------------------

ruleset w: WK do

rule "compute" launched & !ran[w]
  & (forall j: JX do j < jn -> (job[j].before_step -> (job[j].progress[w] = COPIED | job[j].progress[w] = REPORTED)) end)
==> begin
  for r: RQ do if share[r].on then
    for i: POS do if i >= share[r].start & i < length(r) then
      if share[r].old then dc[w][share[r].table[i]] := K + key_of(r, i);
      else dc[w][share[r].table[i]] := key_of(r, i);
      end;
    end; end;
  end; end;
  ran[w] := true;
  settle();
end;

ruleset j: JX do

rule "copy" j < jn
  & job[j].progress[w] = LAUNCHED
  & (forall o: JX do o < j -> (job[o].load = job[j].load -> job[o].progress[w] != LAUNCHED) end)
  & (job[j].after_step -> ran[w])
  & (forall o: JX do o < jn -> (job[j].after[o] -> (job[o].progress[w] = COPIED | job[o].progress[w] = REPORTED)) end)
==> begin
  for i: POS do if i < job[j].n then
    if job[j].load then dc[w][job[j].dev[i]] := hc[w][job[j].host[i]];
    else hc[w][job[j].host[i]] := dc[w][job[j].dev[i]];
    end;
  end; end;
  job[j].progress[w] := COPIED;
  if everywhere(j, COPIED) then
    job[j].fence := false; job[j].after_step := false; job[j].before_step := false;
    for o: JX do
      job[j].after[o] := false;
      if o < jn then job[o].after[j] := false; end;
    end;
  end;
  settle();
end;

rule "report" j < jn & job[j].progress[w] = COPIED ==> var r: RQ; begin
  job[j].progress[w] := REPORTED;
  if everywhere(j, REPORTED) then
    if job[j].view = LIVE then
      for i: POS do if i < job[j].n then
        if job[j].load then
          if !d_has(job[j].key[i]) then dkey[job[j].dev[i]] := job[j].key[i]; end;
        elsif !h_has(job[j].key[i]) then hkey[job[j].host[i]] := job[j].key[i];
        end;
      end; end;
    end;
    if job[j].view != FORGOTTEN then
      if job[j].owner < R & job[j].awaited then
        r := job[j].owner;
        if req[r].phase = DRAINING then
          table_released(r);
          if req[r].returns then becomes(r, WAITING); else becomes(r, DONE); end;
        elsif job[j].load then req[r].computed := req[r].computed + job[j].n;
        end;
      end;
      holdings_released(j);
    end;
    job_gone(j);
  end;
  settle();
end;

end;
end;

-- what holds in every state -----------------------------------------------------------------------------------------

invariant "what can be hit on the device is there"
  forall b: DB do forall w: WK do dkey[b] = 0 | dc[w][b] = dkey[b] end end;
invariant "what can be hit on the host is there"
  forall b: HB do forall w: WK do hkey[b] = 0 | hc[w][b] = hkey[b] end end;
