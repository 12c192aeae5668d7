package check

import (
	"context"
	"errors"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// host is one that is heard of and has this kernel; without one it has not reported.
func host(name, kernel string) message.Present {
	h := message.Present{Name: name, Online: true}
	if kernel != "" {
		h.Versions = map[string]string{"kernel": kernel}
	}
	return h
}

func TestHosts(t *testing.T) {
	t.Parallel()
	silent := host("h3", "6.1")
	silent.Online = false
	three := []message.Present{host("h1", "6.1"), host("h2", "6.1"), silent}
	expected, same := rollout.Check{Expected: []string{"h1", "h2"}}, rollout.Check{SameVersion: "kernel"}
	for name, row := range map[string]struct {
		check rollout.Check
		known []message.Present
		want  string
	}{
		"all":                   {rollout.Check{}, three[:2], ""},
		"expected":              {expected, three, ""},
		"one is silent":         {rollout.Check{}, three, "silent: h3"},
		"one is missing":        {rollout.Check{Expected: []string{"h1", "h4", "h3"}}, three, "not in the environment: h4; silent: h3"},
		"none":                  {rollout.Check{}, nil, "no host is known"},
		"the same":              {same, three[:2], ""},
		"the same of those":     {rollout.Check{Expected: []string{"h1", "h2"}, SameVersion: "kernel"}, append([]message.Present{host("h0", "5")}, three...), ""},
		"different":             {same, []message.Present{host("h1", "6.2"), host("h2", "6.1"), host("h3", "6.1")}, "kernel is 6.1 on h2, h3, 6.2 on h1"},
		"one has not reported":  {same, []message.Present{host("h1", ""), host("h2", "6.1")}, "kernel is no version on h1, 6.1 on h2"},
		"none has reported":     {same, []message.Present{host("h1", "")}, "kernel is no version on h1"},
		"silent and an old one": {same, []message.Present{silent, host("h4", "5")}, "silent: h3; kernel is 5 on h4, 6.1 on h3"},
	} {
		got := ""
		if err := judgeHosts(row.check, row.known); err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
}

// TestHostsOfTheTask checks that the hosts are those of the task's environment, and that a check
// fails where nobody knows them.
func TestHostsOfTheTask(t *testing.T) {
	t.Parallel()
	r := &Runner{Hosts: func(_ context.Context, environment string) ([]message.Present, error) {
		if environment != "basel" {
			return nil, errors.New("asked of " + environment)
		}
		return []message.Present{host("h1", "")}, nil
	}}
	of := single(rollout.Check{Type: rollout.Hosts})
	of.Environment = "basel"
	check(t, r, of, "")
	of.Environment = "bern"
	check(t, r, of, fails("asked of bern"))
	check(t, &Runner{}, of, "check it: hosts are known at the site only")
}
