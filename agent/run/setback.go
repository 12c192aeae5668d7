package run

import "time"

// follow takes in the time of the next record. Where it is before that of the
// last one, the log's clock was set back: what lies in the future by now
// counts as of now, so that each deadline is no further away than it is long
// (design.md 5, invariant 7). The end of the run is as far away as it was.
func (s *State) follow(now time.Time) {
	if now.Before(s.newest) {
		s.setBack(now)
	}
	s.newest = now
}

func (s *State) setBack(now time.Time) {
	s.NotAfter = now.Add(s.NotAfter.Sub(s.newest))
	s.roster.Earlier(now)
	times := []*time.Time{&s.sentAt, &s.preparedAt, &s.changed, &s.fleet.passedAt, &s.fleet.ranAt}
	for i := range s.members {
		m := &s.members[i]
		times = append(times, &m.since, &m.takenAt, &m.ranAt, &m.passedAt)
	}
	for i := range s.stages {
		times = append(times, &s.stages[i].doneAt, &s.stages[i].approvedAt)
	}
	for _, queue := range s.queues {
		for i := range queue {
			times = append(times, &queue[i].since)
		}
	}
	for _, p := range []*Pausing{s.Paused, s.aborted} {
		if p != nil {
			times = append(times, &p.At)
		}
	}
	for _, t := range times {
		*t = earlier(*t, now)
	}
	if s.current > 0 {
		s.soakEnds = earlier(s.soakEnds, now.Add(s.stages[s.soaks].Soak.Duration()))
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
