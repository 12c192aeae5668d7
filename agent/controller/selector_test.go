package controller

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// shopHosts returns a controller with two hosts in Basel and one in Bern.
func shopHosts(t *testing.T) (*memory, *Controller) {
	t.Helper()
	m := newMemory("h01", "h02", "h03")
	c, _ := m.control(t)
	for name, shop := range map[string]string{"h01": "basel", "h02": "basel", "h03": "bern"} {
		m.Alive(name, message.Alive{Application: "app", Role: map[bool]string{true: "till"}[name != "h02"], Labels: map[string]string{"shop": shop}})
	}
	synctest.Wait()
	return m, c
}

// namesOf returns the names of the hosts of a run.
func namesOf(r v1.Run) string {
	var names []string
	for _, h := range r.Hosts {
		names = append(names, h.Hostname)
	}
	return strings.Join(names, " ")
}

// TestStartOfChosenHosts checks that a start has the hosts that fit when it starts, and that one
// of none is refused with what there is.
func TestStartOfChosenHosts(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		request       v1.Start
		hosts, refuse string
	}{
		"a label":                  {request: v1.Start{Labels: map[string]string{"shop": "basel"}}, hosts: "h01 h02"},
		"a label and a role":       {request: v1.Start{Labels: map[string]string{"shop": "basel,bern"}, Roles: []string{"till"}}, hosts: "h01 h03"},
		"a name and a label":       {request: v1.Start{Hosts: []string{"h02", "h03"}, Labels: map[string]string{"shop": "bern"}}, hosts: "h03"},
		"a value that no host has": {request: v1.Start{Labels: map[string]string{"shop": "chur"}}, refuse: `no host matches --label shop=chur: no known host has "chur" as label shop; hosts have basel, bern`},
		"a role that no host has":  {request: v1.Start{Roles: []string{"tll"}}, refuse: `no host matches --role tll: no known host has role "tll"; did you mean till?`},
		"a name that no host has":  {request: v1.Start{Hosts: []string{"h09"}}, refuse: "host h09 is not known under a listed worker application; osupgrade-agent hosts lists those that are"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, c := shopHosts(t)
				row.request.OverrideWindow, row.request.Reason = true, "a test"
				p, err := c.Preflight(t.Context(), "test", row.request)
				if err != nil || p.Refused != row.refuse || row.refuse == "" && namesOf(*p.Run) != row.hosts {
					t.Errorf("the preflight is %+v, %v", p, err)
				}
				r, err := c.Start(t.Context(), "test", row.request)
				var refused *run.Refused
				if row.refuse != "" && (!errors.As(err, &refused) || err.Error() != row.refuse) || row.refuse == "" && (err != nil || namesOf(r) != row.hosts) {
					t.Errorf("the run has %q, %v; want %q, %s", namesOf(r), err, row.hosts, row.refuse)
				}
			})
		})
	}
}

// TestRetryOfChosenHosts checks that a retry has the hosts that were left and are chosen.
func TestRetryOfChosenHosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, c := shopHosts(t)
		request := v1.Start{OverrideWindow: true, Reason: "a test"}
		first, err := c.Start(t.Context(), "test", request)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Ask(t.Context(), "test", run.Abort, v1.Ask{Reason: "a test", Now: true}); err != nil {
			t.Fatal(err)
		}
		m.pass(0)
		request.RetryOf, request.Labels = first.ID, map[string]string{"shop": "basel"}
		r, err := c.Start(t.Context(), "test", request)
		if err != nil || namesOf(r) != "h01 h02" {
			t.Fatalf("the retry has %q, %v", namesOf(r), err)
		}
		if _, err := c.Ask(t.Context(), "test", run.Abort, v1.Ask{Reason: "a test", Now: true}); err != nil {
			t.Fatal(err)
		}
		request.RetryOf, request.Labels = r.ID, map[string]string{"shop": "bern"}
		if _, err := c.Start(t.Context(), "test", request); err == nil || !strings.HasSuffix(err.Error(), "left no host to retry that matches --label shop=bern") {
			t.Errorf("a retry of hosts that were not left is answered with %v", err)
		}
	})
}
