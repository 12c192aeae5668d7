package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestChosenHostsOfRuns checks what status, runs and watch show of the hosts that are chosen.
func TestChosenHostsOfRuns(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	shop := func(name string) map[string]string { return map[string]string{"shop": name} }
	s.SetHosts("acme", v1.Host{Hostname: "h01", Labels: shop("basel")}, v1.Host{Hostname: "h02", Labels: shop("basel")}, v1.Host{Hostname: "h03", Labels: shop("bern")}, v1.Host{Hostname: "h04", Labels: shop("chur")})
	of := func(names ...string) (hosts []v1.RunHost) {
		for _, name := range names {
			hosts = append(hosts, v1.RunHost{Hostname: name, Stage: "all", Status: "upgraded"})
		}
		return hosts
	}
	s.AddRun("acme", v1.Run{ID: 41, Phase: "finished", Result: "completed", Hosts: of("h01", "h09")})
	s.AddRun("acme", v1.Run{ID: 42, Phase: "finished", Result: "completed", Hosts: of("h01", "h02", "h03")})
	for _, c := range []struct {
		args, has, hasNot string
		code              int
	}{
		{"runs --label shop=basel", "41; 42", "", exitOK},
		{"runs --label shop=bern", "42", "41", exitOK},
		{"runs --host h09", "41", "42", exitOK},
		{"runs --host h03,h09 --role till", `no known host has role "till", or any other`, "42", exitOK},
		{"runs --label shop=chur", "No run matches.", "42", exitOK},
		{"runs 42 --label shop=basel", "h01; h02; --label shop=basel: 2 of 2 hosts upgraded", "h03", exitOK},
		{"runs 42 --label shop=chur", "--label shop=chur: no host of the run", "h01", exitOK},
		{"runs 42 --label shop=bsel", `no known host has "bsel" as label shop; hosts have basel`, "h01", exitFailed},
		{"runs 41 --host h01 --label shop=basel", "give one --host and leave out --label and --role", "", exitUsage},
		{"watch 42 --label shop=bern", "h03", "h01", exitOK},
		{"watch 42 --label shop=bern --output json", "h03", "h01", exitOK},
	} {
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", strings.Fields(c.args)...)...)
		got := stdout + stderr
		if code != c.code || c.hasNot != "" && strings.Contains(got, c.hasNot) {
			t.Errorf("%s: exit code %d, want %d without %q:\n%s", c.args, code, c.code, c.hasNot, got)
		}
		for part := range strings.SplitSeq(c.has, "; ") {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q is missing in:\n%s", c.args, part, got)
			}
		}
	}
}

// TestStatusOfChosenHosts checks that status shows the chosen hosts of a run, and counts them.
func TestStatusOfChosenHosts(t *testing.T) {
	t.Parallel()
	play(t, intended{}, threeHosts, func(s *scene) {
		s.types("start", "--override-window", "--reason", "a test")
		s.pass(5 * time.Second)
		got := s.types("status", "--host", "h02")
		for _, want := range []string{"chosen:", "--host h02: 0 of 1 host upgraded", "\nh02  "} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is missing in:\n%s", want, got)
			}
		}
		if strings.Contains(got, "\nh01  ") || strings.Contains(s.types("status", "--host", "h02", "--output", "json"), `"hostname": "h01"`) {
			t.Errorf("h01 is not chosen:\n%s", got)
		}
	})
}
