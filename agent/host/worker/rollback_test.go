package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// packaged is a host of two packages whose upgrade fails.
type packaged struct {
	strategy.Strategy
	has map[string]string
	// upgraded and rolledBack are what a failed upgrade and its rollback leave.
	upgraded, rolledBack map[string]string
	// staged are versions that take effect with the next boot.
	staged map[string]string
	// plain is set for scripts that make no plan; without a way back there is no rollback.
	plain, noWayBack bool
}

func (p *packaged) Plans() bool { return !p.plain }

func (p *packaged) Prepare(context.Context, strategy.Job) (plan message.ChangeSet, err error) {
	if !p.plain {
		plan.Changes = []message.Change{{Name: "a", From: "1", To: "2"}, {Name: "b", From: "1", To: "2"}}
	}
	return plan, nil
}

func (p *packaged) Upgrade(context.Context, strategy.Job) (strategy.Outcome, error) {
	maps.Copy(p.has, p.upgraded)
	return 0, strategy.Fail(message.Space, errors.New("no room"))
}

func (p *packaged) Resume(context.Context, strategy.Job) (strategy.Outcome, error) {
	return strategy.NotDone, nil
}

func (p *packaged) Missing(_ context.Context, job strategy.Job) ([]message.Change, error) {
	if reversed := len(job.Plan.Changes) > 0 && job.Plan.Changes[0].From == "2"; reversed != job.Reversed {
		return nil, fmt.Errorf("the plan %v is called reversed: %v", job.Plan.Changes, job.Reversed)
	}
	has := maps.Clone(p.has)
	if job.Staged {
		maps.Copy(has, p.staged)
	}
	return strategy.Lacks(job.Plan, has), nil
}

func (p *packaged) Rollback(context.Context, strategy.Job) (strategy.Outcome, error) {
	if p.noWayBack {
		return 0, strategy.ErrNoRollback
	}
	maps.Copy(p.has, p.rolledBack)
	return strategy.Done, nil
}

// TestRolledBackIsProved checks what a host answers whose upgrade has failed, by what upgrade
// and rollback really did. It answers the same wherever its worker is killed.
func TestRolledBackIsProved(t *testing.T) {
	t.Parallel()
	type versions = map[string]string
	const others = "; somebody else changed that after the host was prepared, so it stays"
	for name, c := range map[string]struct {
		host packaged
		want string
	}{
		"rolled back":                   {packaged{upgraded: versions{"a": "2", "b": "2"}, rolledBack: versions{"a": "1", "b": "1"}}, "no room; rolled back"},
		"nothing was changed":           {packaged{}, "no room; nothing was changed"},
		"nothing and no way back":       {packaged{noWayBack: true}, "no room; nothing was changed"},
		"half and no way back":          {packaged{upgraded: versions{"a": "2"}, noWayBack: true}, "no room"},
		"a rollback that does nothing":  {packaged{upgraded: versions{"a": "2"}}, "no room; rollback failed: it reported success, but 1 change is not undone: a 1 → 2; read its output, then repair the host"},
		"the next boot upgrades":        {packaged{staged: versions{"a": "2"}}, "no room; rollback failed: it reported success, but 1 change is not undone for the next boot: a 1 → 2; read its output, then repair the host"},
		"another has changed one":       {packaged{upgraded: versions{"a": "2", "b": "3"}, rolledBack: versions{"a": "1"}}, "no room; b is 3 (planned: 2)" + others + "; rolled back"},
		"another has changed all of it": {packaged{upgraded: versions{"a": "3", "b": ""}}, "no room; a is 3 (planned: 2), b is gone (planned: 2)" + others + "; nothing was changed"},
		"no plan":                       {packaged{plain: true}, "no room; what it changed could not be verified, because prepare made no plan; rolled back"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fails := func(r *rig) {
				host := c.host
				host.Strategy, host.has = r.host, versions{"a": "1", "b": "1"}
				r.change = func(o *Options) { o.Strategy = &host }
				r.bear()
				r.prepare()
				expect(r, message.Prepare, message.Done)
				r.command(11, message.Upgrade)
				if got := r.until(message.Upgrade); got != c.want {
					t.Errorf("killed at visit %d of %q it answered %q, not %q", r.visit, r.dieAt, got, c.want)
				}
				wants := map[bool]message.ReplyOutcome{true: message.RolledBack, false: message.Failed}[strings.HasSuffix(c.want, "; rolled back")]
				if got := r.hostLog.outcome(message.Upgrade); got != wants {
					t.Errorf("its outcome is %s, not %s", got, wants)
				}
			}
			var calm *rig
			inBubble(t, func(r *rig) { calm = r; fails(r) })
			for _, label := range []string{"after upgrade", "before rollback", "after rollback", "after journal"} {
				for visit := range calm.visits[label] {
					inBubble(t, func(r *rig) { r.dieAt, r.visit = label, visit+1; fails(r) })
				}
			}
		})
	}
}

// TestDoneWithoutAPlan checks that a host whose scripts make no plan says that nothing proves
// its upgrade.
func TestDoneWithoutAPlan(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.change = func(o *Options) { o.Strategy = planless{o.Strategy} }
		r.bear()
		r.prepare()
		expect(r, message.Prepare, message.Done)
		r.command(11, message.Upgrade)
		expect(r, message.Upgrade, message.Done)
		if r.journal().Result.UpToDate {
			t.Error("a host without a plan says that it was up to date")
		}
		if !slices.ContainsFunc(r.hostLog.progress, func(p message.Progress) bool { return p.Message == unproved }) {
			t.Errorf("it tells %+v", r.hostLog.progress)
		}
	})
}

// planless is a host whose scripts make no plan.
type planless struct{ strategy.Strategy }

func (planless) Plans() bool { return false }

func (planless) Prepare(context.Context, strategy.Job) (message.ChangeSet, error) {
	return message.ChangeSet{}, nil
}

func (planless) Upgrade(context.Context, strategy.Job) (strategy.Outcome, error) {
	return strategy.Done, nil
}

func (planless) Verify(context.Context, strategy.Job) error { return nil }
