package decide

import (
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestAllow checks what a worker does with its journal in each state of the lease.
func TestAllow(t *testing.T) {
	t.Parallel()
	prepare, upgrade := Journal{Action: message.Prepare}, Journal{Action: message.Upgrade}
	asked := Journal{Action: message.Reboot, Reboot: Asked}
	for name, c := range map[string]struct {
		journal Journal
		do      Do
		state   Lease
		away    bool
		want    Do
	}{
		"the site may answer yet":            {upgrade, DoResume, Requesting, false, DoWait},
		"with the lease, nothing to do":      {upgrade, Nothing, Held, false, Nothing},
		"with the lease, an upgrade":         {upgrade, DoUpgrade, Held, false, DoUpgrade},
		"with the lease, a reply":            {upgrade, DoReply, Held, false, DoReply},
		"cut off, nothing to do":             {upgrade, Nothing, Unanswered, false, DoWait},
		"cut off, an upgrade in hand":        {upgrade, DoUpgrade, Unanswered, false, DoUpgrade},
		"cut off, a reply":                   {upgrade, DoReply, Unanswered, false, DoWait},
		"cut off and away, to prepare":       {prepare, DoPrepare, Unanswered, true, DoWait},
		"cut off and away, an upgrade":       {upgrade, DoUpgrade, Unanswered, true, DoWait},
		"cut off and away, interrupted":      {upgrade, DoResume, Unanswered, true, DoResume},
		"taken, nothing to do":               {upgrade, Nothing, Taken, true, DoWait},
		"taken, to prepare":                  {prepare, DoPrepare, Taken, true, DoWait},
		"taken, an upgrade not begun":        {upgrade, DoUpgrade, Taken, true, DoWait},
		"taken, an upgrade interrupted":      {upgrade, DoResume, Taken, true, DoResume},
		"taken, to verify":                   {upgrade, DoVerify, Taken, true, DoVerify},
		"taken, to roll back":                {upgrade, DoRollback, Taken, true, DoRollback},
		"taken, to reboot":                   {Journal{Action: message.Reboot}, DoReboot, Taken, true, DoWait},
		"with the lease, a reboot again":     {asked, DoReboot, Held, false, DoReboot},
		"cut off, a reboot again":            {asked, DoReboot, Unanswered, false, DoReboot},
		"cut off and away, a reboot again":   {asked, DoReboot, Unanswered, true, DoAwaitReboot},
		"taken, a reboot again":              {asked, DoReboot, Taken, false, DoAwaitReboot},
		"taken, a reboot in progress":        {asked, DoAwaitReboot, Taken, true, DoAwaitReboot},
		"taken, too late to reboot":          {Journal{Action: message.Reboot}, DoMissReboot, Taken, true, DoWait},
		"taken, booted":                      {asked, DoBooted, Taken, true, DoBooted},
		"taken, a reply":                     {upgrade, DoReply, Taken, true, DoWait},
		"back, nothing to do":                {upgrade, Nothing, Held, true, DoTakeOver},
		"back, to prepare":                   {prepare, DoPrepare, Held, true, DoTakeOver},
		"back, the reply to prepare":         {prepare, DoReply, Held, true, DoTakeOver},
		"back, the reply to upgrade":         {upgrade, DoReply, Held, true, DoReply},
		"back, an upgrade not begun":         {upgrade, DoUpgrade, Held, true, DoTakeOver},
		"back, an upgrade interrupted":       {upgrade, DoResume, Held, true, DoResume},
		"back, to reboot":                    {Journal{Action: message.Reboot}, DoReboot, Held, true, DoTakeOver},
		"back, a reboot again":               {asked, DoReboot, Held, true, DoAwaitReboot},
		"cut off before there was a journal": {Journal{}, Nothing, Unanswered, true, DoWait},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.journal.allow(c.do, c.state, c.away); got != c.want {
				t.Errorf("%s, not %s", got, c.want)
			}
		})
	}
}

// TestOver checks in which phases a worker that ends gives its lease back.
func TestOver(t *testing.T) {
	t.Parallel()
	at := func(action message.Action, phase Phase, result string) Journal {
		return Journal{Run: 10, NotAfter: later, Seq: 12, Action: action, Phase: phase, Result: message.ResultOf(result)}
	}
	for name, c := range map[string]struct {
		journal Journal
		at      time.Time
		want    bool
	}{
		"before the first command":            {Journal{Seq: 9}, now, true},
		"preparing":                           {at(message.Prepare, Preparing, ""), now, false},
		"the answer to prepare is not sent":   {at(message.Prepare, Answering, "done"), now, false},
		"prepared, and its turn may come":     {at(message.Prepare, Answered, "done"), now, false},
		"prepared, and the run is over":       {at(message.Prepare, Answered, "done"), later, true},
		"it could not prepare":                {at(message.Prepare, Answered, "no mirror"), now, true},
		"its past is not known":               {at(message.Prepare, Answered, anothersPast), now, true},
		"upgrading":                           {at(message.Upgrade, Upgrading, ""), later, false},
		"verifying":                           {at(message.Upgrade, Verifying, ""), later, false},
		"rolling back":                        {at(message.Upgrade, RollingBack, "no space"), later, false},
		"the answer to upgrade is not sent":   {at(message.Upgrade, Answering, "done"), later, false},
		"upgraded":                            {at(message.Upgrade, Answered, "done"), now, true},
		"it could not upgrade":                {at(message.Upgrade, Answered, "no space; rolled back"), now, true},
		"upgraded, to be rebooted":            {at(message.Upgrade, Answered, "reboot-required"), now, false},
		"upgraded, too late to be rebooted":   {at(message.Upgrade, Answered, "reboot-required"), later, true},
		"rebooting":                           {at(message.Reboot, Rebooting, ""), later, false},
		"verifying after the reboot":          {at(message.Reboot, Verifying, ""), later, false},
		"rebooted":                            {at(message.Reboot, Answered, "done"), now, true},
		"rebooted, and another reboot needed": {at(message.Reboot, Answered, "reboot-required"), now, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.journal.Over(c.at); got != c.want {
				t.Errorf("%v, not %v", got, c.want)
			}
		})
	}
}
