package controller

import "time"

const (
	// away is how late a decision may come before the controller takes it that it
	// was not there: its process was stopped, its machine frozen, or the clock set
	// forward.
	away = 2 * time.Second
	// catchingUp is how long nothing is judged after that: what hosts have said
	// meanwhile lies in its sockets and is yet to be read.
	catchingUp = 5 * time.Second
)

// wasAway notes that nothing was decided for a while. Who was heard of before
// that is taken for heard of now, for nobody listened since, and whose time was
// up may have answered long ago. One that is late all the time judges between
// two such pauses all the same.
func (s *state) wasAway(now time.Time) {
	if s.judgeAt.After(now.Add(catchingUp)) {
		s.judgeAt = time.Time{} // The clock was set back since.
	}
	late := now.Sub(later(s.looked, s.due))
	if s.due.IsZero() || late < away || now.Before(s.judgeAt.Add(longestSleep)) {
		return
	}
	s.Logger.Warn("nothing was decided for a while: the agent was stopped, or the clock set forward", "tenant", s.Tenant, "late", late, "judging-at", now.Add(catchingUp))
	s.judgeAt = now.Add(catchingUp)
	s.present.hearAll(now)
}
