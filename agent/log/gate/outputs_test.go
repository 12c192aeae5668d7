package gate_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// box opens what begins with its purpose.
type box struct{}

func (box) Open(sealed, purpose string) ([]byte, error) {
	body, fits := strings.CutPrefix(sealed, purpose+"|")
	if !fits {
		return nil, errors.New("it is sealed for another purpose")
	}
	return []byte(body), nil
}

// gave is the record of a step that is done and has given an output.
func gave(run uint64, stage, name, value string) message.Record {
	task := message.Task{Run: run, Kind: message.Step, Stage: stage, Hook: &rollout.Hook{Type: rollout.Exec, On: rollout.OnSite}}
	o := task.Outcome(true, "")
	o.Outputs = &message.Outputs{Names: []string{name}, Sealed: message.OutputsPurpose("acme", stage) + `|{"` + name + `":"` + value + `"}`}
	return message.Record{Kind: message.EventRecord, Run: run, Body: message.EncodeEvent(message.Ran{Outcome: o})}
}

// TestOutputs checks that a command tells whether steps of its run have given outputs, also one that was
// pushed; and that a member of the run gets them, from a gate that has seen the step end and from one that
// starts later, and nobody else.
func TestOutputs(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		early := r.gate(r.log)
		early.Secrets = box{}
		id := r.add(prepare("h01", "h02"))
		first, stranger := r.process(early, "h01"), r.process(early, "h03")
		r.acquire(first, "one")
		r.acquire(stranger, "three")
		commands := func(p *process) (outputs bool) {
			newest, err := p.Newest(t.Context())
			if err != nil || len(newest) != 2 || newest[0].Outputs {
				t.Errorf("the commands are %+v, %v", newest, err)
				return false
			}
			return newest[1].Outputs
		}
		r.add(upgrade("h01", id))
		if commands(first) {
			t.Error("before the step is done there are outputs")
		}
		if got, err := first.Outputs(t.Context(), id); err != nil || len(got) != 0 {
			t.Errorf("before the step is done it gets %v, %v", got, err)
		}
		r.add(gave(id, "token", "JOIN", "secret"))
		r.add(gave(id, "more", "KEY", "other"))
		r.add(upgrade("h02", id))
		late := r.gate(r.log)
		late.Secrets = box{}
		second := r.process(late, "h02")
		r.acquire(second, "two")
		want := map[string]string{"JOIN": "secret", "KEY": "other"}
		for _, p := range []*process{first, second} {
			if got, err := p.Outputs(t.Context(), id); err != nil || !maps.Equal(got, want) || !commands(p) {
				t.Errorf("%s gets %v, %v", p.Host, got, err)
			}
			if _, err := p.Outputs(t.Context(), id+1); !errors.Is(err, log.ErrRefused) {
				t.Errorf("of another run %s gets %v", p.Host, err)
			}
		}
		if _, err := stranger.Outputs(t.Context(), id); !errors.Is(err, log.ErrRefused) {
			t.Errorf("a host that is no member gets %v", err)
		}
		late.Secrets = nil
		if _, err := second.Outputs(t.Context(), id); !errors.Is(err, log.ErrRefused) {
			t.Errorf("without a strongbox it gets %v", err)
		}
		r.add(prepare("h01", "h02"))
		if _, err := first.Outputs(t.Context(), id); !errors.Is(err, log.ErrRefused) {
			t.Errorf("once there is a newer run it gets %v", err)
		}
	})
}

// TestOutputsOfEarlierRuns checks that a host gets what the steps of earlier nights have given as it gets
// what those of this night give, from a gate that has seen the run begin and from one that starts later.
func TestOutputsOfEarlierRuns(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		early := r.gate(r.log)
		early.Secrets = box{}
		first := r.process(early, "h01")
		r.acquire(first, "one")
		sealed := func(stage, body string) *message.Outputs {
			return &message.Outputs{Names: []string{"JOIN"}, Sealed: message.OutputsPurpose("acme", stage) + "|" + body}
		}
		r.add(message.Record{Kind: message.EventRecord, Body: message.EncodeEvent(message.Opened{
			Trigger: message.TriggerManual, Members: []string{"h01", "h02"}, NotAfter: time.Now().Add(time.Hour), Rollout: rollout.Default(2),
			Reached: &message.Reached{Since: 1, Stages: []message.ReachedStage{
				{Name: "token", Step: true, Run: 1, Outputs: sealed("token", `{"JOIN":"last night","HASH":"kept"}`)}, {Name: "again", Step: true}, {Name: "hosts"},
			}},
		})})
		id := r.add(prepare("h01", "h02"))
		pushed := make(chan message.Record, 1)
		go func() { _ = first.Commands(t.Context(), func(c message.Record) { pushed <- c }) }()
		if c := <-pushed; c.Kind != message.CommandAll || c.Outputs {
			t.Errorf("the first command is %+v", c)
		}
		r.add(upgrade("h01", id))
		r.add(upgrade("h02", id))
		if c := <-pushed; !c.Outputs {
			t.Errorf("the command %+v was pushed as one without outputs", c)
		}
		late := r.gate(r.log)
		late.Secrets = box{}
		second := r.process(late, "h02")
		r.acquire(second, "two")
		want := map[string]string{"JOIN": "last night", "HASH": "kept"}
		for range 2 {
			for _, p := range []*process{first, second} {
				newest, err := p.Newest(t.Context())
				if err != nil || len(newest) != 2 || !newest[1].Outputs {
					t.Errorf("the commands of %s are %+v, %v", p.Host, newest, err)
				}
				if got, err := p.Outputs(t.Context(), id); err != nil || !maps.Equal(got, want) {
					t.Errorf("%s gets %v, %v; want %v", p.Host, got, err, want)
				}
			}
			want["JOIN"] = "tonight" // The newer one wins.
			r.add(gave(id, "again", "JOIN", "tonight"))
		}
	})
}
