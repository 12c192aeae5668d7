package worker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// ofData is a release of data, which nobody changes.
func ofData(text string) *release.Pin { return new(release.Release{Data: []byte(text)}.Pin("nov")) }

// askBy asks the host to make its offers by a release.
func (r *rig) askBy(pin *release.Pin) {
	r.hostLog.asks <- log.Ask{Kind: report.Offer, Within: 5 * time.Minute, ByRelease: true, Release: pin}
}

// saysOf fails the test unless the last heartbeat says how many packages an upgrade to a release would
// change; less than 0 is not known.
func (r *rig) saysOf(when string, pin *release.Pin, want int) {
	r.t.Helper()
	synctest.Wait()
	digest, changes := "", -1
	if pin != nil {
		digest = pin.Digest
	}
	a := r.hostLog.lastAlive()
	if a.Changes != nil {
		changes = *a.Changes
	}
	if a.Release != digest || changes != want {
		r.t.Errorf("%s it says %d changes by %q, not %d by %q", when, changes, a.Release, want, digest)
	}
}

// TestOfferByRelease checks that a host which is told the release of its environment does not know what
// an upgrade would change until it has made an offer by it, that it fetches once for that at a moment of
// its own, and that it offers the newest again when it is told so.
func TestOfferByRelease(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		o, nov := &offering{}, ofData(`{"edition":11}`)
		r.hostLog.asks = make(chan log.Ask)
		r.offer(o, func() {
			r.saysOf("at the start", nil, 1)
			o.fail(strategy.ErrNoPlan)
			r.askBy(nov)
			time.Sleep(message.Heartbeat)
			r.saysOf("before its first offer", nov, -1)
			o.fail(nil)
			o.version.Store(-1)
			time.Sleep(11 * time.Minute)
			r.saysOf("after its moment", nov, 0)
			told := r.hostLog.told()
			if last, err := message.UnpackPlan(told[len(told)-1]); err != nil || last.Release != nov.Ref().String() {
				t.Errorf("its offer is %+v, %v", last, err)
			}
			if j := o.job.Load(); j.Release == nil || j.ReleaseName != "nov" || string(j.Release.Data) != `{"edition":11}` {
				t.Errorf("the strategy planned %+v", j)
			}
			r.askBy(nov)
			time.Sleep(48 * time.Hour)
			if o.job.Load().Fetch {
				t.Error("it fetches again what never changes")
			}
			r.askBy(nil)
			time.Sleep(message.Heartbeat + 6*time.Minute)
			r.saysOf("without a release", nil, 0)
			if o.job.Load().Release != nil || o.job.Load().Fetch {
				t.Errorf("the strategy planned %+v", o.job.Load())
			}
		})
	})
}

// TestOfferByReleaseIsUnknown checks that nobody takes a release for installed on a host that cannot
// tell: its plan fails, it does not carry out such a release, its machine went back from what the
// release installs, or it does not report what that is to be.
func TestOfferByReleaseIsUnknown(t *testing.T) {
	t.Parallel()
	images := release.Release{Images: []release.Image{{URL: "https://images.example/a.img"}}}
	installs := release.Release{Data: []byte(`{}`), Installs: map[string]string{"kernel": "9"}}
	for name, c := range map[string]struct {
		pin   release.Pin
		err   error
		known bool
	}{
		"all is well":             {*ofData(`{}`), nil, true},
		"its plan fails":          {*ofData(`{}`), errors.New("no lists"), false},
		"it makes no plan":        {*ofData(`{}`), strategy.ErrNoPlan, false},
		"another kind of release": {images.Pin("img"), nil, false},
		"it reports another":      {installs.Pin("nov"), nil, false},
		"another text":            {release.Pin{Name: "nov", Digest: ofData(`{}`).Digest, Text: []byte(`{"data":{"a":1}}`)}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				o := &offering{}
				o.version.Store(-1)
				r.hostLog.asks = make(chan log.Ask)
				r.offer(o, func() {
					r.saysOf("at the start", nil, 0)
					o.fail(c.err)
					r.askBy(&c.pin)
					time.Sleep(12 * time.Minute)
					want := -1
					if c.known {
						want = 0
					}
					r.saysOf("by the release", &c.pin, want)
				})
			})
		})
	}
}

// TestRejectedIsNotInstalled checks that a host whose plan is empty because its machine went back from a
// version does not say that it has the release of that version.
func TestRejectedIsNotInstalled(t *testing.T) {
	t.Parallel()
	w := &Worker{}
	held := message.ChangeSet{Held: []message.HeldPackage{{Name: "system", Version: "1", Offered: "2", Reason: "held"}}}
	job := strategy.Job{Release: &release.Release{Data: []byte(`{}`)}, Rejected: message.Rejected{"system": {"2"}}}
	if err := w.installed(t.Context(), job, held); err == nil {
		t.Error("it has the release")
	}
	job.Rejected = nil
	if err := w.installed(t.Context(), job, held); err != nil {
		t.Error(err)
	}
}

// TestGoalFetches checks when a host fetches what its release installs: not before its moment, then
// once, or each day if that changes with time, and again an hour after a failure.
func TestGoalFetches(t *testing.T) {
	t.Parallel()
	moment := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	moving := new(release.Release{Packages: &release.Packages{}}.Pin("all"))
	for name, c := range map[string]struct {
		pin   *release.Pin
		err   error
		again time.Duration
	}{
		"fixed":    {ofData(`{}`), nil, 0},
		"moving":   {moving, nil, day},
		"failed":   {ofData(`{}`), errors.New("no mirror"), time.Hour},
		"no plans": {moving, strategy.ErrNoPlan, time.Hour},
	} {
		by := &goal{pin: c.pin, planned: moment.Add(-time.Minute), fetchIn: time.Minute}
		if by.fetches(moment.Add(-1)) || !by.fetches(moment) {
			t.Errorf("%s: it does not keep to its moment", name)
		}
		by.fetched(moment.AddDate(2, 0, 0), c.err)
		if by.fetches(moment) != (c.again > 0) {
			t.Errorf("%s: once a clock that was ahead is right, it fetches: %t", name, by.fetches(moment))
		}
		by.fetched(moment, c.err)
		if by.fetches(moment.Add(c.again-1)) || by.fetches(moment.Add(c.again)) != (c.again > 0) {
			t.Errorf("%s: it does not fetch after %s", name, c.again)
		}
	}
	if none := (&goal{}); none.fetches(moment) || (*goal)(nil).fetches(moment) {
		t.Error("it fetches without a release")
	}
}
