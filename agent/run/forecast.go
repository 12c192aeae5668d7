package run

import (
	"slices"
	"time"
)

// measures is how many of the last hosts tell how long one takes.
const measures = 20

// measure takes in how long a host took.
func (s *State) measure(took time.Duration) {
	s.measured = append(s.measured, max(took, 0))
	if len(s.measured) > measures {
		s.measured = append([]time.Duration(nil), s.measured[1:]...)
	}
	sorted := slices.Sorted(slices.Values(s.measured))
	s.usual = sorted[(len(sorted)*9+9)/10-1]
}

// typical is how long a host takes: nine in ten of the last ones were not
// slower, so that one that was very slow does not stop the rest. It is 0 while
// none is measured.
func (s *State) typical() time.Duration { return s.usual }

// fits reports whether a host that starts now will be done by not-after, as
// far as is known.
func (s *State) fits(now time.Time) bool {
	return !now.Add(s.typical()).After(s.NotAfter)
}

// Forecast is when a run is expected to end, if hosts go on to take as long as
// those before.
type Forecast struct {
	// End is of the whole run. It is zero while that waits for what nobody can
	// foresee, which Waits says in words.
	End   time.Time
	Waits string
	// Hosts are the ends of the members that are not done, by name; those that
	// wait for what nobody can foresee have none.
	Hosts map[string]time.Time
	// Left counts the hosts that are expected not to be done by not-after.
	Left int
}

// Forecast tells when the run is expected to end; false when nothing is
// measured yet, or the run waits for anything but hosts at work and time. Its
// cost grows with the number of hosts.
func (s *State) Forecast(now time.Time) (Forecast, bool) {
	took := s.typical()
	if took == 0 || s.Over() || s.unprepared > 0 {
		return Forecast{}, false
	}
	p := &prospect{State: s, f: Forecast{Hosts: make(map[string]time.Time, s.unstarted+s.underWay)}, took: took, last: now}
	_, ends := s.ending(now)
	begins := later(now, s.reached())
	for n := s.current; n < len(s.stages) && p.f.Waits == ""; n++ {
		if g := &s.stages[n]; g.left > 0 {
			c := p.crew(g, now)
			if !ends && c.toBegin() {
				p.begin(n, c, begins, now)
			}
			begins = later(begins, p.last.Add(g.Soak.Duration()))
		}
	}
	if p.f.Waits == "" {
		p.f.End = p.last
	}
	return p.f, p.f.Waits == "" || len(p.f.Hosts) > 0
}
