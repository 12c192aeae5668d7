package gate_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// prepareOf is the prepare of the run of an environment.
func prepareOf(environment string, hosts ...string) message.Record {
	r := prepare(hosts...)
	r.Environment = environment
	return r
}

// gets returns the sequences of the newest commands of a host.
func gets(t *testing.T, g *gate.Gate, host string) (seqs []uint64) {
	t.Helper()
	for _, c := range newest(t, g, host) {
		seqs = append(seqs, c.Seq)
	}
	return seqs
}

// TestEnvironments checks that a host gets the commands of the newest run of its own
// environment, whichever run was prepared last, also from a gate that starts later, and that
// the next prepare that names it takes it to another environment.
func TestEnvironments(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		first := r.gate(r.log)
		old := r.add(prepareOf("basel", "b1", "b2"))
		r.add(upgrade("b1", old))
		basel := r.add(prepareOf("basel", "b1", "b2"))
		def := r.add(prepare("h1"))
		b1 := r.add(upgrade("b1", basel))
		r.add(upgrade("b2", old)) // Of a run before: nobody gets it.
		bern := r.add(prepareOf("bern", "c1"))
		check := func(when string, want map[string][]uint64) {
			t.Helper()
			synctest.Wait()
			for which, g := range map[string]*gate.Gate{"the gate": first, "a gate that starts now": r.gate(r.log)} {
				for host, seqs := range want {
					if got := gets(t, g, host); !reflect.DeepEqual(got, seqs) {
						t.Errorf("%s, %s gets %v from %s, want %v", when, host, got, which, seqs)
					}
				}
			}
		}
		check("at first", map[string][]uint64{"h1": {def}, "b1": {basel, b1}, "b2": {basel}, "c1": {bern}, "of-none": {def}})
		moved := r.add(prepareOf("bern", "c1", "b1"))
		again := r.add(prepare("b2", "h1"))
		check("after two moves", map[string][]uint64{"h1": {again}, "b1": {moved}, "b2": {again}, "c1": {moved}, "of-none": {again}})
	})
}

func upgrade(host string, run uint64) message.Record {
	return message.Record{Kind: message.CommandHost, Host: host, Run: run, Body: message.Command{Action: message.Upgrade, Host: host}.Encode()}
}

// TestRepliesOfEnvironments checks that the gate takes replies and reports of a host for the
// newest run of its own environment and for no other.
func TestRepliesOfEnvironments(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		p := r.process(r.gate(r.log), "b1")
		r.acquire(p, "one")
		basel := r.add(prepareOf("basel", "b1"))
		def := r.add(prepare("h1"))
		r.add(upgrade("b1", basel))
		synctest.Wait()
		plan, err := message.PackPlan(message.ChangeSet{})
		if err != nil {
			t.Fatal(err)
		}
		for run, refused := range map[uint64]bool{def: true, basel: false} {
			for _, action := range []message.Action{message.Prepare, message.Upgrade} {
				err := p.Reply(t.Context(), run, message.Reply{Action: action, Result: message.Result{Outcome: message.Done}})
				if errors.Is(err, log.ErrRefused) != refused || !refused && err != nil {
					t.Errorf("a reply to %s of run %d gets %v", action, run, err)
				}
			}
			err := p.Report(t.Context(), report.Report{ID: report.ID{Kind: report.Plan, Run: run}, Body: plan})
			if errors.Is(err, log.ErrRefused) != refused || !refused && err != nil {
				t.Errorf("a plan of run %d gets %v", run, err)
			}
		}
	})
}

// TestHintsOfEnvironments checks that a prepare of a named environment wakes its members and no
// other host: with many environments each host would call at each prepare.
func TestHintsOfEnvironments(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		var pushed []string
		g := gate.New(gate.Options{Tenant: "acme", Log: r.log, Keeper: r.keeper, Push: func(host string, _ []byte) { pushed = append(pushed, host) }})
		go func() { _ = g.Run(t.Context()) }()
		<-g.Ready()
		for _, c := range []struct {
			prepare message.Record
			want    []string
		}{{prepareOf("basel", "b1", "b2"), []string{"b1", "b2"}}, {prepare("h1"), []string{""}}} {
			pushed = nil
			r.add(c.prepare)
			synctest.Wait()
			if !slices.Equal(pushed, c.want) {
				t.Errorf("a prepare of %q wakes %q, want %q", c.prepare.Environment, pushed, c.want)
			}
		}
	})
}
