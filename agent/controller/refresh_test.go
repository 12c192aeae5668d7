package controller

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestRefresh checks which hosts are asked to look for what an upgrade would change: those that
// are named, or all that are online, each at most once a minute, and many of them spread out.
func TestRefresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for n := range 50 {
			names = append(names, fmt.Sprintf("h%02d", n))
		}
		m := newMemory(names...)
		var asked []string
		var within time.Duration
		m.answersAsk = func(host string, a log.Ask) {
			if asked, within = append(asked, host), a.Within; a.Kind != report.Offer {
				t.Errorf("host %s is asked for its %s", host, a.Kind.Name)
			}
		}
		c, _ := m.control(t)
		m.beat(names[:48]...)
		refresh := func(want v1.Refreshed, of []string, hosts ...string) {
			t.Helper()
			asked = nil
			if got, err := c.Refresh(t.Context(), v1.Refresh{Hosts: hosts}); err != nil || got != want || !slices.Equal(asked, of) || within != time.Duration(want.WithinSeconds)*time.Second {
				t.Errorf("it is %+v, %v, of %q within %s; want %+v", got, err, asked, within, want)
			}
		}
		refresh(v1.Refreshed{Asked: 1}, []string{"h07"}, "h07", "h07")
		refresh(v1.Refreshed{Silent: 1, Recent: 1}, nil, "h07", "h49")
		refresh(v1.Refreshed{Asked: 47, WithinSeconds: 2, Silent: 2, Recent: 1}, slices.Delete(slices.Clone(names[:48]), 7, 8))
		m.pass(lookAgain, names[:48]...)
		refresh(v1.Refreshed{Asked: 48, WithinSeconds: 2, Silent: 2}, names[:48])
		if _, err := c.Refresh(t.Context(), v1.Refresh{Hosts: []string{"h01", "h77"}}); !errors.Is(err, run.ErrNoHost) {
			t.Errorf("of a host that is not known the error is %v", err)
		}
		var refused *run.Refused
		if _, err := c.Refresh(t.Context(), v1.Refresh{Roles: []string{"till"}}); !errors.As(err, &refused) || err.Error() != `no host matches --role till: no known host has role "till", or any other` {
			t.Errorf("of a selector that matches none the error is %v", err)
		}
	})
}
