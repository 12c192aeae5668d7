package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/measure"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// counting are events of hosts of which the asks are counted, in bytes.
type counting struct {
	*memory
	asks, bytes int
}

func (c *counting) Ask(_ string, a log.Ask) error {
	c.asks++
	c.bytes += len(gate.EncodeAsk(a))
	return nil
}

// released is a state with hosts in an environment that goes to a release.
func released(b *testing.B, hosts int, r v1.Release) (s *state, events *counting, beat func(by string, changes *int)) {
	b.Helper()
	m := newMemory()
	events = &counting{memory: m}
	o := m.options(b)
	o.HostEvents = events
	s = stateOf(o)
	config := always
	config.Target = release.Target{Releases: map[string]string{"os": "nov"}}
	s.setIntent(store.Seen{Object: theConfig, Config: &config, Number: 1})
	s.setIntent(store.Seen{Object: store.Object{Kind: store.Release, Name: "nov"}, Release: &r, Number: 2})
	now := time.Now()
	beat = func(by string, changes *int) {
		for i := range hosts {
			s.heard(fmt.Sprintf("h%05d", i), message.Alive{Application: "app", Releases: []release.Kind{release.OfData}, Release: by, Changes: changes}, now)
		}
	}
	beat("", nil)
	return s, events, beat
}

// BenchmarkOffers is what the loop does when an environment goes to another release: it tells each host,
// and hears from each that it takes note and what an upgrade would change. What a host reports besides is
// its offer, of 40 packages here.
func BenchmarkOffers(b *testing.B) {
	for _, hosts := range measure.Sizes(1000, 10_000) {
		b.Run(fmt.Sprintf("%d-hosts", hosts), func(b *testing.B) {
			edition := func(n int) v1.Release { return v1.Release{Data: fmt.Appendf(nil, `{"edition":%d}`, n)} }
			s, events, beat := released(b, hosts, edition(0))
			offer := message.ChangeSet{Release: edition(0).Pin("nov").Ref().String()}
			for n := range 40 {
				offer.Changes = append(offer.Changes, message.Change{Name: fmt.Sprintf("package-%02d", n), From: "1.2-3", To: "1.2-4"})
			}
			packed, err := message.PackPlan(offer)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := report.Offer.Check(packed); err != nil {
				b.Fatal(err)
			}
			some, n := 40, 0
			for b.Loop() {
				n++
				r := edition(n)
				s.setIntent(store.Seen{Object: store.Object{Kind: store.Release, Name: "nov"}, Release: &r, Number: uint64(n + 2)})
				events.asks, events.bytes = 0, 0
				s.followGoal(s.standard(), time.Now())
				s.tellGoals(s.standard(), time.Now())
				beat(edition(n-1).Digest(), &some)
				beat(r.Digest(), nil)
				beat(r.Digest(), &some)
				if events.asks != hosts {
					b.Fatalf("%d hosts were told, not %d", events.asks, hosts)
				}
			}
			b.ReportMetric(float64(events.bytes)/float64(hosts), "told-B/host")
			b.ReportMetric(float64(len(packed)), "offer-B/host")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(hosts), "ns/host")
		})
	}
}

// BenchmarkUnfit plans a start of hosts of which every other one does not fit its release.
func BenchmarkUnfit(b *testing.B) {
	for _, hosts := range measure.Sizes(1000, 10_000) {
		b.Run(fmt.Sprintf("%d-hosts", hosts), func(b *testing.B) {
			s, _, beat := released(b, hosts, springOf())
			beat("", nil)
			for i := range hosts {
				s.hosts.versions[fmt.Sprintf("h%05d", i)] = reported{versions: map[string]string{"base": fmt.Sprintf("%d.4", 1+i%2)}, at: time.Now()}
			}
			s.started = time.Now().Add(-time.Hour)
			for b.Loop() {
				e, planned, refused, err := s.rehearsal(s.standard(), time.Now(), "ann", start, choice{})
				if err != nil || refused != "" || len(planned.Hosts) != hosts/2 || len(planned.Exempt) != hosts/2 {
					b.Fatalf("%d hosts, %d left out, %q, %v", len(planned.Hosts), len(planned.Exempt), refused, err)
				}
				p := v1.Preflight{}
				rehearse(&p, e, nil)
				if p.Run == nil || len(p.Run.Hosts) != hosts {
					b.Fatalf("the plan is %+v", p)
				}
			}
		})
	}
}
