package run

import "fmt"

// once holds that what a member knows of its being out of service is known once:
// each flag that could be left out says what the others say.
func once(s *State) error {
	for i := range s.members {
		m := &s.members[i]
		inHand, inTurn := m.step >= draining && m.step <= undraining, m.step == checkingBefore || m.step == ready
		switch {
		case m.slot != (inHand || m.lacks() || inTurn && m.slot):
			return fmt.Errorf("%s has a slot: %t, and is neither in hand nor does it owe anything: %+v", m.name, m.slot, *m)
		case m.late != "" && m.stranded != "":
			return fmt.Errorf("%s owes two answers: %+v", m.name, *m)
		case m.late != "" && m.takenAt.IsZero(), m.stranded != "" && !m.takenAt.IsZero():
			return fmt.Errorf("%s owes an answer of another run than it was taken out of service in: %+v", m.name, *m)
		case m.step == recovering && (m.final == "" || m.final == Upgraded || !m.lacks()):
			return fmt.Errorf("%s is recovering and owes nothing, or has no final status: %+v", m.name, *m)
		case m.step == done && m.lacks() && !s.Over():
			return fmt.Errorf("%s owes something and is done: %+v", m.name, *m)
		case m.gone && (m.step != done || m.lacks()):
			return fmt.Errorf("%s was removed and is not done: %+v", m.name, *m)
		}
	}
	return nil
}
