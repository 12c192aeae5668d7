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
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// opens appends what a controller writes when it opens a run with a release, with a record in between,
// and returns the id of the run.
func (r *rig) opens(environment string, pinned release.Pin, hosts ...string) uint64 {
	r.t.Helper()
	end := time.Now().Add(time.Hour)
	r.add(message.Record{Kind: message.EventRecord, Body: message.EncodeEvent(message.Opened{
		Environment: environment, Trigger: message.TriggerManual, Members: hosts, NotAfter: end, Rollout: rollout.Default(len(hosts)), Release: &pinned,
	})})
	r.add(message.Record{Kind: message.EventRecord, Body: message.EncodeEvent(message.Opened{
		Environment: "other", Trigger: message.TriggerManual, Members: []string{"h09"}, NotAfter: end, Rollout: rollout.Default(1),
	})})
	return r.add(message.Record{
		Kind: message.CommandAll, Environment: environment, Release: pinned.Ref().String(),
		Body: message.Command{Action: message.Prepare, Hosts: hosts, NotAfter: end}.Encode(),
	})
}

// TestReleaseOfRun checks that a member gets the text that its run was opened with, from a gate that
// has seen the run begin and from one that starts later, and that nobody else gets it.
func TestReleaseOfRun(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		early := r.gate(r.log)
		pinned := release.Release{Version: "2.0", Scheme: release.Semver, From: []string{">= 1.0, < 2.0"}, Data: []byte(`{"a":"<b>"}`)}.Pin("spring")
		r.opens("shop", release.Release{Data: []byte("1")}.Pin("winter"), "h03") // It belongs to the shop from then on.
		id := r.opens("shop", pinned, "h01", "h02")
		for _, g := range []*process{r.process(early, "h01"), r.process(r.gate(r.log), "h02")} {
			if _, err := g.Lease(t.Context(), "w"); err != nil {
				t.Fatal(err)
			}
			for range 2 { // The second answer is from memory.
				if text, err := g.Release(t.Context(), id); err != nil || string(text) != string(pinned.Text) {
					t.Errorf("%s gets %s, %v; not %s", g.Host, text, err, pinned.Text)
				}
			}
			if newest, err := g.Newest(t.Context()); err != nil || newest[0].Release != pinned.Ref().String() {
				t.Errorf("%s gets the commands %+v, %v", g.Host, newest, err)
			}
			for _, other := range []uint64{id - 1, id + 7} {
				if _, err := g.Release(t.Context(), other); !errors.Is(err, log.ErrRefused) {
					t.Errorf("%s gets the release of run %d: %v", g.Host, other, err)
				}
			}
		}
		stranger := r.process(early, "h03")
		if _, err := stranger.Lease(t.Context(), "w"); err != nil {
			t.Fatal(err)
		}
		if _, err := stranger.Release(t.Context(), id); !errors.Is(err, log.ErrRefused) {
			t.Errorf("a host that is no member gets %v", err)
		}
	})
}

// TestMisread checks that a worker that would ignore what its run installs or rolls back is no member
// of it and gets no command of it, that the site is told, and that the next worker gets all of it.
func TestMisread(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		runs := map[string]uint64{"h01": r.opens("shop", release.Release{Data: []byte("1")}.Pin("winter"), "h01")}
		back := prepare("h02", "another-host")
		back.Environment, back.Rollback = "depot", "3-7"
		runs["h02"] = r.add(back)
		runs["another-host"] = runs["h02"]
		var pushed, told []string
		g := gate.New(gate.Options{Tenant: "acme", Log: r.log, Keeper: r.keeper, Push: func(host string, body []byte) {
			if strings.Contains(string(body), `"command"`) {
				pushed = append(pushed, host)
			}
		}, Refused: func(host string, kind message.WarningKind, why string) {
			told = append(told, fmt.Sprintf("%s %s: %s", host, kind, why))
		}})
		go func() { _ = g.Run(t.Context()) }()
		<-g.Ready()
		for _, c := range []struct{ host, reads, cannot string }{
			{"h01", "", "carry out releases"},
			{"h01", "rollback", "carry out releases"},
			{"h01", "release", ""},
			{"h02", "release", "roll back"},
			{"another-host", "", "roll back"},
			{"h02", "release,rollback", ""},
		} {
			p := r.process(g, c.host)
			if _, err := p.Lease(t.Context(), "w"); err != nil {
				t.Fatal(err)
			}
			pushed, told = nil, nil
			ask := func() []gate.Command {
				return g.Answer(t.Context(), c.host, gate.Request{Verb: []string{"newest"}, Worker: "w", Incarnation: p.Incarnation, Reads: c.reads}).Commands
			}
			commands := ask()
			want := ""
			if c.cannot != "" {
				want = fmt.Sprintf("%s protocol: run %d has this host, whose agent cannot %s; upgrade the agent", c.host, runs[c.host], c.cannot)
			}
			if strings.Join(told, "") != want {
				t.Errorf("of %s, whose worker reads %q, the site is told %q", c.host, c.reads, told)
			}
			body, err := message.DecodeCommand(commands[0].Body)
			if err != nil || slices.Contains(body.Hosts, c.host) != (want == "") {
				t.Errorf("%s, whose worker reads %q, gets %+v, %v", c.host, c.reads, commands, err)
			}
			// What comes later is pushed, unless the worker would misread it.
			r.add(message.Record{Kind: message.CommandHost, Host: c.host, Run: runs[c.host], Body: message.Command{Action: message.Upgrade, Hosts: []string{c.host}, NotAfter: time.Now().Add(time.Hour)}.Encode()})
			synctest.Wait()
			if (len(pushed) == 1) != (want == "") {
				t.Errorf("%s, whose worker reads %q, gets pushes: %v", c.host, c.reads, pushed)
			}
			if n := len(ask()); (n == 2) != (want == "") {
				t.Errorf("%s, whose worker reads %q, gets %d commands", c.host, c.reads, n)
			}
		}
	})
}
