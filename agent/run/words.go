package run

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
)

// stamp is a time as texts for people have it. Whoever shows a text may rewrite the times in
// it for its reader, up to the first colon and blank: a text quotes others, whose words stay
// as they are, only after that.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// maxNames bounds how many hosts a sentence names.
const maxNames = 3

// list lists the first few of names.
func list(names []string) string { return text.List(names, maxNames) }

// Achieved says how many hosts of a run were upgraded, and how many of these had nothing to
// change.
func Achieved(hosts, upgraded, upToDate int) string {
	of := fmt.Sprintf("%d of %s", upgraded, text.Count(hosts, "host", "hosts"))
	were := "were"
	if upToDate == 1 {
		were = "was"
	}
	switch upToDate {
	case 0:
		return of + " upgraded"
	case upgraded:
		return of + " " + were + " up to date"
	}
	return fmt.Sprintf("%s upgraded (%d %s up to date)", of, upToDate, were)
}

// RolledBack says how many hosts of a rollback are back.
func RolledBack(hosts, back int) string {
	return fmt.Sprintf("%d of %s rolled back", back, text.Count(hosts, "host", "hosts"))
}

// HostsAre is what the hosts of a run are that came out of it well.
func (s *State) HostsAre() string {
	if s.IsRollback() {
		return "rolled back"
	}
	return "upgraded"
}
