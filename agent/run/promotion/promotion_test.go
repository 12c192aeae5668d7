package promotion_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/promotion"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

func ref(name string) release.Ref {
	return release.Ref{Name: name, Digest: "sha256:" + strings.Repeat("0", 63) + name[len(name)-1:]}
}

var (
	one, two, three = ref("prod-1"), ref("prod-2"), ref("prod-3")

	at     = time.Date(2026, 11, 28, 2, 0, 0, 0, time.UTC)
	closed = &message.Closed{Stage: "complete", Run: 57, At: at}
	back   = message.RolledBackIn{Run: 61, At: at, By: "alice", Why: "too slow"}
)

// to is a run to a release that touches something.
func to(release release.Ref, id uint64) promotion.Run {
	return promotion.Run{ID: id, Release: release, Touched: true}
}

// with returns a run that differs.
func with(r promotion.Run, change func(*promotion.Run)) promotion.Run {
	change(&r)
	return r
}

// TestAfter checks how far an environment has come with one run more.
func TestAfter(t *testing.T) {
	t.Parallel()
	before := &message.Promotion{Release: two, Was: &one, Since: 41, Last: 57, Steps: []string{"backup"}}
	rolledBack := &message.Promotion{Release: two, Was: &one, Since: 41, Last: 57, RolledBack: &back}
	rollback := promotion.Run{ID: 61, RollbackOf: 57, Back: back, Touched: true, Steps: []string{"backup"}}
	chosen := func(r *promotion.Run) { r.Chosen = true }
	for name, c := range map[string]struct {
		before *message.Promotion
		run    promotion.Run
		want   *message.Promotion
	}{
		"the first run":                           {nil, to(one, 41), &message.Promotion{Release: one, Since: 41, Last: 41}},
		"the first run, without a release":        {nil, to(release.Ref{}, 41), nil},
		"the first run, of chosen hosts":          {nil, with(to(one, 41), chosen), nil},
		"the first run, and it touches nothing":   {nil, promotion.Run{ID: 41, Release: one}, nil},
		"once more to the same":                   {before, to(two, 59), &message.Promotion{Release: two, Was: &one, Since: 41, Last: 59, Steps: []string{"backup"}}},
		"a retry to the same":                     {before, with(to(two, 59), chosen), &message.Promotion{Release: two, Was: &one, Since: 41, Last: 59, Steps: []string{"backup"}}},
		"steps":                                   {before, with(to(two, 59), func(r *promotion.Run) { r.Steps = []string{"backup", "complete"} }), &message.Promotion{Release: two, Was: &one, Since: 41, Last: 59, Steps: []string{"backup", "complete"}}},
		"the point of no return":                  {before, with(to(two, 59), func(r *promotion.Run) { r.Closed = closed }), &message.Promotion{Release: two, Was: &one, Since: 41, Last: 59, Steps: []string{"backup"}, Closed: closed}},
		"another release":                         {before, to(three, 59), &message.Promotion{Release: three, Was: &two, Since: 59, Last: 59}},
		"another release, and it touches nothing": {before, promotion.Run{ID: 59, Release: three}, before},
		"another release, of chosen hosts":        {before, with(to(three, 59), chosen), before},
		"no release":                              {before, to(release.Ref{}, 59), before},
		"back":                                    {before, rollback, &message.Promotion{Release: two, Was: &one, Since: 41, Last: 57, Steps: []string{}, RolledBack: &back}},
		"back, and it touches nothing":            {before, with(rollback, func(r *promotion.Run) { r.Touched = false }), before},
		"back from a run without a release":       {before, with(rollback, func(r *promotion.Run) { r.RollbackOf = 40 }), before},
		"back, and there was no release":          {nil, rollback, nil},
		"back once more":                          {rolledBack, with(rollback, func(r *promotion.Run) { r.ID, r.Back.Run = 62, 62 }), &message.Promotion{Release: two, Was: &one, Since: 41, Last: 57, Steps: nil, RolledBack: &message.RolledBackIn{Run: 62, At: at, By: "alice", Why: "too slow"}}},
		"the rollback rolled back":                {rolledBack, promotion.Run{ID: 63, RollbackOf: 61, Touched: true}, &message.Promotion{Release: two, Was: &one, Since: 41, Last: 63}},
		"the rollback rolled back, with its step": {rolledBack, promotion.Run{ID: 63, RollbackOf: 61, Touched: true, Steps: []string{"backup"}}, &message.Promotion{Release: two, Was: &one, Since: 41, Last: 63, Steps: []string{"backup"}}},
		"forwards again":                          {rolledBack, to(two, 63), &message.Promotion{Release: two, Was: &one, Since: 63, Last: 63}},
		"forwards again, chosen hosts":            {rolledBack, with(to(two, 63), chosen), rolledBack},
		"to what was before, after a rollback":    {rolledBack, to(one, 63), &message.Promotion{Release: one, Since: 63, Last: 63}},
		"to a third one, after a rollback":        {rolledBack, to(three, 63), &message.Promotion{Release: three, Was: &one, Since: 63, Last: 63}},
	} {
		kept := string(message.EncodeEvent(message.Carried{Promotion: c.before}))
		if got := promotion.After(c.before, c.run); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
		if now := string(message.EncodeEvent(message.Carried{Promotion: c.before})); now != kept {
			t.Errorf("%s: what was before has changed from %s to %s", name, kept, now)
		}
	}
}

// TestHost checks which release a host has after a run, and which it had before.
func TestHost(t *testing.T) {
	t.Parallel()
	none := release.Ref{}
	h := promotion.Host{}
	for _, c := range []struct {
		name string
		next promotion.Host
		want promotion.Host
	}{
		{"without a release", h.Upgraded(none), promotion.Host{}},
		{"to the first", h.Upgraded(one), promotion.Host{Release: one}},
		{"to the same", h.Upgraded(one).Upgraded(one), promotion.Host{Release: one}},
		{"to the second", h.Upgraded(one).Upgraded(two), promotion.Host{Release: two, Was: one}},
		{"to the second, twice", h.Upgraded(one).Upgraded(two).Upgraded(two), promotion.Host{Release: two, Was: one}},
		{"back", h.Upgraded(one).Upgraded(two).RolledBack(), promotion.Host{Release: one, Was: two}},
		{"back, and there again", h.Upgraded(one).Upgraded(two).RolledBack().RolledBack(), promotion.Host{Release: two, Was: one}},
		{"without a release after one", h.Upgraded(one).Upgraded(none), promotion.Host{Was: one}},
		{"without a release, rolled back", h.Upgraded(one).Upgraded(none).RolledBack(), promotion.Host{Release: one}},
		{"without a release twice", h.Upgraded(one).Upgraded(none).Upgraded(none), promotion.Host{}},
	} {
		if c.next != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, c.next, c.want)
		}
	}
}

// TestGoesBack checks that to go to the release from before is to roll back the runs to the present one,
// also if some hosts have gone back, unless the way back is closed.
func TestGoesBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		p    *message.Promotion
		to   release.Ref
		want uint64
	}{
		"no run before":                {nil, one, 0},
		"the one from before":          {&message.Promotion{Release: two, Was: &one, Since: 41, Last: 57}, one, 57},
		"the present one":              {&message.Promotion{Release: two, Was: &one, Since: 41, Last: 57}, two, 0},
		"another one":                  {&message.Promotion{Release: two, Was: &one, Since: 41, Last: 57}, three, 0},
		"none was before":              {&message.Promotion{Release: two, Since: 41, Last: 57}, one, 0},
		"after the point of no return": {&message.Promotion{Release: two, Was: &one, Since: 41, Last: 57, Closed: closed}, one, 0},
		"after a rollback":             {&message.Promotion{Release: two, Was: &one, Since: 41, Last: 57, RolledBack: &back}, one, 57},
	} {
		if got := promotion.GoesBack(c.p, c.to); got != c.want {
			t.Errorf("%s: run %d is rolled back, not %d", name, got, c.want)
		}
	}
}
