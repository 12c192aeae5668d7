package gate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// TestTakeOver checks that one worker holds the lease until it is silent, that another
// worker then gets it in a new epoch, and that each call of the first worker is refused
// and says why.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		g := r.gate(r.log)
		first, second := r.process(g, "h01"), r.process(g, "h01")
		epoch := r.acquire(first, "one")
		time.Sleep(message.Silence - time.Second)
		r.taken(second, "two")
		if err := first.Alive(message.Alive{Application: "a", Worker: "one"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(message.Silence - time.Second)
		r.taken(second, "two")
		time.Sleep(time.Second)
		if got := r.acquire(second, "two"); got != epoch+1 {
			t.Errorf("the next worker has epoch %d after %d", got, epoch)
		}
		synctest.Wait()
		if err := first.Progress(message.Progress{}); !errors.Is(err, log.ErrTaken) {
			t.Errorf("the first worker was not told: %v", err)
		}
		r.taken(first, "one")
	})
}

// TestHeardWhileTheStoreIsAway checks that the holder counts as heard when it asks for its
// lease, though the store does not answer and the holder has to ask again.
func TestHeardWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		g := r.gate(r.log)
		first, second := r.process(g, "h01"), r.process(g, "h01")
		r.acquire(first, "one")
		time.Sleep(message.Silence - time.Second)
		r.keeper.set(func(k *slowKeeper) { k.unread = errors.New("no quorum") })
		if q, err := first.Call(t.Context(), gate.Request{Verb: []string{"lease", "1"}, Worker: "one", Incarnation: first.Incarnation, Protocol: 1}); !strings.Contains(string(q), "no quorum") {
			t.Fatalf("the holder is answered %s, %v", q, err)
		}
		r.keeper.set(func(k *slowKeeper) { k.unread = nil })
		time.Sleep(message.Silence - time.Second)
		r.taken(second, "two")
	})
}

// TestLeaseOutlivesTheGate checks that a second gate knows which worker holds the
// lease, and does not count as silence the time before it started, nor the time in
// which no host could reach it.
func TestLeaseOutlivesTheGate(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		first := r.process(r.gate(r.log), "h01")
		epoch := r.acquire(first, "one")
		time.Sleep(message.Silence)
		g := r.gate(r.log)
		r.taken(r.process(g, "h01"), "two")
		first.gate = g
		if got := r.acquire(first, "one"); got != epoch {
			t.Errorf("the holder has epoch %d after %d", got, epoch)
		}
		time.Sleep(message.Silence)
		g.Reconnected()
		r.taken(r.process(g, "h01"), "two")
	})
}

// TestLeaseForOneOfMany checks that one of many workers that ask several gates at once
// gets the lease.
func TestLeaseForOneOfMany(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.keeper.set(func(k *slowKeeper) { k.slow = time.Second })
		gates := []*gate.Gate{r.gate(r.log), r.gate(r.log), r.gate(r.log)}
		const workers = 8
		results := make(chan error, workers)
		for i := range workers {
			p := r.process(gates[i%len(gates)], "h01")
			go func() {
				_, err := p.Lease(t.Context(), fmt.Sprint("worker-", i))
				results <- err
			}()
		}
		granted := 0
		for range workers {
			switch err := <-results; {
			case err == nil:
				granted++
			case !errors.Is(err, log.ErrTaken):
				t.Error(err)
			}
		}
		if granted != 1 {
			t.Errorf("%d workers have the lease", granted)
		}
	})
}

// TestLeaseOfNobody checks that a worker needs an identity that a heartbeat can
// carry.
func TestLeaseOfNobody(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		p := r.process(r.gate(r.log), "h01")
		for _, worker := range []string{"", strings.Repeat("x", 64), "a\x1b[2Jb"} {
			if _, err := p.Lease(t.Context(), worker); !errors.Is(err, log.ErrRefused) {
				t.Errorf("%q asks for the lease and gets %v", worker, err)
			}
		}
	})
}

// TestGiveBack checks that a lease that was given back is there at once, in the
// same epoch for the worker that had it, in a new one for any other, also when
// the next one asks another gate.
func TestGiveBack(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		one, two := r.gate(r.log), r.gate(r.log)
		first := r.process(one, "h01")
		epoch := r.acquire(first, "one")
		if err := first.GiveBack(t.Context()); err != nil {
			t.Fatal(err)
		}
		again := r.process(two, "h01")
		if got := r.acquire(again, "one"); got != epoch {
			t.Errorf("nobody else held the lease, and the epoch is %d after %d", got, epoch)
		}
		if err := again.GiveBack(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := r.process(one, "h01")
		if got := r.acquire(next, "two"); got != epoch+1 {
			t.Errorf("the next worker's epoch is %d after %d", got, epoch)
		}
		if err := next.GiveBack(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.acquire(r.process(two, "h01"), "one"); got != epoch+2 {
			t.Errorf("the epoch of a worker that was away is %d after %d", got, epoch+1)
		}
	})
}

// TestLateGiveBack checks that a lease is not given back by a call that is late,
// sent again, or of another worker.
func TestLateGiveBack(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]func(r *rig, first *process) gate.Request{
		"its worker was started again": func(r *rig, first *process) gate.Request {
			r.acquire(r.process(first.gate, "h01"), "one")
			return giveBack(1, "one", first)
		},
		"sent again after the lease was given back and asked for": func(r *rig, first *process) gate.Request {
			_ = first.GiveBack(r.t.Context())
			r.acquire(r.process(first.gate, "h01"), "one")
			return giveBack(1, "one", first)
		},
		"sent again after another worker took the lease": func(r *rig, first *process) gate.Request {
			_ = first.GiveBack(r.t.Context())
			r.acquire(r.process(first.gate, "h01"), "two")
			return giveBack(1, "one", first)
		},
		"of another epoch":              func(_ *rig, first *process) gate.Request { return giveBack(2, "one", first) },
		"of another worker":             func(_ *rig, first *process) gate.Request { return giveBack(1, "two", first) },
		"of a worker without a name":    func(_ *rig, first *process) gate.Request { return giveBack(1, "", first) },
		"of another process":            func(r *rig, first *process) gate.Request { return giveBack(1, "one", r.process(first.gate, "h01")) },
		"of an epoch that is no number": func(_ *rig, first *process) gate.Request { q := giveBack(1, "one", first); q.Verb[1] = ""; return q },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, r *rig) {
				first := r.process(r.gate(r.log), "h01")
				r.acquire(first, "one")
				q := late(r, first)
				if answer := first.gate.Answer(t.Context(), "h01", q); !answer.Refused && !answer.Taken {
					t.Errorf("it is taken: %+v", answer)
				}
				if r.kept().Vacant {
					t.Error("the lease is vacant")
				}
				r.taken(r.process(first.gate, "h01"), "three")
			})
		})
	}
}

// TestGiveBackAtGateBehind checks that a process that was replaced does not give
// the lease back through a gate that does not know.
func TestGiveBackAtGateBehind(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		one, two := r.gate(r.log), r.gate(r.log)
		first := r.process(one, "h01")
		epoch := r.acquire(first, "one")
		synctest.Wait()
		behind := make(chan struct{})
		defer close(behind)
		r.keeper.set(func(k *slowKeeper) { k.behind = behind })
		r.acquire(r.process(two, "h01"), "one")
		if answer := one.Answer(t.Context(), "h01", giveBack(epoch, "one", first)); !answer.Refused || r.kept().Vacant {
			t.Errorf("it is answered %+v; the lease is %+v", answer, r.kept())
		}
	})
}

// giveBack is the call with which a process gives the lease back.
func giveBack(epoch uint64, worker string, p *process) gate.Request {
	return gate.Request{Verb: []string{"give-back", fmt.Sprint(epoch)}, Worker: worker, Incarnation: p.Incarnation}
}

// TestGiveBackWhileAsked checks that a lease that is given back while the store is slow
// goes to the process that asks in the meantime, and that the gate tells no process
// that it holds a lease that is about to become vacant.
func TestGiveBackWhileAsked(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		one, two := r.gate(r.log), r.gate(r.log)
		first := r.process(one, "h01")
		epoch := r.acquire(first, "one")
		r.keeper.set(func(k *slowKeeper) { k.slow = 3 * time.Second })
		ended := make(chan error, 1)
		go func() { ended <- first.GiveBack(t.Context()) }()
		time.Sleep(time.Second)
		again := r.process(two, "h01")
		if got := r.acquire(again, "one"); got != epoch {
			t.Errorf("the worker that was started again has epoch %d after %d", got, epoch)
		}
		if err := <-ended; err != nil {
			t.Errorf("the lease is not given back, though that was written first: %v", err)
		}
		time.Sleep(10 * time.Second)
		if l := r.kept(); l.Vacant || l.Incarnation != again.Incarnation {
			t.Errorf("the lease is %+v", l)
		}
		if _, err := again.Newest(t.Context()); err != nil {
			t.Errorf("its holder calls and gets %v", err)
		}
	})
}

// TestUnknownWrite checks that a lease is granted in the same epoch when the host asks
// again, if it was written although the store reported an error.
func TestUnknownWrite(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		g := r.gate(r.log)
		first := r.process(g, "h01")
		r.keeper.set(func(k *slowKeeper) { k.lost = true })
		epoch := r.acquire(first, "one")
		if err := first.GiveBack(t.Context()); err == nil {
			t.Error("a give-back of which nothing is known counts as done")
		}
		if got := r.acquire(r.process(g, "h01"), "two"); got != epoch+1 || r.kept().Epoch != got {
			t.Errorf("the next worker has epoch %d after %d; the store has %+v", got, epoch, r.kept())
		}
	})
}

// TestClonedMachine checks that of two machines of which one is a clone of the
// other, worker and key and all, one works and the other stands by and says why;
// that every gate knows it; and that the other has the lease, in a new epoch,
// once the first is silent.
func TestClonedMachine(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		machine, clone := r.process(r.gate(r.log), "h01"), r.process(r.gate(r.log), "h01")
		epoch := r.acquire(machine, "one")
		if got := r.acquire(clone, "one"); got != epoch {
			t.Errorf("a process that may be a new start has epoch %d after %d", got, epoch)
		}
		synctest.Wait()
		for _, g := range []*gate.Gate{machine.gate, clone.gate, r.gate(r.log)} {
			machine.gate = g
			if _, err := machine.Lease(t.Context(), "one"); !errors.Is(err, log.ErrTaken) || !strings.Contains(err.Error(), "one of the two is a clone of the other") {
				t.Errorf("the machine that was replaced asks again and gets %v", err)
			}
			if err := machine.Report(t.Context(), report.Versions.Of([]byte(`{}`))); !errors.Is(err, log.ErrTaken) {
				t.Errorf("its versions are answered with %v", err)
			}
		}
		if err := clone.Report(t.Context(), report.Versions.Of([]byte(`{}`))); err != nil {
			t.Errorf("versions of the other are answered with %v", err)
		}
		time.Sleep(message.Silence)
		if got := r.acquire(machine, "one"); got != epoch+1 {
			t.Errorf("the machine that does not know what the other did has epoch %d after %d", got, epoch)
		}
		synctest.Wait()
		r.taken(clone, "one")
	})
}

// TestRefusalsAreTold checks that the site learns of the second worker of a host and of
// a clone, with what to do, but not of a worker that was restarted or that takes over
// from a silent one.
func TestRefusalsAreTold(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		g := r.gate(r.log)
		since := time.Now().UTC().Format(time.RFC3339)
		first := r.process(g, "h01")
		r.acquire(first, "one")
		again := r.process(g, "h01")
		r.acquire(again, "one")
		r.tells()
		if _, err := r.process(g, "h01").Lease(t.Context(), "two"); !errors.Is(err, log.ErrTaken) {
			t.Errorf("a second worker gets %v", err)
		}
		r.tells("h01 second-worker: worker two wants to work for this host, and worker one does since " + since +
			": stop one of the two; if the machine of the other is gone, wait 2m30s")
		if _, err := first.Lease(t.Context(), "one"); !errors.Is(err, log.ErrTaken) {
			t.Errorf("a process that was replaced gets %v", err)
		}
		r.tells("h01 clone: worker one runs on two machines, of which one is a clone of the other: give the clone a name and a key of its own, and remove its state folder")
		time.Sleep(message.Silence)
		r.acquire(r.process(g, "h01"), "two")
		r.tells()
	})
}

// tells checks what the gates have told of refusals since the last call.
func (r *rig) tells(want ...string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.warned, want) {
		r.t.Errorf("the site is told %q, not %q", r.warned, want)
	}
	r.warned = nil
}

// TestStartedAgain checks that a worker which is started again has its lease at
// once and in the same epoch, however often, and that the record stays small.
func TestStartedAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		g := r.gate(r.log)
		epoch := r.acquire(r.process(g, "h01"), "one")
		for range 30 {
			p := r.process(g, "h01")
			if got := r.acquire(p, "one"); got != epoch {
				t.Fatalf("it has epoch %d after %d", got, epoch)
			}
			if err := p.Report(t.Context(), report.Versions.Of([]byte(`{}`))); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(r.kept().Replaced); n != 8 {
			t.Errorf("%d replaced incarnations are remembered", n)
		}
	})
}

// TestGateBehind checks that a gate that is behind accepts a reply of a worker that has
// lost the lease, in the epoch of that worker, and grants no lease.
func TestGateBehind(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		one, two := r.gate(r.log), r.gate(r.log)
		first, second := r.process(one, "h01"), r.process(two, "h01")
		old := r.acquire(first, "one")
		synctest.Wait()
		behind := make(chan struct{})
		r.keeper.set(func(k *slowKeeper) { k.behind = behind })
		time.Sleep(message.Silence)
		epoch := r.acquire(second, "two")
		run := r.add(prepare("h01"))
		synctest.Wait()
		r.mu.Lock()
		late := gate.NewClient(gate.ClientOptions{Host: "h01", Incarnation: first.Incarnation}, first)
		r.mu.Unlock()
		answer := one.Answer(t.Context(), "h01", gate.Request{
			Verb: []string{"reply", fmt.Sprint(run), "prepare"}, Worker: "one", Incarnation: late.Incarnation, Body: message.Reply{Action: message.Prepare, Result: message.Result{Outcome: message.Done}}.Encode(),
		})
		if answer.Error != "" {
			t.Fatalf("the gate is not behind: %+v", answer)
		}
		if r, there := r.log.At(run + 1); !there || r.Epoch != old {
			t.Errorf("the reply is %+v, not of epoch %d", r, old)
		}
		r.taken(&process{Client: late, gate: one}, "one")
		if err := second.Reply(t.Context(), run, message.Reply{Action: message.Prepare, Result: message.Result{Outcome: message.Done}}); !errors.Is(err, log.ErrAnswered) {
			t.Errorf("the reply of epoch %d gets %v", epoch, err)
		}
		close(behind)
		synctest.Wait()
		if answer := one.Answer(t.Context(), "h01", gate.Request{Verb: []string{"newest"}, Worker: "one", Incarnation: late.Incarnation}); !answer.Taken {
			t.Errorf("the gate is not behind any more, and answers %+v", answer)
		}
	})
}

// TestLateRequest checks that a request for the lease which comes late, from a
// process that has ended, takes the lease neither from the process that has it
// now nor after it was given back: nobody would work for the host until the dead
// process is silent for long enough.
func TestLateRequest(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		g := r.gate(r.log)
		ask := func(p *process, base uint64) gate.Response {
			return g.Answer(t.Context(), "h01", gate.Request{Verb: []string{"lease", fmt.Sprint(base)}, Worker: "one", Incarnation: p.Incarnation, Protocol: format.Protocol})
		}
		r.acquire(r.process(g, "h01"), "one")
		dead, alive := r.process(g, "h01"), r.process(g, "h01")
		base := ask(dead, 0).Revision
		r.acquire(alive, "one")
		for _, late := range []uint64{0, base} {
			if got := ask(dead, late); got.Lease != nil {
				t.Errorf("a request for revision %d is granted: %+v", late, got.Lease)
			}
		}
		if err := alive.Report(t.Context(), report.Versions.Of([]byte(`{}`))); err != nil {
			t.Errorf("the process that is alive gets %v", err)
		}
		if err := alive.GiveBack(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := ask(dead, base); got.Lease != nil || !r.kept().Vacant {
			t.Errorf("a late request is granted a vacant lease: %+v", got)
		}
	})
}

// TestHolderAtGateBehind checks that a gate that is behind does not refuse the worker
// that holds the lease: the worker would stop the command that it executes.
func TestHolderAtGateBehind(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		one, two := r.gate(r.log), r.gate(r.log)
		r.acquire(r.process(one, "h01"), "one")
		synctest.Wait()
		behind := make(chan struct{})
		defer close(behind)
		r.keeper.set(func(k *slowKeeper) { k.behind = behind })
		again := r.process(two, "h01")
		r.acquire(again, "one")
		again.gate = one
		if err := again.Report(t.Context(), report.Versions.Of([]byte(`{}`))); err != nil {
			t.Errorf("the worker that was started again calls the other gate and gets %v", err)
		}
	})
}

// TestPushedLease checks that a worker ignores a lease that was pushed before it got
// its own, and loses its lease by one that was pushed later.
func TestPushedLease(t *testing.T) {
	t.Parallel()
	for pushed, lost := range map[string]bool{
		`{`:                          false,
		`{"lease":{"worker":"one"}}`: false,
		`{"lease":{"worker":"x","epoch":1,"incarnation":"p"}}`:                                         false,
		`{"lease":{"worker":"one","epoch":2,"incarnation":"before"}}`:                                  false,
		`{"lease":{"worker":"one","epoch":2,"incarnation":"after","replaced":["before"]}}`:             false,
		`{"lease":{"worker":"one","epoch":2,"incarnation":"after","replaced":["before","process-2"]}}`: true,
		`{"lease":{"worker":"x","epoch":3,"incarnation":"p"}}`:                                         true,
		`{"lease":{"worker":"","epoch":9}}`:                                                            true,
	} {
		t.Run(pushed, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, r *rig) {
				g := r.gate(r.log)
				other := r.process(g, "h01")
				r.acquire(other, "other")
				time.Sleep(message.Silence)
				p := r.process(g, "h01")
				if epoch := r.acquire(p, "one"); epoch != 2 || p.Incarnation != "process-2" {
					t.Fatalf("%s has epoch %d", p.Incarnation, epoch)
				}
				p.Pushed([]byte(pushed))
				if err := p.Progress(message.Progress{}); errors.Is(err, log.ErrTaken) != lost {
					t.Errorf("the worker gets %v", err)
				}
			})
		})
	}
}

// TestLeaseFormat checks that a lease of a newer version is neither granted nor
// overwritten, and that a damaged lease is granted in an epoch that no worker had.
func TestLeaseFormat(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		g := r.gate(r.log)
		for range 5 {
			r.acquire(r.process(g, "h02"), "other")
		}
		put := func(body string) {
			_, revision, _ := r.keeper.Lease(t.Context(), "acme", "h01")
			if _, err := r.keeper.PutLease(t.Context(), "acme", "h01", []byte(body), revision); err != nil {
				t.Fatal(err)
			}
		}
		const newer = `{"format":3,"worker":"one","epoch":1}`
		put(newer)
		const revision = "6"
		p := r.process(g, "h01")
		q := gate.Request{Verb: []string{"lease", revision}, Worker: "one", Incarnation: p.Incarnation, Protocol: format.Protocol}
		if answer := g.Answer(t.Context(), "h01", q); !strings.Contains(answer.Error, "written by format 3, this version reads 1") {
			t.Errorf("the answer is %+v", answer)
		}
		if body, _, _ := r.keeper.Lease(t.Context(), "acme", "h01"); string(body) != newer {
			t.Errorf("the lease is %s", body)
		}
		put(`{"worker`)
		if epoch := r.acquire(p, "one"); epoch < 7 {
			t.Errorf("the epoch is %d", epoch)
		}
	})
}
