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
	// End is of the whole run, Hosts of each member that is not done, by name.
	End   time.Time
	Hosts map[string]time.Time
	// Left counts the hosts that are expected not to be done by not-after.
	Left int
}

// Forecast tells when the run is expected to end; false when nothing is
// measured yet, or the run waits for somebody. Its cost grows with the number
// of hosts.
func (s *State) Forecast(now time.Time) (Forecast, bool) {
	took := s.typical()
	if took == 0 || s.Over() || s.unprepared > 0 || s.Paused != nil || !s.approved(&s.stages[s.current]) {
		return Forecast{}, false
	}
	f := Forecast{End: now, Hosts: map[string]time.Time{}}
	_, ends := s.ending(now)
	for n := range s.stages {
		s.forecastStage(&f, n, ends, later(f.End, now), took)
	}
	return f, true
}

// forecastStage adds a stage that begins at a time: its hosts go as many at
// once as it allows, but for the slots that are held by hosts which are not
// well. In a run that ends, those go that are out of service.
func (s *State) forecastStage(f *Forecast, n int, ends bool, begins time.Time, took time.Duration) {
	g := &s.stages[n]
	if n > 0 && g.left > 0 {
		begins = later(begins, s.soaked(n, begins))
	}
	lanes, place := s.lanes(g), 0
	for _, i := range g.order {
		m := &s.members[i]
		if m.final != "" || ends && !m.owes() {
			continue
		}
		end := begins.Add(took * time.Duration(1+place/lanes))
		if m.owes() {
			end = later(begins, m.takenAt.Add(took))
		}
		place++
		f.Hosts[m.name], f.End = end, later(f.End, end)
		if end.After(s.NotAfter) {
			f.Left++
		}
	}
}

// lanes is how many hosts of a stage can go at once; at least one.
func (s *State) lanes(g *stage) int {
	free := g.MaxUnavailable - g.outside
	for _, i := range g.order {
		if m := &s.members[i]; m.final != "" && m.out() {
			free--
		}
	}
	return max(1, free)
}

// soaked is when a stage may begin for the sake of the soak before it.
func (s *State) soaked(n int, begins time.Time) time.Time {
	if n <= s.current {
		return later(begins, s.soakEnds)
	}
	if before := &s.stages[n-1]; before.left > 0 {
		return begins.Add(time.Duration(before.Soak))
	}
	return begins
}
